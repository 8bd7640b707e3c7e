"""Reading and writing rows, the slices along the first axis, at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._trace.trace import typeof
from ..._transform.array_operations import zeros
from ..random.keys import is_key, random_wrap
from ..structure.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from ..structure.gather import take_along_axis
from ..structure.iota import iota
from ..structure.scatter import scatter
from ..structure.shape import broadcast_in_dim, concatenate, reshape
from ..structure.slicing import along, dynamic_slice, dynamic_update_slice

_ZERO = dtypes.int32.type(0)


def take_rows(x: Any, rows: Any) -> Any:
    """``x[rows]`` for int32 indices that are in bounds; rows may be repeated."""
    shape, count = typeof(x).shape, typeof(rows).shape[0]
    if 0 in shape[1:]:
        return reshape(x, new_sizes=(count, *shape[1:]), dimensions=None)
    return take_along_axis(x, rows, 0, GatherScatterMode.PROMISE_IN_BOUNDS)


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


def index_along(shape: tuple[int, ...], dimension: int = 0) -> Any:
    """The int32 index of each element along `dimension`."""
    return iota(dtype=dtypes.int32, shape=shape, dimension=dimension)


def broadcast(x: Any, shape: tuple[int, ...], *dimensions: int) -> Any:
    """`x` broadcast to `shape`, its axes at `dimensions`; a Python number becomes int32."""
    value = dtypes.int32.type(x) if type(x) is int else x
    return broadcast_in_dim(value, shape=shape, broadcast_dimensions=dimensions)


# --- rows of a type, at one position -------------------------------------------------------------------


def zero_array(aval: ShapedArray) -> Any:
    """An array of this type, to write results into: of zeros, or of keys whose data are zeros."""
    if is_key(aval):
        return random_wrap(zeros(aval.physical), impl=aval.dtype.impl)
    return zeros(aval.update(weak_type=False))


def rows_at(x: Any, at: Any, count: int) -> Any:
    """``x[at : at + count]``, which must be in bounds."""
    shape = typeof(x).shape
    if count == shape[0]:
        return x
    return dynamic_slice(x, at, *[_ZERO] * (len(shape) - 1), slice_sizes=(count, *shape[1:]))


def row_at(x: Any, i: int) -> Any:
    """``x[i]``."""
    shape = typeof(x).shape
    row = x if shape[0] == 1 else along(x, 0, i, i + 1)
    return reshape(row, new_sizes=shape[1:], dimensions=None)


def with_rows(x: Any, rows: Sequence[Any], at: Any) -> Any:
    """`x` with `rows` written to it, beginning at index `at`."""
    shape = typeof(x).shape
    parts = [reshape(row, new_sizes=(1, *shape[1:]), dimensions=None) for row in rows]
    block = parts[0] if len(parts) == 1 else concatenate(*parts, dimension=0)
    # Rows that fill the whole array replace it: nothing has to be read or copied.
    return block if len(rows) == shape[0] else dynamic_update_slice(x, block, at, *[_ZERO] * (len(shape) - 1))


def write_state(rows: Sequence[Any], state: Sequence[Any], at: Any) -> list[Any]:
    """The `rows` with the arrays of `state` written to row `at`."""
    return [with_rows(x, [part], at) for x, part in zip(rows, state, strict=True)]
