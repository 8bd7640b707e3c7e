"""The examples of docstrings run, in every module of core; and public functions have one."""

from pathlib import Path

import pytest

import phlox
import phlox.numpy as jnp
from docstring_examples import documented, examples, failures, functions_without, modules

MODULES = list(modules(Path(phlox.__file__).parent))


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    assert failures(name) == 0


def test_examples_of_what_comes_on_demand_are_found():
    found = {name for name, value in documented(jnp) if examples(name, value, jnp)}
    assert {"sin", "add", "sinc"} <= found  # imported with the module, and on demand


#: Settings, aliases, and what only describes: their uses are shown elsewhere.
WITHOUT = {
    "Array",
    "Device",
    "NamedSharding",
    "P",
    "Shard",
    "ShapeDtypeStruct",
    "cache",
    "config",
    "Initializer",
    "DotDimensionNumbers",
    "CompilerOptions",
    "Effects",
    "ErrorCategory",
    "KeyPath",
    "jet2",  # jet with another default
}


@pytest.mark.parametrize("name", [name for name in MODULES if "._" not in name])
def test_public_functions_have_an_example(name):
    bare = set(functions_without(name)) - WITHOUT
    assert not bare, f"no example: {', '.join(sorted(bare))}"


def test_siblings_share_entries_of_args_and_errors_but_none_returns_nothing():
    text = phlox.profiler.save_device_memory_profile.__doc__  # the sibling returns the profile
    assert "BackendError: " in text
    assert "Returns:" not in text
    assert "*rest: " in phlox.tree_util.tree_map_with_path.__doc__
