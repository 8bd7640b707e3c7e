"""The examples of docstrings and of the README run, and the list of public names is the one intended."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import phlox
import phlox_nn

README = Path(__file__).parents[2] / "README.md"
MODULES = ["phlox_nn", *(f"phlox_nn.{module.name}" for module in pkgutil.iter_modules(phlox_nn.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    # The activations are documented in phlox.nn, whose examples begin with these names.
    names = {**vars(phlox.nn), "phlox": phlox, "jnp": phlox.numpy} if name == "phlox_nn" else None
    result = doctest.testmod(importlib.import_module(name), extraglobs=names, optionflags=flags)
    assert result.failed == 0


def test_examples_are_found():
    found = [t for name in MODULES for t in doctest.DocTestFinder().find(importlib.import_module(name)) if t.examples]
    assert {"phlox_nn._linear.Linear", "phlox_nn._layer.Layer.apply"} <= {test.name for test in found}


def test_snippets_of_the_readme():
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), {})


LAYERS = [x for x in vars(phlox_nn).values() if isinstance(x, type) and issubclass(x, phlox_nn.Layer)]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_docstrings_of_layers_name_every_field(layer):
    text = inspect.getdoc(layer)
    fields = [field.name for field in dataclasses.fields(layer)] if layer is not phlox_nn.Layer else []
    if text.count("Made by `"):  # the function that makes it tells
        text = inspect.getdoc(getattr(phlox_nn, re.search(r"Made by `(\w+)`", text).group(1)))
    elif "Args: as for `Conv`" in text:
        text = inspect.getdoc(phlox_nn.Conv)
    missing = [name for name in fields if not re.search(rf"\b{name}\b", text)]
    assert not missing, f"{layer.__name__} does not tell of {missing}"
