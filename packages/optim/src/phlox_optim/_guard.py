"""The public names of phlox_optim's copy of optax, with a check for objects of the user's own optax.

Those work with jax arrays only. Optax accepts anything with `init` and `update`, so without the check mixing the two
would fail later, inside jax, with an unclear error about types.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import phlox
from phlox.errors import AdoptionError, ArgumentError

from ._rates import rate_of_arguments, with_rate
from .errors import MissingExtraError


def _optax() -> Any:
    try:
        return phlox.adopt("optax")
    except AdoptionError as error:
        command = "pip install optax"
        raise MissingExtraError(
            "phlox_optim runs optax, which is not installed here", instead=command, command=command, name="optax"
        ) from error


def public(name: str) -> Any:
    """The object `name` of the copy; its functions raise for arguments that belong to plain optax."""
    optax = _optax()
    try:
        attribute = getattr(optax, name)
    except AttributeError:
        import difflib

        close = difflib.get_close_matches(name, names(), 1, 0.7)
        meant = f". Did you mean: {close[0]!r}?" if close else ""
        raise AttributeError(
            f"module 'phlox_optim' has no attribute {name!r}, and neither has optax {optax.__version__}{meant}"
        ) from None
    return _guarded(name, attribute) if inspect.isfunction(attribute) else attribute


def names() -> list[str]:
    """All public names of the copy."""
    return [name for name in dir(_optax()) if not name.startswith("_")]


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    takes_rate = next(iter(inspect.signature(function).parameters), None) == "learning_rate"

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for argument in (*args, *kwargs.values()):
            _refuse_plain(name, argument)
        result = function(*args, **kwargs)
        if takes_rate:
            return with_rate(result, args[0] if args else kwargs["learning_rate"])
        return with_rate(result, rate_of_arguments(iter((*args, *kwargs.values()))))

    # The names by which pickle finds it.
    call.__module__, call.__qualname__ = "phlox_optim", name
    return call


def _refuse_plain(name: str, argument: Any) -> None:
    kind = type(argument)
    if _is_plain(kind) or _is_plain(argument):
        raise _mixed(name, argument)
    parts = argument.values() if kind is dict else argument if kind in (list, tuple) else ()
    for part in parts:
        if _is_plain(type(part)) or _is_plain(part):
            raise _mixed(name, part)


def _is_plain(thing: Any) -> bool:
    """Whether a class or function is one of plain optax."""
    module = getattr(thing, "__module__", None)
    return isinstance(module, str) and module.startswith("optax.")


def _mixed(name: str, thing: Any) -> ArgumentError:
    what = getattr(thing, "__qualname__", f"a {type(thing).__name__}")
    return ArgumentError(
        f"{name} got {what} of plain optax, which runs on jax and knows nothing of phlox's arrays",
        instead="make it with phlox_optim, for example: import phlox_optim as optax",
        argument=thing,
    )
