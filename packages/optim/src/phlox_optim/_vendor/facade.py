"""Modules that present phlox under the names of jax, for the private copy of optax only.

A view looks names up in the phlox module of the same path, so ``jax.numpy.sin`` is ``phlox.numpy.sin`` itself. For
names that phlox does not have it raises an error with the name; during the import of optax it returns a placeholder
instead, so that one missing name does not break all of optax.

Views are importable modules, so that functions of optax can be pickled as usual.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import Any, NoReturn

from ..errors import MissingNameError

#: Values that differ from phlox's own, by full name. Optax selects code by jax's version; phlox implements this one.
REPLACED = {"jax.__version__": "0.10.2"}


class _Importing(threading.local):
    """The number of modules of the copy that this thread is importing."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


importing = _Importing()


class View(ModuleType):
    """A module of phlox as the jax module `jax_name`. `target` is None if phlox has no such module."""

    def __init__(self, name: str, jax_name: str, target: ModuleType | None):
        super().__init__(name, f"{jax_name}, as phlox has it")
        self._jax_name = jax_name
        self._target = target
        self.__path__: list[str] = []  # makes it a package, which may have submodules

    def __getattr__(self, name: str) -> Any:
        full = f"{self._jax_name}.{name}"
        if full in REPLACED:
            return REPLACED[full]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            found = getattr(self._target, name)
        except AttributeError:
            if importing.depth:
                return Missing(full)
            raise missing(full) from None
        if isinstance(found, ModuleType):
            found = importlib.import_module(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found


class Missing:
    """A placeholder for a name of jax that phlox lacks, used by optax while it is being imported.

    It can be a decorator, an annotation or a default; once optax is imported, using it raises `MissingNameError`.
    """

    def __init__(self, jax_name: str):
        self._jax_name = jax_name

    def _use(self, part: str = "") -> Missing:
        if not importing.depth:
            raise missing(self._jax_name + part)
        return Missing(self._jax_name + part)

    def __call__(self, *args: Any, **kwargs: Any) -> Missing:
        return self._use()

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._use("." + name)

    def __getitem__(self, item: Any) -> Missing:
        return self._use()

    def __or__(self, other: Any) -> Missing:
        return self._use()

    __ror__ = __or__

    def __instancecheck__(self, instance: Any) -> NoReturn:
        raise missing(self._jax_name)


def missing(jax_name: str) -> MissingNameError:
    """The error for the use of a name that phlox does not have."""
    return MissingNameError(
        f"this part of optax needs {jax_name}, and phlox has no {jax_name.replace('jax', 'phlox', 1)} yet",
        instead="the names in phlox_optim.__all__ do without it",
        jax_name=jax_name,
    )
