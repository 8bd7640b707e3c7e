"""What packages import on demand is stated twice, for Python and for those who read types: both must say the same."""

import ast
import importlib
import pathlib

import pytest

SOURCES = [pathlib.Path(__file__).parents[2] / "packages" / name / "src" for name in ("core", "compat")]
FILES = {
    ".".join(path.relative_to(source).with_suffix("").parts): path
    for source in SOURCES
    for path in sorted(source.rglob("*.py"))
}
PACKAGES = [
    name.removesuffix(".__init__")
    for name, path in FILES.items()
    if name.endswith("__init__")
    if "(\n    __name__," in path.read_text() or 'publish(__name__, "' in path.read_text()
]


def calls(tree):
    for node in tree.body:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and getattr(value.func, "id", "").endswith("publish"):
            yield value


def blocks(tree):
    for node in tree.body:
        if isinstance(node, ast.If) and getattr(node.test, "id", "").endswith("TYPE_CHECKING"):
            yield node


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_imported_on_demand_is_stated_for_readers_of_types(name):
    tree = ast.parse(FILES[f"{name}.__init__"].read_text())
    (call,), (block,) = calls(tree), blocks(tree)
    submodules, members = ast.literal_eval(call.args[1]), ast.literal_eval(call.args[2]) if len(call.args) > 2 else {}
    stated = {line.module or "": sorted(a.asname or a.name for a in line.names) for line in block.body}
    assert stated.pop("", []) == sorted(submodules.split())
    assert stated == {home: sorted(names.split()) for home, names in members.items()}
    package = importlib.import_module(name)
    for name in dir(package):
        assert getattr(package, name, None) is not None or name in vars(package), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def imported(package, tree):
    """Names of the modules that import statements anywhere in the tree name, and of what they take out of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            yield home
            yield from (f"{home}.{alias.name}" for alias in node.names)


def test_packagers_see_every_import():
    """A private module that is imported by a string alone would be left out of wheels, and of the tests' sandboxes."""
    trees = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
    named = {found for name, tree in trees.items() for found in imported(name.rpartition(".")[0], tree)}
    private = {name for name in FILES if "._" in name and not name.endswith("__")}
    assert len(private) > 200
    assert not private - named
