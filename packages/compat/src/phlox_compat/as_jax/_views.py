"""Modules that present phlox under the names of jax.

A view looks names up in the phlox module of the same path: ``jax.numpy.sin`` is ``phlox.numpy.sin`` itself. Names that
only libraries use come from the table in `phlox_compat.jax_internals`. The first lookup stores the name in the view,
so later ones cost what they cost in any module.

For a name that phlox lacks there are two answers. While a library is imported, it gets a placeholder, so that one name
which it may never use does not break all of it. In any other place, and where the library itself asks whether the name
exists (``try``, ``hasattr``), the answer is an error.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

from phlox.errors import MissingImportError, MissingNameError
from phlox.extend import Location

from .. import jax_internals
from .._core import reason


class View(ModuleType):
    """A module of phlox as the module `jax_name` of jax.

    `find_target` returns the module of phlox, or None if phlox has no module of this path. It is called once, by the
    first lookup: the modules that ``import jax`` enters into `sys.modules` cost no import before their first use.
    """

    _jax_name: str
    _find_target: Callable[[], ModuleType | None]

    def __init__(self, name: str, jax_name: str, find_target: Callable[[], ModuleType | None]):
        super().__init__(name)
        self._jax_name = jax_name
        self._find_target = find_target
        self.__path__: list[str] = []  # makes it a package: submodules can be imported

    @functools.cached_property
    def _target(self) -> ModuleType | None:
        return self._find_target()

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._target.__doc__ if self._target is not None else f"{self._jax_name}, as libraries use it"

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # without it, ``from jax.lax import *`` takes only names that were looked up before
            return [name for name in dir(self) if not name.startswith("_")]
        full = f"{self._jax_name}.{name}"
        try:
            value = jax_internals.find(full) if jax_internals.has(full) else self._of_target(name)
        except AttributeError:
            if name.startswith("__"):
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name) from None
            frame = sys._getframe(1)
            if jax_internals.has_module(full) and full not in jax_internals.UNAVAILABLE:
                return importlib.import_module(f"{self.__name__}.{name}")
            if excused(frame):
                value = Missing(full)
            else:
                raise missing(full, frame) from None
        setattr(self, name, value)
        return value

    def _of_target(self, name: str) -> Any:
        if self._target is not None and not _is_own_import(self._target, name):
            try:
                value = getattr(self._target, name)
            except AttributeError:
                pass
            else:
                # A module that the target only imports, such as `config` in `phlox.cache`, is no submodule of the view.
                if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in ("phlox", "phlox_compat"):
                    with contextlib.suppress(MissingImportError):
                        return importlib.import_module(f"{self.__name__}.{name}")
                return value
            if _has_submodule(self._target, name):
                # In JAX, a module that anybody imported is an attribute of its package: libraries read some that they
                # do not import (Keras: `jax.experimental.multihost_utils`).
                return importlib.import_module(f"{self.__name__}.{name}")
        return jax_internals.forwarded(self._jax_name, name)

    def __dir__(self) -> list[str]:
        shown = {name for name in vars(self) if not name.startswith("_") or name.startswith("__")}
        shown |= set(jax_internals.names_of(self._jax_name))
        public = dir(self._target) if self._target is not None else ()
        return sorted(shown | {name for name in public if not _is_own_import(self._target, name)})

    def __repr__(self) -> str:
        import phlox

        file = getattr(self._target, "__file__", None)
        where = f", from {file!r}" if file is not None else ""
        return f"<module {self.__name__!r}: phlox {phlox.__version__} as jax {jax_internals.JAX_VERSION}{where}>"

    def __reduce__(self) -> Any:  # cloudpickle stores modules by name
        return importlib.import_module, (self.__name__,)


def _is_own_import(module: ModuleType | None, name: str) -> bool:
    """Whether `name` is another module, which a private module imports for itself: `config` in `phlox._xla.disk`.

    treescope follows all modules below jax, so that a name in `dir` must be there.
    """
    return module is not None and "._" in module.__name__ and isinstance(vars(module).get(name), ModuleType)


def _has_submodule(package: ModuleType, name: str) -> bool:
    if not hasattr(package, "__path__") or name.startswith("_"):
        return False
    try:
        return importlib.util.find_spec(f"{package.__name__}.{name}") is not None
    except ImportError:  # phlox's error for modules of jax that are not there
        return False


class _Placeholders(type):
    """Class of `Missing`, so that a class may derive from a placeholder without its being a class of anything else."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is cls


