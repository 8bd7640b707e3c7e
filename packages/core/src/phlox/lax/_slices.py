"""Slices of ``phlox.lax`` at known and at computed indices, and `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base import checks
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, DtypeError
from .._ir import dtypes
from .._ir.dimensions import surely_at_least
from .._operands import index_bounds
from .._operands.checks import as_shape, canonical_axis, check, check_one, integer, integers, sequence, type_of
from .._operands.indices import from_front
from .._operands.promotion import to_dtype
from .._ops.structure import (
    dimension_numbers as _indexing,
    gather as _gather,
    slicing as _slicing,
)
from ..typing import Array, ArrayLike

Ints = Sequence[int]


def slice(operand: ArrayLike, start_indices: Ints, limit_indices: Ints, strides: Ints | None = None) -> Array:
    """The elements of `operand` from `start_indices` to `limit_indices`, with a step along each axis (StableHLO's
    ``slice``).

    Args:
      operand: array of any dtype.
      start_indices: first index along each axis, from 0 to the limit.
      limit_indices: end index along each axis, not included; at most the length of the axis.
      strides: step along each axis, at least 1; None means 1 for all axes.

    Returns:
      An array of the dtype of `operand`, with length ``ceil((limit - start) / stride)`` along each axis.

    Raises:
      ShapeError: indices or strides are not one for each axis, or are out of range.

    >>> slice(np.arange(4), (1,), (3,))
    Array([1, 2], dtype=int32)
    """
    operand = check_one("slice", operand)
    return _slicing.slice_(
        operand,
        start_indices=integers("slice", "start_indices", start_indices),
        limit_indices=integers("slice", "limit_indices", limit_indices),
        strides=None if strides is None else integers("slice", "strides", strides),
    )


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """`slice` along one axis, as ``operand[start_index:limit_index:stride]`` (StableHLO's ``slice``).

    Args:
      operand: array of any dtype.
      start_index: first index; None means 0, and negative numbers count from the end.
      limit_index: end index, not included; None means the length of the axis, and negative numbers count from the end.
      stride: step between indices, at least 1.
      axis: axis number to slice along; negative numbers count from the last axis.

    Returns:
      An array of the dtype of `operand`, shorter along `axis`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: indices or stride are out of range.

    >>> slice_in_dim(np.arange(4), 1, 3)
    Array([1, 2], dtype=int32)
    """
    operand = check_one("slice_in_dim", operand)
    at = canonical_axis(axis, type_of(operand).ndim, "slice_in_dim")
    n = type_of(operand).shape[at]
    start = 0 if start_index is None else integer("slice_in_dim", "start_index", start_index)
    stop = n if limit_index is None else integer("slice_in_dim", "limit_index", limit_index)
    start, stop = (place + n if place < 0 else place for place in (start, stop))
    return _slicing.along(operand, at, start, stop, integer("slice_in_dim", "stride", stride))


def _starts(
    function: str, operand: Any, starts: Any, sizes: tuple[Any, ...], allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """Start indices of a slice of these sizes, which must be of one dtype; negative ones count from the end, where they
    are allowed."""
    shape = type_of(operand).shape
    if isinstance(allow_negative, bool | np.bool_):
        allowed: tuple[Any, ...] = (allow_negative,) * len(shape)
    else:
        allowed = sequence(function, "allow_negative_indices", allow_negative)
    if len(allowed) != len(shape):
        raise ArgumentError(f"{function}: {len(allowed)} values of allow_negative_indices for {len(shape)} axes")
    checked = check(function, *sequence(function, "start_indices", starts))
    if len({type_of(i).dtype for i in checked}) > 1:
        raise DtypeError(
            f"index arguments to {function} must be integers of the same type, got "
            + ", ".join(type_of(i).short for i in checked),
            instead="x.astype(...) for some of them",
        )
    pairs = list(zip(checked, shape, allowed, strict=False))
    for i, _, negative in pairs:
        if not negative and isinstance(i, int | np.integer) and i < 0:
            raise ArgumentError(f"{function}: start index {i} is negative, which allow_negative_indices=False excludes")
    are_all_checked = checks.is_strict()
    for axis, (i, n, negative) in enumerate(pairs):
        is_known = isinstance(i, int | np.generic | np.ndarray)
        if (is_known or are_all_checked) and axis < len(sizes) and surely_at_least(n, sizes[axis]):
            index_bounds.check(i, axis, shape, index_bounds.MOVE, bool(negative), sizes[axis])
    start_indices = [from_front(i, n) if negative else i for i, n, negative in pairs]
    # Indices counted from the end may have become wider than the others; the operation takes one dtype.
    wide = max((type_of(i).dtype for i in start_indices), key=dtypes.bits, default=dtypes.int32)
    # Superfluous indices go on to the operation, whose error counts them.
    return [to_dtype(i, wide) for i in start_indices] + list(starts[len(shape) :])


def starts_along(function: str, rank: int, at: int, start: Any) -> list[Any]:
    """Start indices that are zero, of the dtype of `start`, but along one axis."""
    start = check_one(function, start)
    zero = to_dtype(0, type_of(start).dtype)
    return [start if i == at else zero for i in range(rank)]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Ints,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A slice of `operand` of fixed size, at start indices that may be computed (StableHLO's ``dynamic_slice``).

    A slice that would extend beyond the array has its start moved so that it lies inside.

    Args:
      operand: array of any dtype.
      start_indices: first index along each axis: a sequence of integer scalars of one dtype, or a vector of integers.
      slice_sizes: length of the slice along each axis, at most the length of the axis.
      allow_negative_indices: whether negative start indices count from the end: a bool for all axes, or a sequence of
        bools, one for each axis. If False, a negative start index is moved to 0.

    Returns:
      An array of shape `slice_sizes`, of the dtype of `operand`.

    Raises:
      ArgumentError: a start index is a known negative number, and `allow_negative_indices` is False for its axis.
      DtypeError: the start indices have different dtypes.
      IndexingError: a start index is not an integer.
      ShapeError: start indices or sizes are not one for each axis, or a size is out of range.

    >>> dynamic_slice(np.arange(4), (1,), (2,))
    Array([1, 2], dtype=int32)
    """
    operand = check_one("dynamic_slice", operand)
    sizes = as_shape(slice_sizes)
    starts = _starts("dynamic_slice", operand, start_indices, sizes, allow_negative_indices)
    return _slicing.dynamic_slice(operand, *starts, slice_sizes=sizes)


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Array:
    """`dynamic_slice` along one axis (StableHLO's ``dynamic_slice``).

    Args:
      operand: array of any dtype.
      start_index: first index along `axis`, an integer scalar; it is moved if the slice would extend beyond the array.
      slice_size: length of the slice, at most the length of the axis.
      axis: axis number to slice along; negative numbers count from the last axis.
      allow_negative_indices: whether a negative start index counts from the end.

    Returns:
      An array of the dtype of `operand`, with length `slice_size` along `axis`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: `slice_size` is negative or larger than the axis.

    >>> dynamic_slice_in_dim(np.arange(4), 1, 2)
    Array([1, 2], dtype=int32)
    """
    operand = check_one("dynamic_slice_in_dim", operand)
    at = canonical_axis(axis, type_of(operand).ndim, "dynamic_slice_in_dim")
    starts = starts_along("dynamic_slice_in_dim", type_of(operand).ndim, at, start_index)
    sizes = list(type_of(operand).shape)
    sizes[at] = slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@docs_from(dynamic_slice)
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """`operand` with a slice replaced by `update`, at start indices that may be computed (StableHLO's
    ``dynamic_update_slice``).

    If `update` would extend beyond the array, its start is moved so that it lies inside.

    Args:
      update: array of the dtype of `operand`, with the same number of axes, each at most as long as that of `operand`.
      allow_negative_indices: whether negative start indices count from the end: a bool for all axes, or a sequence of
        bools, one for each axis.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      ShapeError: `update` differs from `operand` in dtype or number of axes, or is larger.

    >>> dynamic_update_slice(np.zeros(3, np.float32), np.ones(1, np.float32), (1,))
    Array([0., 1., 0.], dtype=float32)
    """
    operand, update = check("dynamic_update_slice", operand, update)
    starts = _starts("dynamic_update_slice", operand, start_indices, type_of(update).shape, allow_negative_indices)
    return _slicing.dynamic_update_slice(operand, update, *starts)


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: _indexing.GatherDimensionNumbers,
    slice_sizes: Ints,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Slices of `operand` at computed start indices (StableHLO's ``gather``). Indexing as in NumPy is easier to use.

    Args:
      operand: array of any dtype.
      start_indices: array of integers; its last axis holds index vectors, and its other axes become axes of the result.
      dimension_numbers: a `GatherDimensionNumbers`, which states the axis of `operand` that each number of an index
        vector refers to, and the positions of the slices' axes in the result.
      slice_sizes: shape of each slice: one length for each axis of `operand`.
      unique_indices: a promise that no two slices overlap.
      indices_are_sorted: a promise that the index vectors are in ascending order.
      mode: treatment of out-of-bounds indices: a `GatherScatterMode` or its name, "clip", "fill", "promise_in_bounds"
        (the default, None) or "one_hot".
      fill_value: value of out-of-bounds elements for the mode "fill"; None means nan for inexact dtypes, the smallest
        value of signed integers, the largest of unsigned integers, and True for bools.

    Returns:
      An array of the dtype of `operand`. Its axes are those of `start_indices` without the last, and those of the
      slices without ``collapsed_slice_dims``.

    Raises:
      DtypeError: `start_indices` are not integers.
      ShapeError: `dimension_numbers` or `slice_sizes` do not fit the arrays.
      OptionError: `mode` is unknown.

    >>> numbers = _indexing.GatherDimensionNumbers((), (0,), (0,))
    >>> gather(np.arange(3), np.array([[2], [0]]), numbers, (1,))
    Array([2, 0], dtype=int32)
    """
    operand, start_indices = check("gather", operand, start_indices)
    return _gather.gather(
        operand,
        start_indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=as_shape(slice_sizes),
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        mode=_indexing.GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode),
        fill_value=fill_value,
    )


GatherDimensionNumbers = _indexing.GatherDimensionNumbers
ScatterDimensionNumbers = _indexing.ScatterDimensionNumbers
GatherScatterMode = _indexing.GatherScatterMode
