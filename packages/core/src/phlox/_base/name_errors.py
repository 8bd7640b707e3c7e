"""Errors of names and libraries: names that phlox lacks, and arrays of phlox in the real jax.

They are part of the tree of classes in `errors`.
"""

from __future__ import annotations

import functools
import sys

from . import source
from .errors import PhloxError

__all__ = [
    "AdoptionError",
    "ForeignArrayError",
    "MissingImportError",
    "MissingNameError",
    "UnknownNameError",
]


class ForeignArrayError(PhloxError, ValueError):
    """The real jax, which the program or one of its libraries imports, got an array of phlox.

    Cause: for example optax, imported as it is, with parameters that are arrays of phlox. It is no `TypeError`, because
    jax replaces those by an error that does not say so.
    Fix: the function of the same name in phlox; ``phlox.adopt("optax")`` for the library.
    """


class MissingNameError(PhloxError, AttributeError, NotImplementedError):
    """A program or library that runs on phlox as `jax` uses a name of jax that phlox does not have.

    Attributes: `jax_name`, the full name, such as ``jax.experimental.mosaic``; `library`, the package that uses it.
    Cause: the name is private in jax, or belongs to a part of jax that phlox does not have, or to the package
    phlox-compat, which is not installed.
    Example: ``import jax.experimental.mosaic`` under ``python -m phlox.as_jax``.
    Fix: what the message names; docs/libraries.md lists what runs.
    """

    jax_name: str
    library: str


class MissingImportError(PhloxError, ModuleNotFoundError):
    """As `MissingNameError`, in an import statement, so that ``except ImportError`` catches it."""

    jax_name: str
    library: str


class UnknownNameError(PhloxError, AttributeError):
    """A public module of phlox has no such name.

    The message says what was probably meant, or where NumPy, SciPy or JAX have it. It is composed when it is read,
    because programs also ask with `hasattr`. Attributes: `module`, `name`.

    >>> phlox.numpy.onez
    Traceback (most recent call last):
    phlox.errors.UnknownNameError: module 'phlox.numpy' has no attribute 'onez'. Did you mean: 'ones'?...
    """

    def __init__(self, module: str, name: str):
        # `obj` is not set: with it, Python adds suggestions of its own to tracebacks.
        AttributeError.__init__(self, module, name, name=name)
        self.module = module
        self.where = source.user_location(2)

    def _explained(self) -> tuple[str, str]:
        # Composed when it is read: `hasattr` and `getattr` with a default raise and drop this error often.
        from . import absent

        return absent.explain(self.module, str(self.name), dir(sys.modules[self.module]))

    @functools.cached_property
    def what(self) -> str:  # type: ignore[override]
        return self._explained()[0]

    @functools.cached_property
    def instead(self) -> str:  # type: ignore[override]
        return self._explained()[1]


class AdoptionError(PhloxError, ImportError):
    """phlox cannot stand for jax in this process, or a library that `phlox.adopt` names is not installed.

    Attribute `library` is the name of the package.
    Cause: the real jax was imported before `phlox.as_jax.install()`; a misspelt name.
    Fix: call `install` first, or run ``python -m phlox.as_jax program.py``; install the package.
    """

    library: str


# Tracebacks and pickles then show the public module.
for _name in __all__:
    globals()[_name].__module__ = "phlox.errors"
