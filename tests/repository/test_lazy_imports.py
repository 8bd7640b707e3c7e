"""What packages import on demand is there, and nothing of it is imported before; packagers see every import."""

import ast
import importlib
import os
import pathlib
import subprocess
import sys

import pytest

SOURCES = [pathlib.Path(__file__).parents[2] / "packages" / name / "src" for name in ("core", "compat")]
FILES = {
    ".".join(path.relative_to(source).with_suffix("").parts): path
    for source in SOURCES
    for path in sorted(source.rglob("*.py"))
}
PACKAGES = {
    name.removesuffix(".__init__"): path
    for name, path in FILES.items()
    if name.endswith("__init__") and "on_demand(__name__):" in path.read_text()
}


def statements(path):
    """The import statements that a package carries out on demand."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.With):
            yield from node.body


@pytest.mark.parametrize("name", PACKAGES)
def test_names_are_imported_on_demand(name):
    package = importlib.import_module(name)
    names = {alias.asname or alias.name for statement in statements(PACKAGES[name]) for alias in statement.names}
    assert names and names <= set(dir(package))
    for name in dir(package):
        assert getattr(package, name, None) is not None or name in vars(package), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


def test_importing_phlox_imports_nothing_that_is_on_demand():
    homes = {
        f"{name}.{statement.module}"
        for name, path in PACKAGES.items()
        for statement in statements(path)
        if statement.module
    }
    program = f"import sys, phlox; print(*sorted({homes!r} & set(sys.modules)))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES))}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    found = run.stdout.split()
    assert len(homes) > 50
    assert not found, f"`import phlox` imports them anyway: {found}"


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
