"""Submodules that are imported when they are first asked for, so that `import phlox` does not wait for all of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType


def submodules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """The ``__getattr__`` of a package with these submodules."""
    known = frozenset(names)

    def __getattr__(name: str) -> ModuleType:
        if name in known:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    return __getattr__
