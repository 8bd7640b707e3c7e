"""The few array operations that transformations themselves speak of, reached by name.

The primitives are stated in `_ops`, which knows the transformations; a transformation therefore looks them up
when it runs instead of importing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.primitive import primitive
from .._trace.trace import typeof


class Zero:
    """A tangent or cotangent that is known to be zero; it costs nothing until someone needs the array."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.short})"


def zero_tangent(primal: Any) -> Zero:
    """The zero tangent of a value."""
    return Zero(typeof(primal).tangent())


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of this type (for float0 a NumPy array: no device has that type)."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    scalar = np.zeros((), aval.dtype)[()]
    scalar = weak_number(scalar) if aval.weak_type else scalar
    return broadcast_to(scalar, aval.shape) if aval.shape else scalar


def weak_number(x: Any) -> Any:
    """A NumPy scalar as the Python number of the same type, if there is one: those are the weakly typed literals."""
    number = x.item()
    return number if typeof(number).dtype == x.dtype else x


def fill(values: Sequence[Any], present: Sequence[bool], avals: Sequence[ShapedArray]) -> list[Any]:
    """Tangents of values of types `avals`: the given ones where `present`, zeros elsewhere."""
    remaining = iter(values)
    return [next(remaining) if there else Zero(a.tangent()) for there, a in zip(present, avals, strict=True)]


def instantiate(x: Any) -> Any:
    """`x` itself, or an array of zeros for a `Zero`.

    Args:
      x: an array, or a `Zero`.

    Returns:
      An array of the same shape and dtype (for float0 a NumPy array).

    >>> instantiate(Zero(typeof(jnp.ones(2))))
    Array([0., 0.], dtype=float32)
    """
    return zeros(x.aval) if type(x) is Zero else x


def add(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents of the same type.

    Args:
      x, y: arrays of the same shape and dtype, or `Zero` for either.

    Returns:
      An array; a `Zero` if both are.

    >>> add(jnp.ones(2), Zero(typeof(jnp.ones(2))))
    Array([1., 1.], dtype=float32)
    """
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return primitive("add_any").bind(x, y)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A scalar `x` repeated to `shape`."""
    return primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=())


def insert_axis(x: Any, size: int, axis: int) -> Any:
    """`x` repeated `size` times along a new `axis`.

    Args:
      x: array, which may be traced.
      size: length of the axis.
      axis: its number in the result, counted from 0.

    Returns:
      An array with one axis more, of the same dtype.

    >>> insert_axis(jnp.arange(2), 3, 0).shape
    (3, 2)
    """
    old = typeof(x).shape
    shape = (*old[:axis], size, *old[axis:])
    kept = tuple(range(axis)) + tuple(range(axis + 1, len(shape)))
    return primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=kept)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """`x` with axis `source` moved to position `destination`.

    Args:
      x: array, which may be traced.
      source, destination: numbers of axes, counted from 0.

    Returns:
      An array of the same dtype.

    >>> move_axis(jnp.ones((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    if source == destination:
        return x
    order = list(range(typeof(x).ndim))
    order.insert(destination, order.pop(source))
    return primitive("transpose").bind(x, permutation=tuple(order))


def sum_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum of `x` over `axes`."""
    return primitive("reduce_sum").bind(x, axes=axes) if axes else x
