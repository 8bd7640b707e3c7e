"""Broadcasting of operands to one shape, and `where`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.errors import ShapeError
from .._ir.memory_spaces import any_spaces
from .._ir.sharding_types import any_specs
from .._ops.elementwise import logic
from .._ops.structure import shape as ops
from .._transform.sharding_types import in_one_space, with_reductions
from .checks import as_shape, canonical_axes, type_of
from .promotion import common_shape, promote_dtypes


def checked_common_shape(shapes: Sequence[Any]) -> tuple[int, ...]:
    """The shape to which users' `shapes` broadcast; raises `ShapeError` if they do not."""
    all_lengths = [as_shape(s, "broadcast_shapes") for s in shapes]
    for lengths in all_lengths:
        if any(n < 0 for n in lengths):
            raise ShapeError(
                f"broadcast_shapes: Only non-negative indices are allowed, got {lengths}", shapes=all_lengths
            )
    return common_shape("", all_lengths)


def insert_axes(function: str, x: Any, axes: int | Sequence[int]) -> Any:
    """`x` with new axes of length one at the positions `axes` of the result."""
    old = type_of(x).shape
    rank = len(old) + (len(axes) if isinstance(axes, Sequence) else 1)
    new = canonical_axes(axes, rank, function)
    broadcast_dimensions = tuple(i for i in range(rank) if i not in new)
    lengths = iter(old)
    shape = tuple(1 if i in new else next(lengths) for i in range(rank))
    return ops.broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition`, an array of bools, is true, and `y` elsewhere.

    All three are broadcast; `x` and `y` are promoted to one dtype.
    """
    x, y = promote_dtypes(x, y)
    shape = common_shape("", [type_of(v).shape for v in (condition, x, y)])
    if any_spaces():
        condition, x, y = in_one_space(condition, x, y)
    if any_specs():
        # A number gives way to an array also in what is still to be reduced.
        x, y = (with_reductions(a, type_of(b)) if type_of(a).ndim == 0 else a for a, b in ((x, y), (y, x)))
    return logic.select_n(ops.broadcast_to(condition, shape), ops.broadcast_to(y, shape), ops.broadcast_to(x, shape))
