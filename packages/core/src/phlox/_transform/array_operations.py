"""The few array operations that transformations use themselves.

Their primitives are defined in `_ops`, which imports this layer. So they are looked up by name at each call instead of
being imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.dimensions import is_symbolic
from .._ir.primitive import Primitive, primitive
from .._trace.trace import typeof
from .sharding_types import reshard_like


class Zero:
    """A symbolic zero: a tangent or cotangent that is known to be zero. See `instantiate` for the array."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.short})"


def zero_tangent(primal: Any) -> Zero:
    """The symbolic zero tangent of a primal value."""
    return Zero(typeof(primal).tangent())


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of this type; for float0 a NumPy array, because devices have no such dtype."""
    if aval.dtype == dtypes.float0:
        # NumPy's arrays have no symbolic lengths.
        if any(map(is_symbolic, aval.shape)):
            return broadcast_to(np.zeros((), dtypes.float0), aval.shape)
        return np.zeros(aval.shape, dtypes.float0)
    if dtypes.is_extended(aval.dtype):
        return broadcast_to(aval.dtype.zero(), aval.shape)
    scalar = np.zeros((), aval.dtype)[()]
    if dtypes.canonical(aval.dtype) != aval.dtype:  # NumPy's numbers count as numbers of 32 bits outside of 64-bit mode
        scalar = primitive("convert_element_type").bind(np.int32(0), new_dtype=aval.dtype, weak_type=False)
    scalar = weak_number(scalar) if aval.weak_type and isinstance(scalar, np.generic) else scalar
    array = broadcast_to(scalar, aval.shape) if aval.shape else scalar
    return reshard_like(array, aval) if aval.annotated else array


def weak_number(x: Any) -> Any:
    """A NumPy scalar as a Python number, which is a weakly typed literal; `x` if no Python number has its dtype."""
    number = x.item()
    return number if typeof(number).dtype == x.dtype else x


def fill(values: Sequence[Any], present: Sequence[bool], avals: Sequence[ShapedArray]) -> list[Any]:
    """Tangents of primals of types `avals`: the next of `values` where `present`, else a `Zero`."""
    remaining = iter(values)
    return [next(remaining) if there else Zero(a.tangent()) for there, a in zip(present, avals, strict=True)]


def drop_zeros(tangents: Sequence[Any]) -> list[Any]:
    """The tangents that are not `Zero`; `fill` puts them back."""
    return [t for t in tangents if type(t) is not Zero]


def present_arrays(tangents: Sequence[Any], present: Sequence[bool]) -> list[Any]:
    """The tangents that are marked in `present`, as arrays: zeros for those that are `Zero`."""
    return [instantiate(t) for t, there in zip(tangents, present, strict=True) if there]


def instantiate(x: Any) -> Any:
    """An array of zeros if `x` is a `Zero`, else `x`.

    Args:
      x: an array, or a `Zero`.

    Returns:
      An array of the same shape and dtype (for float0 a NumPy array).

    >>> instantiate(Zero(typeof(jnp.ones(2))))
    Array([0., 0.], dtype=float32)
    """
    return zeros(x.aval) if type(x) is Zero else x


def linear_jvp(get_primitive: Callable[[], Primitive], operands: slice = slice(None)) -> Callable[..., tuple[Any, Any]]:
    """The jvp rule of an operation that is linear in these operands together: it is applied to their tangents.

    Args:
      get_primitive: returns the primitive, which is not yet defined when its rules are.
      operands: positions of the operands; the others have no tangents, such as indices.
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = get_primitive().bind(*primals, **params)  # before the zeros of `instantiate`, as JAX records it
        moving = list(primals)
        moving[operands] = map(instantiate, tangents[operands])
        return out, get_primitive().bind(*moving, **params)

    return jvp


def add(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents of the same type.

    Args:
      x, y: arrays of the same shape and dtype; either may be a `Zero`.

    Returns:
      An array; a `Zero` if both `x` and `y` are.

    >>> add(jnp.ones(2), Zero(typeof(jnp.ones(2))))
    Array([1., 1.], dtype=float32)
    """
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    dtype = typeof(x).dtype
    if dtypes.is_extended(dtype):
        return dtype.add(x, y)
    # Not `add`: `add_any` marks sums of derivatives in printed programs.
    return primitive("add_any").bind(x, y)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """The scalar `x` broadcast to `shape`."""
    return primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=())


def insert_axis(x: Any, size: int, axis: int) -> Any:
    """`x` repeated `size` times along a new axis.

    Args:
      x: array or tracer.
      size: length of the new axis.
      axis: number of the new axis in the result, from 0.

    Returns:
      An array with one more axis, of the same dtype.

    >>> insert_axis(jnp.arange(2), 3, 0).shape
    (3, 2)
    """
    old = typeof(x).shape
    shape = (*old[:axis], size, *old[axis:])
    broadcast_dimensions = tuple(range(axis)) + tuple(range(axis + 1, len(shape)))
    return primitive("broadcast_in_dim").bind(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """`x` with axis `source` moved to position `destination`.

    Args:
      x: array or tracer.
      source, destination: numbers of axes, from 0.

    Returns:
      An array of the same dtype.

    >>> move_axis(jnp.ones((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    if source == destination:
        return x
    order = list(range(typeof(x).ndim))
    # `destination` counts axes of the result, so the axis is taken out first.
    order.insert(destination, order.pop(source))
    return primitive("transpose").bind(x, permutation=tuple(order))


def sum_axes(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum of `x` over `axes`."""
    return primitive("reduce_sum").bind(x, axes=axes) if axes else x
