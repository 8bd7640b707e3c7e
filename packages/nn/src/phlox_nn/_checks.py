"""Checks of the configuration and the inputs of layers. Errors name the layer, and its path if it is bound."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import Any, NoReturn, TypeGuard

import phlox.numpy as jnp
from phlox import typeof
from phlox.dtypes import prng_key
from phlox.errors import ArgumentError, ShapeError


def size(layer: Any, **values: Any) -> None:
    """Raises `ArgumentError` unless each value is a positive integer."""
    size_of(type(layer).__name__, **values)


def size_of(what: str, **values: Any) -> None:
    """Raises `ArgumentError` unless each value is a positive integer; `what` is the name of the function or layer."""
    for name, value in values.items():
        if isinstance(value, bool) or not is_index(value) or value <= 0:
            raise ArgumentError(f"{what}: {name} must be a positive integer, got {value!r}", **{name: value})


def part(layer: Any, **values: Any) -> None:
    """Raises `ArgumentError` unless each value is a number from 0 to 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
            raise ArgumentError(
                f"{type(layer).__name__}: {name} must be a number from 0 to 1, got {value!r}", **{name: value}
            )


def key(layer: Any, method: str, value: Any) -> None:
    """Raises `ArgumentError` for a `value` that is clearly no PRNG key, such as a seed."""
    if not hasattr(value, "dtype") or (not jnp.issubdtype(value.dtype, prng_key) and value.dtype != jnp.uint32):
        seed = value if type(value) is int else "seed"
        raise ArgumentError(
            f"{type(layer).__name__}.{method} takes a PRNG key, got {value!r:.60} of type {type(value).__name__}",
            instead=f"{method}(phlox.random.key({seed}))" if method == "init" else f"key=phlox.random.key({seed})",
            argument="key",
            value=value,
        )


def features(layer: Any, x: Any, expected: int, what: str = "the inputs") -> None:
    """Raises `ShapeError` unless the last axis of `x` has this length."""
    aval = typeof(x)
    if not aval.shape or aval.shape[-1] != expected:
        rank = len(aval.shape)
        # PyTorch's layout: features, which PyTorch calls channels, before the axes of space.
        first = next((axis for axis in (1, 0) if axis + 2 <= rank <= 5 and aval.shape[axis] == expected), None)
        axes = ", ".join(["examples", "height", "width", "features"] if rank == 4 else ["...", str(expected)])
        raise ShapeError(
            f"{layer._name()}: the last axis of {what} must have length {expected}, got {aval.short}"
            + ("" if first is None else f", whose axis {first} has it: features (channels) are the last axis here"),
            instead=f"arrays of shape (..., {expected})"
            if first is None
            else f"jnp.moveaxis(x, {first}, -1), of shape ({axes})",
            shapes=[aval.shape, (..., expected)],
            layer=layer.path,
        )


def rank(layer: Any, x: Any, axes: tuple[Any, ...]) -> None:
    """Raises `ShapeError` unless `x` has at least these axes: names, lengths, or an ellipsis for any number of axes."""
    if len(typeof(x).shape) < len(axes) - 1:
        wrong_shape(layer, x, axes)


def wrong_shape(layer: Any, x: Any, axes: tuple[Any, ...]) -> NoReturn:
    """Raises the `ShapeError` for inputs that do not have these axes."""
    aval = typeof(x)
    text = ", ".join("..." if axis is ... else str(axis) for axis in axes)
    raise ShapeError(
        f"{layer._name()}: inputs need the shape ({text}), got {aval.short}",
        shapes=[aval.shape, axes],
        layer=layer.path,
    )


def lengths(layer: Any, name: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """One number for each of `count` axes, from one number or a sequence. Raises `ArgumentError` for anything else."""
    integers = tuple(value) if isinstance(value, Sequence) else (value,) * count
    if len(integers) != count or not all(is_index(n) and n >= least for n in integers):
        raise ArgumentError(
            f"{type(layer).__name__}: {name} must be an integer from {least} on, or {count} of them, got {value!r}",
            **{name: value},
        )
    return tuple(operator.index(n) for n in integers)


def is_index(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer, of Python or NumPy."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def one_dtype(*arrays: Any) -> tuple[Any, ...]:
    """Arrays in the dtype that NumPy's rules promote them to."""
    dtype = jnp.result_type(*arrays)
    return tuple(jnp.asarray(x, dtype) for x in arrays)


def wide(x: Any) -> Any:
    """`x` in at least 32 bits: statistics summed in 16 bits lose too much precision."""
    return jnp.asarray(x, jnp.promote_types(jnp.result_type(x), jnp.float32))


def inexact(x: Any) -> Any:
    """The dtype of `x`; for integers and bools float32, since results between them would be lost."""
    dtype = jnp.result_type(x)
    return dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.float32
