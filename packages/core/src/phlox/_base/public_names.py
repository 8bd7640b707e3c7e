"""Names of public modules: those imported at first access, and errors for those that are not there.

Lazy imports keep `import phlox` fast: few programs need all modules.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .errors import MissingImportError, MissingNameError, UnknownNameError


def publish(
    module: str,
    submodules: str = "",
    members: dict[str, str] | None = None,
    other: Callable[[str], Any] | None = None,
) -> None:
    """Gives a public module ``__getattr__`` and ``__dir__``: errors for missing names say what was meant.

    It is called at the end of the module, with its name.

    They are set from here, because type checkers accept any name of a module that defines ``__getattr__``.

    Args:
      module: the name of the module.
      submodules: names of submodules that are imported at first access, separated by blanks.
      members: further submodules that are imported at first access -> the names that are taken from them. The package
        imports all of these names again under ``if TYPE_CHECKING``; tests/repository/test_lazy_imports.py compares.
      other: a function of a name that returns a further object, or None.

    Returns:
      None.

    >>> import sys, types
    >>> sys.modules["layers"] = module = types.ModuleType("layers")
    >>> module.Linear = object()
    >>> publish("layers")
    >>> module.Lineer
    Traceback (most recent call last):
    phlox.errors.UnknownNameError: module 'layers' has no attribute 'Lineer'. Did you mean: 'Linear'?...
    """
    namespace = vars(sys.modules[module])
    homes = {name: name for name in submodules.split()}
    for home, names in (members or {}).items():
        homes.update(dict.fromkeys(names.split(), home))

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            value = other(name) if other is not None else None
            if value is None:
                raise _unknown(module, name)
            return value
        try:
            imported = importlib.import_module(f"{module}.{home}")
        except MissingImportError:  # of a door, see doors.py
            raise _closed(f"{module}.{name}") from None
        value = imported if home == name else getattr(imported, name)
        namespace[name] = value
        return value

    def __dir__() -> list[str]:
        # Private names are left out, so that completion shows the API and nothing else.
        if not homes and "__all__" in namespace:
            return list(namespace["__all__"])
        return sorted(name for name in {*namespace, *homes} if name[0] != "_" or name in homes)

    namespace["__getattr__"] = __getattr__
    namespace.setdefault("__dir__", __dir__)
    if module in _PARENTS and not any(isinstance(finder, _AbsentModules) for finder in sys.meta_path):
        sys.meta_path.append(_AbsentModules())  # without its base class, whose import takes 3 ms


def _unknown(module: str, name: str) -> Exception:
    """The error for a name that a public module lacks; in an import statement an `ImportError`."""
    from . import absent  # here, to keep `import phlox` fast

    caller = sys._getframe(2)
    if absent.imports(caller.f_code.co_code, caller.f_lasti):
        what, instead = absent.explain(module, name, dir(sys.modules[module]))
        return MissingImportError(what, instead=instead, **_of_jax(f"{module}.{name}"))
    return UnknownNameError(module, name)


def _closed(full_name: str) -> Exception:
    """The error for a name that phlox-compat has, which is not installed; in an import statement an `ImportError`.

    `hasattr`, and tools that read all names of a module, expect an `AttributeError`.
    """
    from . import absent, doors

    caller = sys._getframe(2)
    in_import = absent.imports(caller.f_code.co_code, caller.f_lasti)
    return doors.not_installed(MissingImportError if in_import else MissingNameError, full_name)


def _of_jax(full_name: str) -> dict[str, Any]:
    return {"jax_name": re.sub(r"^phlox\b", "jax", full_name), "library": ""}


class _AbsentModules:
    """The last finder: says what to use instead of modules of jax that phlox does not have."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if not fullname.startswith("phlox."):
            return
        from . import absent

        if entry := absent.listed(fullname):
            what = f"the program uses {fullname}: {entry[0]}"
            raise MissingImportError(what, instead=entry[1], name=fullname, **_of_jax(fullname))


#: packages of which programs import modules that jax has and phlox has not; `import phlox` alone adds no finder
_PARENTS = ("phlox.experimental", "phlox.extend", "phlox.scipy")
