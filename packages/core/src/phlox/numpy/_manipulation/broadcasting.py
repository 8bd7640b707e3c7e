"""Broadcasting of shapes and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._api.devices.out_sharding import OutSharding
from ..._base.errors import ShapeError
from ..._ir.memory_spaces import any_spaces
from ..._operands.broadcasting import checked_common_shape
from ..._operands.checks import as_shape, check, check_one, type_of
from ..._ops.structure import shape as ops
from ..._transform.sharding_types import in_one_space
from ...typing import Array, ArrayLike, Shape


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape to which arrays of these shapes broadcast (as ``numpy.broadcast_shapes``).

    Lengths are compared from the last axis on: they agree, or one of them is 1 or missing.

    Args:
      *shapes: shapes: tuples of integers, or single integers.

    Returns:
      A tuple of ints.

    Raises:
      ShapeError: lengths neither agree nor are 1, or one is negative.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return checked_common_shape(shapes)


def broadcast_to(array: ArrayLike, shape: Shape, *, out_sharding: OutSharding = None) -> Array:
    """`array` broadcast to a shape (as ``numpy.broadcast_to``).

    Args:
      array: array of any dtype.
      shape: shape of the result, not traced; `array` must broadcast to it.

    Returns:
      An array of this shape, of the dtype of `array`.

    Raises:
      ShapeError: `array` does not broadcast to `shape`.

    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    array = check_one("broadcast_to", array)
    old, new = type_of(array).shape, as_shape(shape, "broadcast_to")
    if old == new:
        return ops.as_array_or_tracer(array)
    offset = len(new) - len(old)
    if offset < 0:
        raise ShapeError(
            f"broadcast_to: Cannot broadcast to shape with fewer dimensions: {old} to {new}", shapes=[old, new]
        )
    if any(n not in (1, m) for n, m in zip(old, new[offset:], strict=True)):
        raise ShapeError(
            f"broadcast_to: Incompatible shapes for broadcasting: {old} and requested shape {new}", shapes=[old, new]
        )
    return ops.broadcast_to(array, new)


def broadcast_arrays(*args: ArrayLike) -> tuple[Any, ...]:
    """Arrays broadcast to their common shape (as ``numpy.broadcast_arrays``).

    Args:
      *args: arrays or numbers whose shapes broadcast, see `broadcast_shapes`.

    Returns:
      A tuple of arrays of that shape, each of its own dtype.

    Raises:
      ShapeError: the shapes do not broadcast.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    checked: Sequence[Any] = check("broadcast_arrays", *args)
    common = broadcast_shapes(*[type_of(x).shape for x in checked])
    if any_spaces():
        checked = in_one_space(*checked)
    return tuple(broadcast_to(x, common) for x in checked)
