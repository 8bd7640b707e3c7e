"""The examples of docstrings run, in every module of the package, and public functions have one; the README's run too."""

import importlib.util
import re
from pathlib import Path

import pytest

import phlox_compat
from docstring_examples import failures, functions_without, modules

README = Path(__file__).parents[2] / "README.md"
MODULES = [name for name in modules(Path(phlox_compat.__file__).parent) if not name.endswith("__main__")]
#: Nothing in them has an example yet, or not everything; or they have the names of JAX's inside.
UNSHOWN = ("phlox_compat.api_util", "phlox_compat.example_libraries", "phlox_compat.jax_internals")


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    assert failures(name) == 0


@pytest.mark.parametrize("name", [name for name in MODULES if "._" not in name and not name.startswith(UNSHOWN)])
def test_public_functions_have_an_example(name):
    without = set(functions_without(name)) - {"UndefinedPrimal"}
    assert not without, f"no example: {', '.join(sorted(without))}"


@pytest.mark.skipif(importlib.util.find_spec("optax") is None, reason="the README makes a copy of optax")
def test_snippets_of_the_readme():
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL):
        exec(compile(snippet, str(README), "exec"), names)
    assert names
