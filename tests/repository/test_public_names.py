"""`dir()` of a public module of core and compat shows its API and nothing else, as completion in an editor or in IPython does."""

import importlib
import inspect

import pytest

from public_modules import public_modules


@pytest.mark.parametrize("name", [name for package in ("core", "compat") for name in public_modules(package)])
def test_dir_shows_the_api_and_nothing_else(name):
    module = importlib.import_module(name)
    shown = dir(module)
    private = [entry for entry in shown if entry.startswith("_") and not entry.endswith("__")]
    assert not private, f"{name} shows {private}"
    foreign = [
        entry
        for entry in shown
        if inspect.ismodule(getattr(module, entry)) and not getattr(module, entry).__name__.startswith("phlox")
    ]
    assert not foreign, f"{name} shows modules that are not its own: {foreign}"
    stated = {entry for entry in getattr(module, "__all__", shown) if not entry.endswith("__")}
    assert stated <= set(shown), f"{name} does not show {sorted(stated - set(shown))}"


@pytest.mark.parametrize("name", ["phlox.nn", "phlox.numpy", "phlox.scipy.stats"])
def test_a_star_import_has_the_names_that_are_imported_on_demand(name):
    names = {}
    exec(f"from {name} import *", names)
    shown = {entry for entry in dir(importlib.import_module(name)) if entry[0] != "_"}
    assert names.keys() - {"__builtins__"} == shown
