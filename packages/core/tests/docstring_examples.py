"""The examples of docstrings of a package: which there are, and whether they run.

An example need not import NumPy, phlox and phlox.numpy: np, phlox and jnp are there.
"""

import doctest
import importlib
import inspect

import numpy as np

import phlox
import phlox.numpy as jnp
from public_modules import is_door

FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE


def modules(folder):
    """The names of the modules of the package in `folder`, without the doors to another package."""
    for file in sorted(folder.rglob("*.py")):
        if is_door(file):
            continue
        parts = file.relative_to(folder.parent).with_suffix("").parts
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
    """The examples in the docstring of `value`; None if it has none."""
    text = getattr(value, "__doc__", None)
    if not isinstance(text, str) or ">>>" not in text:
        return None
    # The docstrings of phlox.tree are those of phlox.tree_util, whose examples call functions by their names there.
    aliases = vars(phlox.tree_util) if module is phlox.tree else {}
    names = {"np": np, "phlox": phlox, "jnp": jnp, **aliases, **vars(module)}
    return doctest.DocTestParser().get_doctest(text, names, f"{module.__name__}.{name}", module.__file__, 0)


def failures(name):
    """Runs the examples of a module; returns how many fail."""
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    tests = [examples("", module, module), *(examples(n, value, module) for n, value in documented(module))]
    for test in filter(None, tests):
        runner.run(test)
    return runner.summarize(verbose=False).failed


def functions_without(name):
    """The public functions of a module that have no example."""
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    public = {name: getattr(module, name, None) for name in names}  # None: of a package that is not installed
    functions = {n: v for n, v in public.items() if callable(v) and not inspect.isclass(v) and not n.endswith("_p")}
    return [n for n, v in functions.items() if ">>>" not in (v.__doc__ or "")]
