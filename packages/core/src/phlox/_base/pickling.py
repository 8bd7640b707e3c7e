"""Pickles of objects that a module has under a name, and whose classes cannot be pickled: they are found again by it.

Functions that wrap a function of the user refer to them. cloudpickle stores such functions with all that they refer to.
"""

from __future__ import annotations

import copyreg
import importlib
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .tree_registry import flatten

_PACKAGE = __name__.partition(".")[0]


def _variable(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _reduce(value: Any) -> tuple[Callable[..., Any], tuple[str, str]]:
    """The variable of a module of phlox that holds `value`."""
    for path, module in list(sys.modules.items()):
        if path.partition(".")[0] == _PACKAGE:
            for name, variable in list(vars(module).items()):
                if variable is value:
                    return _variable, (path, name)
    raise TypeError(f"cannot pickle {type(value).__name__!r} object")


for _class in (ContextVar, type(flatten)):
    copyreg.pickle(_class, _reduce)
