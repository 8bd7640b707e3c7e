"""The examples of docstrings and of the README run, and the list of public names is the one intended."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import phlox_nn

README = Path(__file__).parents[2] / "README.md"
MODULES = ["phlox_nn", *(f"phlox_nn.{module.name}" for module in pkgutil.iter_modules(phlox_nn.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert result.failed == 0


def test_examples_are_found():
    found = [t for name in MODULES for t in doctest.DocTestFinder().find(importlib.import_module(name)) if t.examples]
    assert {"phlox_nn._dense.Dense", "phlox_nn._serial.serial"} <= {test.name for test in found}


def test_snippets_of_the_readme():
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), {})


def test_public_names():
    public = {name for name in vars(phlox_nn) if not name.startswith("_")}
    assert public == {
        *("Dense", "Dropout", "Flatten", "Layer", "initializers", "serial"),
        *("elu", "gelu", "leaky_relu", "log_softmax", "relu", "selu", "sigmoid", "silu", "softmax", "softplus", "tanh"),
    }
