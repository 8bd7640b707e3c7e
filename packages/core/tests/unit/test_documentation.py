"""The examples of docstrings run, in every module of core; and public functions have one.

An example need not import NumPy, phlox and phlox.numpy: np, phlox and jnp are there.
"""

import doctest
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp

SOURCE = Path(phlox.__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def modules():
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def documented(module):
    """(name, object) for what the module defines, methods included, and what a module brings in on demand."""
    seen = set()
    for name in sorted({*dir(module), *vars(module)}):
        value = getattr(module, name, None)
        if getattr(value, "__module__", None) != module.__name__ or id(value) in seen:
            continue
        seen.add(id(value))
        yield name, value
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                yield f"{name}.{attribute}", member


def examples(name, value, module):
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or ">>>" not in text:
        return None
    # The docstrings of phlox.tree are those of phlox.tree_util, whose examples call functions by their names there.
    aliases = vars(phlox.tree_util) if module is phlox.tree else {}
    names = {"np": np, "phlox": phlox, "jnp": jnp, **aliases, **vars(module)}
    return doctest.DocTestParser().get_doctest(text, names, f"{module.__name__}.{name}", module.__file__, 0)


@pytest.mark.parametrize("name", list(modules()))
def test_examples_of_docstrings(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    tests = [examples("", module, module), *(examples(n, value, module) for n, value in documented(module))]
    for test in filter(None, tests):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_examples_of_what_comes_on_demand_are_found():
    found = {name for name, value in documented(jnp) if examples(name, value, jnp)}
    assert {"sin", "add", "sinc"} <= found  # imported with the module, and on demand


#: Nothing in them has an example yet, or not everything.
UNSHOWN = ("phlox.api_util", "phlox.example_libraries")
MODULES = [name for name in modules() if "._" not in name and not name.startswith(UNSHOWN)]
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


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_have_an_example(name):
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    public = {name: getattr(module, name) for name in names}
    functions = {n: v for n, v in public.items() if callable(v) and not inspect.isclass(v) and not n.endswith("_p")}
    bare = [n for n, v in functions.items() if n not in WITHOUT and ">>>" not in (v.__doc__ or "")]
    assert not bare, f"no example: {', '.join(bare)}"
