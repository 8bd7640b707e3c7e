"""`dir()` of a public module shows its API and nothing else, as completion in an editor or in IPython does."""

import importlib
import inspect
import pathlib

import pytest

import phlox

SOURCE = pathlib.Path(phlox.__file__).parent


def public_modules():
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            yield ".".join(parts)


@pytest.mark.parametrize("name", list(public_modules()))
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
    assert set(getattr(module, "__all__", shown)) <= set(shown) | {"__version__", "__array_api_version__"}
