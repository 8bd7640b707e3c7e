"""Reading and writing rows, the slices along the first axis, at computed positions."""

from __future__ import annotations

from typing import Any

from ..._ir import dtypes
from ..._trace.trace import typeof
from ..structure.gather import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather
from ..structure.scatter import scatter
from ..structure.shape import broadcast_in_dim, iota, reshape


def take_rows(x: Any, rows: Any) -> Any:
    """``x[rows]`` for int32 indices that are in bounds; rows may be repeated."""
    shape, count = typeof(x).shape, typeof(rows).shape[0]
    if 0 in shape[1:]:
        return reshape(x, new_sizes=(count, *shape[1:]), dimensions=None)
    return gather(
        x,
        reshape(rows, new_sizes=(count, 1), dimensions=None),
        dimension_numbers=GatherDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,)),
        slice_sizes=(1, *shape[1:]),
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def set_rows(x: Any, rows: Any, values: Any) -> Any:
    """``x.at[rows].set(values)`` for different int32 indices; rows out of bounds are dropped."""
    shape, count = typeof(x).shape, typeof(rows).shape[0]
    if 0 in shape:
        return x
    return scatter(
        x,
        reshape(rows, new_sizes=(count, 1), dimensions=None),
        values,
        dimension_numbers=ScatterDimensionNumbers(tuple(range(1, len(shape))), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=True,
        mode=GatherScatterMode.FILL_OR_DROP,
    )


def counting(shape: tuple[int, ...], dimension: int = 0) -> Any:
    """The int32 index of each element along `dimension`."""
    return iota(dtype=dtypes.int32, shape=shape, dimension=dimension)


def spread(x: Any, shape: tuple[int, ...], *dimensions: int) -> Any:
    """`x` broadcast to `shape`, its axes at `dimensions`; a Python number becomes int32."""
    value = dtypes.int32.type(x) if type(x) is int else x
    return broadcast_in_dim(value, shape=shape, broadcast_dimensions=dimensions)