class Missing(metaclass=_Placeholders):
    """A placeholder for a name of jax that phlox lacks, which a library read while it was imported.

    It can be a decorator, an annotation, a default or a base class; anything else raises `MissingNameError`.
    """

    def __init__(self, jax_name: str):
        self._jax_name = jax_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if not _is_importing(frame):
            raise missing(self._jax_name, frame)
        decorated = len(args) == 1 and not kwargs and callable(args[0])
        return args[0] if decorated else Missing(self._jax_name)

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self._jax_name.rpartition(".")[2]
        if name == "__module__":
            return self._jax_name.rpartition(".")[0]
        if name.startswith("__"):
            raise AttributeError(name)
        frame = sys._getframe(1)
        if not _is_importing(frame):
            raise missing(f"{self._jax_name}.{name}", frame)
        return Missing(f"{self._jax_name}.{name}")

    def __getitem__(self, item: Any) -> Missing:
        return self

    def __setitem__(self, item: Any, value: Any) -> None:
        """Accepted: libraries enter rules into jax's tables while they are imported."""

    def __or__(self, other: Any) -> Any:
        return other

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        name = self._jax_name

        def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
            raise missing(name, sys._getframe(1))

        return (type(name.rpartition(".")[2], (), {"__new__": refuse}),)

    def __instancecheck__(self, instance: Any) -> bool:
        return False  # nothing is an instance of a class that is not there

    def __subclasscheck__(self, cls: type) -> bool:
        return False

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self._jax_name}, which phlox lacks>"


def missing(jax_name: str, frame: FrameType | None, importing: bool = False) -> MissingNameError | MissingImportError:
    """The error for the use of a name that phlox does not have, at the line that `frame` executes."""
    imports = importing or (frame is not None and _operation(frame) in ("IMPORT_FROM", "IMPORT_NAME"))
    library = library_of(frame)
    why, instead = reason(jax_name)
    kind: Any = MissingImportError if imports else MissingNameError
    return kind(
        f"{library or 'the program'} uses {jax_name}: {why}",
        instead=instead,
        where=Location(frame.f_code, frame.f_lasti, ()) if frame is not None else None,
        jax_name=jax_name,
        library=library,
    )


def library_of(frame: FrameType | None) -> str:
    """The name of the package whose code `frame` executes; an empty string for the program itself."""
    name = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    name = name.removeprefix("phlox.adopted.").partition(".")[0]
    return "" if name == "__main__" else name


def importer() -> FrameType | None:
    """The frame with the import statement that is being executed."""
    frame: FrameType | None = sys._getframe(1)
    others = (os.path.dirname(__file__), "<frozen importlib", importlib.__file__)
    while frame is not None and (frame.f_code.co_filename.startswith(others) or "__import__" in frame.f_code.co_name):
        frame = frame.f_back
    return frame


def _is_importing(frame: FrameType) -> bool:
    """Whether the module of `frame` is being imported."""
    return bool(getattr(frame.f_globals.get("__spec__"), "_initializing", False))


def excused(frame: FrameType | None) -> bool:
    """Whether a missing name may be a placeholder: read by a module that is being imported, and not in a question."""
    return frame is not None and _is_importing(frame) and not _asks(frame)


def _operation(frame: FrameType) -> str:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""


def _asks(frame: FrameType) -> bool:
    """Whether the line is in a ``try``, or calls ``hasattr`` or ``getattr``, so that an error is an answer."""
    if _operation(frame) not in ("IMPORT_FROM", "IMPORT_NAME", "LOAD_ATTR", "LOAD_METHOD"):
        return True
    return any(start <= frame.f_lasti < end for start, end in _guarded(frame.f_code))


def _guarded(code: CodeType) -> list[tuple[int, int]]:
    """The parts of `code` with an exception handler: first offset and the one after the last, in bytes.

    The table is that of Python's Objects/exception_handling_notes.txt: four numbers an entry, 6 bits a byte.
    """
    numbers: list[int] = []
    value = 0
    for byte in code.co_exceptiontable:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    return [(2 * start, 2 * (start + size)) for start, size in zip(numbers[::4], numbers[1::4], strict=True)]
