"""Applies the strict promotion flags to the user's expressions only, and not to those inside of the library.

``numpy_rank_promotion`` and ``numpy_dtype_promotion`` report promotions that a user may not have intended. A library
function that the user calls checks its arguments by these flags. A library function that another one calls runs with
the lenient values, and a user's function that the library calls runs with the user's values again.

If the user's flags are lenient, as they are by default, no settings are changed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from . import config
from .scoped import scoped

_F = TypeVar("_F", bound=Callable[..., Any])
_LENIENT = {"numpy_rank_promotion": "allow", "numpy_dtype_promotion": "standard"}

#: the user's flags, while the body of a library function runs under strict ones
_users: ContextVar[dict[str, str] | None] = ContextVar("phlox_strict_flags", default=None)
_inside = _users.get


def run(ours: bool, fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """``fun(*args, **kwargs)`` under the flags for a function of the library (`ours`) or of the user."""
    users = _inside()
    settings = config.current()
    # Both flags are lenient, as they nearly always are: no context is set.
    if users is None and (not ours or not settings.strict):
        return fun(*args, **kwargs)
    if not ours:
        # The user's function gets the user's flags; what it calls is checked again.
        changes, now = users, None
    elif users is None:  # called by the user: it checks its own arguments
        changes, now = {}, {name: getattr(settings, name) for name in _LENIENT}
    # A library function inside of another one.
    else:
        changes, now = _LENIENT, users
    with _flags(changes, now):
        return fun(*args, **kwargs)


@contextlib.contextmanager
def _flags(changes: dict[str, str] | None, users: dict[str, str] | None) -> Iterator[None]:
    """A context with these changes of flags, in which `users` are the user's."""
    with scoped(_users, users), config.scope(**changes or {}):
        yield


@contextlib.contextmanager
def lenient_promotion(library: bool = True) -> Iterator[None]:
    """A context for the expressions of a library on top of phlox, which the strict promotion flags do not apply to.

    The flags ``jax_numpy_rank_promotion`` and ``jax_numpy_dtype_promotion`` are for expressions that the user wrote,
    and not for broadcasting inside of a library, such as one of layers.

    Args:
      library: True for expressions of the library. False, inside of such a context, restores the user's flags: for a
        user's function that the library calls.

    Returns:
      A context manager.

    >>> with phlox.numpy_rank_promotion("raise"), lenient_promotion():
    ...     y = jnp.ones((2, 3)) + jnp.ones(3)
    >>> y.shape
    (2, 3)
    """
    users = _inside()
    settings = config.current()
    if users is None and (not library or not settings.strict):
        yield
        return
    changes, now = users, None
    if library:
        changes, now = _LENIENT, users or {name: getattr(settings, name) for name in _LENIENT}
    with _flags(changes, now):
        yield


def composed(fun: _F) -> _F:
    """Decorator for library functions that call others and are not jitted: `run` does this for jitted functions."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _inside() is None and not config.current().strict:
            return fun(*args, **kwargs)
        return run(True, fun, args, kwargs)

    return call  # type: ignore[return-value]


def lenient(fun: _F) -> _F:
    """Decorator for library functions whose body is all the library's own: `lenient_promotion` around each call."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _inside() is None and not config.current().strict:
            return fun(*args, **kwargs)
        with lenient_promotion():
            return fun(*args, **kwargs)

    return call  # type: ignore[return-value]


def users(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function for a library to call: its expressions obey the user's flags."""

    # `updated=()`: attributes of a jitted function must not be copied to a function that is not.
    @functools.wraps(fun, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(False, fun, args, kwargs)

    return call
