"""Lazy imports of submodules, which keep `import phlox` fast: few programs need all modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def on_demand(
    package: str, submodules: str, members: dict[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports these names at first access.

    `submodules` are names of submodules, separated by blanks; `members` maps further submodules to the names that are
    taken from them. The package imports the names again under ``if TYPE_CHECKING``, for type checkers;
    tests/repository/test_lazy_imports.py compares.
    """
    homes = {name: name for name in submodules.split()}
    for home, names in (members or {}).items():
        homes.update(dict.fromkeys(names.split(), home))

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module = importlib.import_module(f"{package}.{home}")
        value = module if home == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        # Private names are left out, so that completion shows the API and nothing else.
        return sorted(name for name in {*vars(sys.modules[package]), *homes} if name[0] != "_" or name in homes)

    return __getattr__, __dir__
