"""How elementwise NumPy functions are stated: a name, how arguments are promoted, what is computed, a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._api.jit.jit import jit

if TYPE_CHECKING:
    from ..._api.jit.stages import Jitted
    from ...typing import Array, ArrayLike

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

Prepare = Callable[..., Sequence[Any]]


def _shown(value: Any, dtype: str, weak: bool) -> str:
    return f"Array({value}, dtype={dtype}{', weak_type=True' if weak else ''})"


def float_32(value: str, weak: bool = True) -> str:
    """How a result printed as `value`, computed from Python floats, looks in an example (`weak`: as most are)."""
    return _shown(value, "float32", weak)


def int_32(value: str) -> str:
    """The same for Python integers."""
    return _shown(value, "int32", weak=True)


def boolean(value: bool, weak: bool = True) -> str:
    """The same for a truth value."""
    return _shown(value, "bool", weak)


def unary(
    name: str, prepare: Prepare, apply: Callable[[Any], Any], what: str, example: str, result: str
) -> Jitted[[ArrayLike], Array]:
    """``name(x)``: `apply` to the argument that ``prepare(name, x)`` gives."""

    def function(x: ArrayLike, /) -> Array:
        return apply(*prepare(name, x))

    return _finish(function, name, what, example, result)


def binary(
    name: str, prepare: Prepare, apply: Callable[[Any, Any], Any], what: str, example: str, result: str
) -> Jitted[[ArrayLike, ArrayLike], Array]:
    """``name(x, y)``: `apply` to the arguments that ``prepare(name, x, y)`` gives."""

    def function(x: Any, y: Any, /) -> Array:
        return apply(*prepare(name, x, y))

    what += ". Arguments are promoted to one dtype and broadcast"
    return _finish(function, name, what, example, result)


def _finish(function: Callable[..., Any], name: str, what: str, example: str, result: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.numpy"
    mirrored = f" (as ``numpy.{name}``)" if hasattr(np, name) else ""
    function.__doc__ = (
        f"{what}, elementwise{mirrored}.\n\n>>> import phlox.numpy as jnp\n>>> jnp.{name}({example})\n{result}\n"
    )
    return jit(function, inline=True)
