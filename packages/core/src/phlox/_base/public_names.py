"""Names of public modules: those imported at first access, and errors for those that are not there.

Lazy imports keep `import phlox` fast: few programs need all modules.
"""

from __future__ import annotations

import builtins
import importlib
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .name_errors import MissingImportError, MissingNameError, UnknownNameError


class Import:
    """An import statement that waits, ``from home import name``, in a module of a package."""

    __slots__ = ("home", "name", "package")

    def __init__(self, home: str, name: str, package: str):
        self.home, self.name, self.package = home, name, package

    def load(self) -> Any:
        """Carries the statement out."""
        if self.home.strip("."):
            return getattr(importlib.import_module(self.home, self.package), self.name)
        return importlib.import_module(f"{self.home}{self.name}", self.package)  # from . import name


class _Home:
    """What import statements in a block of `on_demand` get instead of a module."""

    def __init__(self, name: str, package: str):
        self._name, self._package = name, package

    def __getattr__(self, name: str) -> Import:
        return Import(self._name, name, self._package)


#: names of modules that were listed by `on_demand`, until `publish` takes them
_waiting: dict[str, dict[str, Import]] = {}
_lock = threading.RLock()


class on_demand:
    """Import statements in a block of it, ``from .x import y``, are carried out when `y` is first read.

    They are ordinary statements for type checkers, editors, packagers and readers. `publish` must follow. The value of
    the context is a dict, which has the statements by the names that they define, once the block has ended.

    Args:
      module: the name of the module that has the block.

    >>> import sys, types
    >>> sys.modules["circle"] = module = types.ModuleType("circle")
    >>> module.on_demand = on_demand
    >>> exec("with on_demand('circle'):\\n    from math import tau", vars(module))
    >>> publish("circle")
    >>> "tau" in vars(module), round(module.tau, 2), "tau" in vars(module)
    (False, 6.28, True)
    """

    def __init__(self, module: str):
        self._module = module
        self._namespace = vars(sys.modules[module])

    def __enter__(self) -> dict[str, Import]:
        _lock.acquire()  # imports of other threads go on, but blocks follow each other: each restores `__import__`
        self._import = builtins.__import__
        builtins.__import__ = self._list
        return _waiting.setdefault(self._module, {})

    def _list(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        # Imports of other modules that happen in the block, in this thread or another one, are carried out.
        if globals is not self._namespace:
            return self._import(name, globals, locals, fromlist, level)
        return _Home("." * level + name, self._namespace["__package__"])

    def __exit__(self, *error: object) -> None:
        builtins.__import__ = self._import
        _lock.release()
        # The statements have bound placeholders to their names. They are taken out, so that reading them calls
        # `__getattr__`.
        names = [name for name, value in self._namespace.items() if type(value) is Import]
        _waiting[self._module].update((name, self._namespace.pop(name)) for name in names)


def publish(module: str, other: Callable[[str], Any] | None = None) -> None:
    """Gives a public module ``__getattr__`` and ``__dir__``: errors for missing names say what was meant.

    It is called at the end of the module, with its name.

    They are set from here, because type checkers accept any name of a module that defines ``__getattr__``.

    Args:
      module: the name of the module. Names that it lists by `on_demand` are imported at first access.
      other: a function of a name that returns a further object, or None.

    >>> import sys, types
    >>> sys.modules["layers"] = module = types.ModuleType("layers")
    >>> module.Linear = object()
    >>> publish("layers")
    >>> module.Lineer
    Traceback (most recent call last):
    phlox.errors.UnknownNameError: module 'layers' has no attribute 'Lineer'. Did you mean: 'Linear'?...
    """
    namespace = vars(sys.modules[module])
    imports = _waiting.pop(module, {})

    def __getattr__(name: str) -> Any:
        entry = imports.get(name)
        if entry is None:
            if name == "__path__":  # each `from module import ...` asks whether the module is a package
                raise AttributeError(name)
            value = other(name) if other is not None else None
            if value is None:
                raise _unknown(module, name)
            return value
        try:
            value = entry.load()
        except MissingImportError:  # of a door, see doors.py
            raise _closed(f"{module}.{name}") from None
        # From now on the name is an ordinary one, and `__getattr__` is not called for it.
        namespace[name] = value
        return value

    def __dir__() -> list[str]:
        # Private names are left out, so that completion shows the API and nothing else.
        public = namespace["__all__"] if "__all__" in namespace else [name for name in namespace if name[0] != "_"]
        return sorted({*public, *imports})

    namespace["__getattr__"] = __getattr__
    namespace.setdefault("__dir__", __dir__)
    if imports:
        # Without a list, ``from module import *`` would leave out names that are not imported yet.
        namespace.setdefault("__all__", [name for name in __dir__() if name[0] != "_"])
    if module in _PARENTS and not any(isinstance(finder, _AbsentModules) for finder in sys.meta_path):
        sys.meta_path.append(_AbsentModules())  # without its base class, whose import takes 3 ms


def _unknown(module: str, name: str) -> Exception:
    """The error for a name that a public module lacks; in an import statement an `ImportError`."""
    from . import absent  # here, to keep `import phlox` fast

    # Frame 0 is this function, 1 `__getattr__`, 2 the code that reads the name.
    caller = sys._getframe(2)
    # Python turns an AttributeError into an ImportError without our text, so the right class is raised here.
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
