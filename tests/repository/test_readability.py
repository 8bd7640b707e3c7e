"""Bounds that keep core readable: lengths of functions, names of values, circles of imports."""

import ast
import collections
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "packages" / "core" / "src"
#: lines of a function without its docstring
LONGEST = 60
#: participles and the like that say nothing about a value
VAGUE = {"found", "given", "wanted", "asked", "made", "taken", "kept", "places", "told", "said", "laid_out", "beside"}


def modules():
    """The syntax trees of core's modules, by name."""
    trees = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        trees[name] = ast.parse(file.read_text()), file.name == "__init__.py"
    return trees


MODULES = modules()


def test_functions_are_short():
    long = []
    for name, (tree, _) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                lines = node.end_lineno - node.lineno + 1
                if ast.get_docstring(node):
                    lines -= node.body[0].end_lineno - node.body[0].lineno + 1
                if lines > LONGEST:
                    long.append(f"{name}.{node.name}: {lines} lines")
    assert not long


def test_values_have_nouns_as_names():
    bound = collections.Counter()
    for name, (tree, _) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
                bound[name, node.id] += 1
            elif isinstance(node, ast.arg) and node.arg in VAGUE:
                bound[name, node.arg] += 1
    assert not bound


def imported(name, node, is_package):
    """Modules that an import statement may name, those of inner names first."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = []
    if node.level:
        base = name.split(".") if is_package else name.split(".")[:-1]
        base = base[: len(base) - (node.level - 1)]
    parent = ".".join([*base, *([node.module] if node.module else [])])
    return [*(f"{parent}.{alias.name}" for alias in node.names), parent]


def arrows():
    """The modules that each module imports, also inside of functions, but not for types only."""
    edges = {name: set() for name in MODULES}
    for name, (tree, is_package) in MODULES.items():
        for_types = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                for_types |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in for_types:
                for target in imported(name, node, is_package):
                    while target and target not in MODULES:
                        target = target.rpartition(".")[0]
                    if target not in ("", name, "phlox"):
                        edges[name].add(target)
    return edges


def reachable(edges, start):
    seen, rest = set(), [start]
    while rest:
        for target in edges[rest.pop()] - seen:
            seen.add(target)
            rest.append(target)
    return seen


def test_circles_of_imports_have_two_files():
    edges = arrows()
    after = {name: reachable(edges, name) for name in edges}
    circles = {frozenset(other for other in after[name] if name in after[other]) | {name} for name in edges}
    assert not [sorted(circle) for circle in circles if len(circle) > 2]
