"""Every public name has a docstring of its own.

Public is what a module lists in `__all__` (without such a list, all names that do not begin with an underscore), if no
part of the module's dotted name begins with an underscore. Constants and dtypes are exempt: they cannot carry one. So
are classes of jaxlib that phlox shows as they are.
"""

import contextlib
import dataclasses
import importlib
import inspect
import itertools
import re
import types

import numpy as np
import pytest

import phlox
from public_modules import public_modules


def lacks_docstring(value):
    if inspect.isclass(value):
        # Dataclasses and named tuples without a docstring get one from Python: "Name(field, field)".
        generated = dataclasses.is_dataclass(value) or hasattr(value, "_fields")
        doc = value.__doc__ or ""
        return not doc or (generated and doc.startswith(value.__name__ + "("))
    if inspect.ismodule(value) or inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        return not value.__doc__ or value.__doc__ == type(value).__doc__
    return False


@pytest.mark.parametrize("name", list(public_modules()))
def test_public_names_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    public = getattr(module, "__all__", None)
    if public is None:
        public = [entry for entry, value in vars(module).items() if entry[0] != "_" and not inspect.ismodule(value)]
    missing = [entry for entry in public if not hasattr(module, entry)]
    assert not missing, f"{name}.__all__ lists names that {name} does not have: {missing}"
    homes = {entry: getattr(getattr(module, entry), "__module__", None) or "" for entry in public}
    ours = [entry for entry, home in homes.items() if home.startswith("phlox")]
    bare = [entry for entry in ours if lacks_docstring(getattr(module, entry))]
    assert not bare, f"{name}: no docstring on {', '.join(bare)}"


#: What mirrors JAX's array language. An example of each function runs (packages/core/tests/unit/test_documentation.py).
SHOWN = ["numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "ops", "image", "dtypes", "nn"]
#: Classes that say of what kind something is, and have no use of their own: dtypes, and what NumPy gave them.
KINDS = (np.generic, np.dtype, Warning)


def needs_example(value):
    if isinstance(value, type):
        # A dtype such as phlox.numpy.float32 is a class that has a dtype.
        return not issubclass(value, KINDS) and not isinstance(vars(value).get("dtype"), np.dtype)
    return callable(value) and not isinstance(value, types.GenericAlias)


@pytest.mark.parametrize("name", SHOWN)
def test_public_functions_show_an_example(name):
    module = importlib.import_module(f"phlox.{name}")
    public = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    values = {n: getattr(module, n) for n in public if not n.endswith("_p")}
    bare = [n for n, v in values.items() if needs_example(v) and ">>>" not in (v.__doc__ or "")]
    assert not bare, f"phlox.{name}: no example of {', '.join(bare)}"


#: Where a function has its meaning from.
MIRRORED = re.compile(r"(?<!phlox\.)\b(numpy|scipy|jax)\.\w|StableHLO|CHLO|LAPACK")


@pytest.mark.parametrize("name", [n for n in SHOWN if n != "nn"])
def test_public_functions_name_what_they_mirror(name):
    module = importlib.import_module(f"phlox.{name}")
    public = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    values = {n: getattr(module, n) for n in public if not n.endswith("_p")}
    functions = {n: v for n, v in values.items() if needs_example(v) and not isinstance(v, type)}
    ours = {n: v for n, v in functions.items() if (v.__module__ or "").startswith("phlox")}
    bare = [n for n, v in ours.items() if not MIRRORED.search((v.__doc__ or "").split(">>>")[0])]
    assert not bare, f"phlox.{name}: what do these mirror? {', '.join(bare)}"


OPERATION = re.compile(r"elementwise \((StableHLO|CHLO)'s ``(\w+)``\)")


def elementwise_of_lax():
    """(function, dialect, operation) of the functions of lax that are said to be one operation."""
    for name, value in vars(phlox.lax).items():
        found = OPERATION.search(getattr(value, "__doc__", None) or "")
        if found:
            yield name, found[1].lower(), found[2]


@pytest.mark.parametrize("name, dialect, operation", list(elementwise_of_lax()))
def test_elementwise_functions_are_lowered_to_what_they_mirror(name, dialect, operation):
    function = getattr(phlox.lax, name)
    for dtype, count in itertools.product(("float32", "int32", "complex64"), (1, 2)):
        arguments = [np.ones(2, dtype)] * count
        with contextlib.suppress(phlox.errors.PhloxError, TypeError):
            text = phlox.jit(function, keep_unused=True).lower(*arguments).as_text()
            assert f"{dialect}.{operation}" in text
            return
    pytest.fail(f"no arguments for lax.{name}")
