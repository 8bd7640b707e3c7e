"""Whose expressions the strict flags of promotion concern: those of users, and not those of the library.

``numpy_rank_promotion`` and ``numpy_dtype_promotion`` make an error of what a user may not have meant. A function of
the library checks what it is given, but what it does inside is not what the user wrote. So a library function that is
called by another one runs with the lenient values; a function of the user's that the library calls runs with the
user's again.

Where the flags are lenient, which is almost always, nothing of this happens.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from . import config

_F = TypeVar("_F", bound=Callable[..., Any])
_LENIENT = {"numpy_rank_promotion": "allow", "numpy_dtype_promotion": "standard"}

#: the user's flags, while the body of a library function runs under strict ones
_users: ContextVar[dict[str, str] | None] = ContextVar("phlox_strict_flags", default=None)
_inside = _users.get


def run(ours: bool, fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """``fun(*args, **kwargs)``, a function of the library (`ours`) or of the user, under the flags that concern it."""
    users = _inside()
    settings = config.current()
    if users is None and (not ours or not settings.strict):
        return fun(*args, **kwargs)
    if not ours:
        changes, now = users, None
    elif users is None:  # called by the user: it checks its own arguments
        changes, now = {}, {name: getattr(settings, name) for name in _LENIENT}
    else:
        changes, now = _LENIENT, users
    token = _users.set(now)
    try:
        with config.scope(**changes or {}):
            return fun(*args, **kwargs)
    finally:
        _users.reset(token)


@contextlib.contextmanager
def lenient_promotion(library: bool = True) -> Iterator[None]:
    """The expressions in this context are those of a library on top of phlox, or with False those of its user again.

    For libraries that compute on a user's behalf, as layers do: ``jax_numpy_rank_promotion`` and
    ``jax_numpy_dtype_promotion`` concern what the user wrote, and not how the library broadcasts.

    Args:
      library: whether what follows is the library's. With False, in a context of the first kind, the user's flags hold
        again: for functions of the user's that the library calls.

    Returns:
      A context manager.

    >>> import phlox
    >>> import phlox.numpy as jnp
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
    token = _users.set(now)
    try:
        with config.scope(**changes or {}):
            yield
    finally:
        _users.reset(token)


def composed(fun: _F) -> _F:
    """Decorator for functions of the library that call others without being jitted themselves."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _inside() is None and not config.current().strict:
            return fun(*args, **kwargs)
        return run(True, fun, args, kwargs)

    return call  # type: ignore[return-value]
