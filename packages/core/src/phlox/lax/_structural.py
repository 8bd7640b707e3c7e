"""Operations of ``phlox.lax`` on shapes, slices, order and contraction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._api.devices.out_sharding import lay_out, operands_for, takes_out_sharding
from .._base import checks
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, DtypeError, ShapeError
from .._ir import dtypes
from .._ir.dimensions import surely_at_least
from .._operands import index_bounds
from .._operands.broadcasting import insert_axes
from .._operands.checks import as_shape, canonical_axis, check, check_one, integer, several, type_of
from .._operands.indices import from_front
from .._operands.products import contract
from .._operands.promotion import promote_dtypes, to_dtype
from .._ops.linalg import algorithms as _algorithms, dot as _dot
from .._ops.reductions import reduce as _reduce, running as _running
from .._ops.structure import (
    dimension_numbers as _indexing,
    gather as _gather,
    iota as _iota,
    shape as ops,
    slicing as _slicing,
)
from .._ops.structure.numbers import wrapped
from .._ops.structure.sort import sort as _sort

if TYPE_CHECKING:
    from .._api.devices.out_sharding import OutSharding
    from .._ops.linalg.dot import PrecisionLike
    from ..typing import Array, ArrayLike, DTypeLike

Ints = Sequence[int]


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """`operand` with its elements converted (StableHLO's ``convert``). Complex to real drops the imaginary part.

    Args:
      operand: array of any shape and dtype, but no array of PRNG keys.
      new_dtype: dtype of the result. Conversion to bool makes every nonzero element True.

    Returns:
      An array of the shape of `operand`, of `new_dtype`, not weakly typed.

    Raises:
      DtypeError: `operand` or `new_dtype` is of PRNG keys, or `new_dtype` is not a dtype.

    >>> convert_element_type(1.5, "int32")
    Array(1, dtype=int32)
    """
    result_dtype = dtypes.user_dtype(new_dtype)
    x = ops.own(wrapped(check_one("convert_element_type", operand), result_dtype))
    return x if x.aval.dtype == result_dtype and not x.aval.weak_type else ops.converted(x, result_dtype, False)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of `operand` read as another dtype (StableHLO's ``bitcast_convert``).

    Args:
      operand: array of integers or floats; for bools and complex numbers, `new_dtype` must be the dtype of `operand`.
      new_dtype: dtype as which the bits are interpreted.

    Returns:
      An array of `new_dtype`, of the shape of `operand` if both dtypes have the same width. A narrower `new_dtype` adds
      a last axis with the parts of each element, lowest bits first; a wider one removes the last axis, whose elements
      are joined into one.

    Raises:
      DtypeError: `operand` or `new_dtype` is of bools or complex numbers, and the two dtypes differ.
      ShapeError: the length of the last axis is not the number of parts that make one element of `new_dtype`.

    >>> bitcast_convert_type(np.float32(1.0), "uint32")
    Array(1065353216, dtype=uint32)
    """
    operand = check_one("bitcast_convert_type", operand)
    return ops.bitcast_convert_type(operand, new_dtype=dtypes.user_dtype(new_dtype))


@takes_out_sharding
def reshape(
    operand: ArrayLike, new_sizes: Ints, dimensions: Ints | None = None, *, out_sharding: OutSharding = None
) -> Array:
    """`operand` with another shape, its elements in the same order (StableHLO's ``reshape``).

    Args:
      operand: array of any shape and dtype.
      new_sizes: shape of the result, with as many elements as `operand`; -1 is not accepted.
      dimensions: permutation of the axes of `operand`, applied before the reshape; None keeps their order.

    Returns:
      An array of shape `new_sizes`, of the dtype of `operand`.

    Raises:
      ShapeError: the number of elements differs, or `dimensions` is not a permutation of the axes.

    >>> reshape(np.arange(4), (2, 2)).shape
    (2, 2)
    """
    operand = check_one("reshape", operand)
    if dimensions is not None:
        operand = ops.transpose(operand, permutation=tuple(dimensions))
    return ops.reshape(operand, new_sizes=as_shape(new_sizes, "reshape"), dimensions=None)


def transpose(operand: ArrayLike, permutation: Ints) -> Array:
    """`operand` with its axes in another order (StableHLO's ``transpose``).

    Args:
      operand: array of any shape and dtype.
      permutation: axis numbers of `operand`, not negative, in their order in the result.

    Returns:
      An array of the permuted shape, of the dtype of `operand`.

    Raises:
      ShapeError: `permutation` is not a permutation of the axes.

    >>> transpose(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return ops.transpose(*check("transpose", operand), permutation=tuple(int(i) for i in permutation))


@takes_out_sharding
def broadcast(operand: ArrayLike, sizes: Ints, *, out_sharding: OutSharding = None) -> Array:
    """`operand` repeated along new axes in front (StableHLO's ``broadcast_in_dim``).

    Args:
      operand: array of any shape and dtype.
      sizes: lengths of the new leading axes.

    Returns:
      An array of shape ``(*sizes, *operand.shape)``, of the dtype of `operand`.

    Raises:
      ShapeError: a length is negative.

    >>> broadcast(1.0, (2,))
    Array([1., 1.], dtype=float32, weak_type=True)
    """
    operand = check_one("broadcast", operand)
    sizes = as_shape(sizes, "broadcast")
    if not sizes:
        return ops.own(operand)
    shape = type_of(operand).shape
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return ops.broadcast_in_dim(operand, shape=(*sizes, *shape), broadcast_dimensions=dims)


@takes_out_sharding
def broadcast_in_dim(
    operand: ArrayLike, shape: Ints, broadcast_dimensions: Ints, *, out_sharding: OutSharding = None
) -> Array:
    """`operand` broadcast to `shape`, with each of its axes mapped to an axis of the result (StableHLO's
    ``broadcast_in_dim``).

    Args:
      operand: array of any dtype; each axis has length 1 or the length of the axis of `shape` that it maps to.
      shape: shape of the result.
      broadcast_dimensions: for each axis of `operand`, the axis number in `shape` that it maps to: distinct and not
        negative. Along the other axes of `shape` the array is repeated.

    Returns:
      An array of `shape`, of the dtype of `operand`.

    Raises:
      ShapeError: `shape` and `broadcast_dimensions` do not fit `operand`.

    >>> broadcast_in_dim(np.arange(2), (2, 2), (0,))
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    operand = check_one("broadcast_in_dim", operand)
    dims, shape = tuple(int(i) for i in broadcast_dimensions), as_shape(shape)
    if shape == type_of(operand).shape and dims == tuple(range(len(shape))):
        return ops.own(operand)
    return ops.broadcast_in_dim(operand, shape=shape, broadcast_dimensions=dims)


def squeeze(array: ArrayLike, dimensions: Ints) -> Array:
    """`array` without the given axes, which must have length 1 (as ``numpy.squeeze``).

    Args:
      array: array of any dtype.
      dimensions: axis numbers to remove; negative numbers count from the last axis.

    Returns:
      An array of the dtype of `array`, without these axes.

    Raises:
      ShapeError: the length of an axis to remove is not 1.
      AxisError: an axis is out of range, or is named twice.

    >>> squeeze(np.ones((1, 2)), (0,)).shape
    (2,)
    """
    array = check_one("squeeze", array)
    rank = type_of(array).ndim
    return ops.squeeze(array, dimensions=tuple(canonical_axis(i, rank, "squeeze") for i in dimensions))


def expand_dims(array: ArrayLike, dimensions: Ints) -> Array:
    """`array` with new axes of length 1 (as ``numpy.expand_dims``).

    Args:
      array: array of any shape and dtype.
      dimensions: positions of the new axes in the shape of the result; negative numbers count from the last axis.

    Returns:
      An array with ``len(dimensions)`` more axes, of the dtype of `array`.

    Raises:
      AxisError: a position is out of range.
      ShapeError: a position is named twice.

    >>> expand_dims(np.ones(2), (0,)).shape
    (1, 2)
    """
    return insert_axes("expand_dims", check_one("expand_dims", array), tuple(dimensions))


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Arrays of one dtype joined along an axis (StableHLO's ``concatenate``).

    Args:
      operands: sequence of at least one array; all have one dtype, and the same shape except along `dimension`.
      dimension: axis number along which the arrays are joined, not negative.

    Returns:
      An array of the dtype of the operands; its length along `dimension` is the sum of their lengths.

    Raises:
      ArgumentError: `operands` is empty.
      AxisError: the axis number is out of range.
      ShapeError: the shapes differ along other axes.
      DtypeError: the dtypes differ.

    >>> concatenate([np.zeros(1, np.float32), np.ones(1, np.float32)], 0)
    Array([0., 1.], dtype=float32)
    """
    arrays = check("concatenate", *operands)
    if not arrays:
        raise ArgumentError("concatenate needs at least one array")
    return ops.concatenate(*arrays, dimension=integer("concatenate", "dimension", dimension))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """`operand` with elements added around it and between its elements, or cut off (StableHLO's ``pad``).

    Args:
      operand: array of any shape and dtype.
      padding_value: value of the added elements: a scalar of the dtype of `operand`.
      padding_config: a triple (low, high, interior) for each axis: numbers of elements added at the start, at the end,
        and between neighbouring elements. Negative low and high remove elements.

    Returns:
      An array of the padded shape, of the dtype of `operand`.

    Raises:
      ShapeError: `padding_value` is not a scalar of the dtype of `operand`, `padding_config` does not have one triple
        for each axis, an interior number is negative, or more elements are removed than the array has.

    >>> pad(np.ones(1, np.float32), np.float32(0), [(1, 0, 0)])
    Array([0., 1.], dtype=float32)
    """
    operand, padding_value = check("pad", operand, padding_value)
    return ops.pad(operand, padding_value, padding_config=tuple(tuple(int(n) for n in row) for row in padding_config))


def rev(operand: ArrayLike, dimensions: Ints) -> Array:
    """`operand` with its elements reversed along the given axes (StableHLO's ``reverse``).

    Args:
      operand: array of any shape and dtype.
      dimensions: axis numbers to reverse, distinct and not negative.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      AxisError: an axis is out of range, or is named twice.

    >>> rev(np.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    return ops.rev(*check("rev", operand), dimensions=tuple(int(i) for i in dimensions))


def iota(dtype: DTypeLike, size: int) -> Array:
    """The integers from 0 to size - 1, as a vector (StableHLO's ``iota``).

    Args:
      dtype: dtype of the result: any except bool.
      size: number of elements.

    Returns:
      An array of shape ``(size,)``, of `dtype`.

    Raises:
      DtypeError: `dtype` is bool.
      ShapeError: `size` is negative.

    >>> iota("int32", 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


@takes_out_sharding
def broadcasted_iota(dtype: DTypeLike, shape: Ints, dimension: int, *, out_sharding: OutSharding = None) -> Array:
    """An array that counts 0, 1, … along one axis and is constant along the others (StableHLO's ``iota``).

    Args:
      dtype: dtype of the result: any except bool.
      shape: shape of the result.
      dimension: axis number along which the elements count up, not negative.

    Returns:
      An array of `shape`, of `dtype`.

    Raises:
      DtypeError: `dtype` is bool.
      ShapeError: a length is negative, or `dimension` is out of range.

    >>> broadcasted_iota("int32", (2, 2), 1)
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    out_dtype = dtypes.user_dtype(dtype, "iota")
    return _iota.iota(dtype=out_dtype, shape=as_shape(shape), dimension=integer("iota", "dimension", dimension))


# --- slices ---------------------------------------------------------------------------------------------


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
        start_indices=tuple(int(i) for i in start_indices),
        limit_indices=tuple(int(i) for i in limit_indices),
        strides=None if strides is None else tuple(int(i) for i in strides),
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
    start = 0 if start_index is None else start_index + (n if start_index < 0 else 0)
    stop = n if limit_index is None else limit_index + (n if limit_index < 0 else 0)
    return _slicing.along(operand, at, start, stop, stride)


def _starts(
    function: str, operand: Any, starts: Any, sizes: tuple[Any, ...], allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """Start indices of a slice of these sizes, which must be of one dtype; negative ones count from the end, where they
    are allowed."""
    shape = type_of(operand).shape
    allowed = (allow_negative,) * len(shape) if isinstance(allow_negative, bool | np.bool_) else tuple(allow_negative)
    if len(allowed) != len(shape):
        raise ArgumentError(f"{function}: {len(allowed)} values of allow_negative_indices for {len(shape)} axes")
    checked = check(function, *starts)
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
    wide = max((type_of(i).dtype for i in start_indices), key=dtypes.bits, default=dtypes.int32)
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
      operand: array of any dtype.
      update: array of the dtype of `operand`, with the same number of axes, each at most as long as that of `operand`.
      start_indices: first index along each axis: a sequence of integer scalars of one dtype, or a vector of integers.
      allow_negative_indices: whether negative start indices count from the end: a bool for all axes, or a sequence of
        bools, one for each axis.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      ArgumentError: a start index is a known negative number, and `allow_negative_indices` is False for its axis.
      DtypeError: the start indices have different dtypes.
      IndexingError: a start index is not an integer.
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


# --- order, reductions ----------------------------------------------------------------------------------


def sort(
    operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """An array sorted in ascending order along an axis, or several arrays sorted together by the first ones
    (StableHLO's ``sort``).

    nan comes last; complex numbers are ordered by real part, then by imaginary part.

    Args:
      operand: an array, or a tuple or list of arrays of one shape.
      dimension: axis number to sort along; negative numbers count from the last axis.
      is_stable: whether equal elements keep their relative order.
      num_keys: number of leading arrays that are sort keys: ties in the first are resolved by the second, and so on.

    Returns:
      The sorted array, or a tuple of the sorted arrays.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: the shapes differ.
      OptionError: `num_keys` is not between 1 and the number of arrays.

    >>> sort(np.array([2, 1]))
    Array([1, 2], dtype=int32)
    """
    arrays = check("sort", *operand) if isinstance(operand, tuple | list) else check("sort", operand)
    if not arrays:
        raise ArgumentError("sort needs at least one array")
    at = canonical_axis(dimension, type_of(arrays[0]).ndim, "sort")
    outs = _sort(*arrays, dimension=at, is_stable=is_stable, num_keys=num_keys)
    return tuple(outs) if isinstance(operand, tuple | list) else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """`keys` sorted in ascending order, and `values` permuted in the same way (StableHLO's ``sort``).

    Args:
      keys: array to sort; see `sort` for the order.
      values: array of the shape of `keys`, of any dtype.
      dimension: axis number to sort along; negative numbers count from the last axis.
      is_stable: whether values of equal keys keep their relative order.

    Returns:
      The pair (sorted keys, permuted values), of the shape and dtypes of `keys` and `values`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: the shapes differ.

    >>> sort_key_val(np.array([2, 1]), np.array([5, 6]))
    (Array([1, 2], dtype=int32), Array([6, 5], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable, 1)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the largest element along `axis`, the first one if there are several; the first nan if there is one
    (as ``numpy.argmax``).

    Args:
      operand: array of real numbers or bools.
      axis: axis number to search along, not negative.
      index_dtype: integer dtype of the result.

    Returns:
      An array of `index_dtype`, of the shape of `operand` without `axis`.

    Raises:
      DtypeError: `operand` is complex, or `index_dtype` is not an integer dtype.
      ShapeError: `axis` is out of range, or has length 0.

    >>> argmax(np.array([1, 3, 2]), 0, "int32")
    Array(1, dtype=int32)
    """
    operand = check_one("argmax", operand)
    return _reduce.argmax(operand, axes=(axis,), index_dtype=dtypes.user_dtype(index_dtype))


@docs_from(argmax)
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the smallest element along `axis`, the first one if there are several; the first nan if there is one
    (as ``numpy.argmin``).

    >>> argmin(np.array([3, 1, 2]), 0, "int32")
    Array(1, dtype=int32)
    """
    operand = check_one("argmin", operand)
    return _reduce.argmin(operand, axes=(axis,), index_dtype=dtypes.user_dtype(index_dtype))


class _Cumulative(Protocol):
    def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...


class _Reduction(Protocol):
    def __call__(self, operand: ArrayLike, axes: Ints) -> Array: ...


def _cumulative(primitive: Any, name: str, what: str, mirrored: str, result: str, note: str = "") -> _Cumulative:
    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        operand = check_one(name, operand)
        return primitive(operand, axis=integer(primitive.name, "axis", axis), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    function.__doc__ = (
        f"Cumulative {what} along an axis (as ``numpy.{mirrored}``).\n\n"
        f"Args:\n  operand: array of numbers.{note}\n"
        "  axis: axis number to accumulate along, not negative.\n"
        "  reverse: whether to accumulate from the end of the axis to its start.\n\n"
        "Returns:\n  An array of the shape and dtype of `operand`.\n\n"
        "Raises:\n  DtypeError: `operand` is bool.\n  ShapeError: the axis number is out of range.\n\n"
        f">>> from phlox import lax\n>>> lax.{name}(np.array([1, 3, 2]))\nArray({result}, dtype=int32)\n"
    )
    return function


_ORDER = " Complex ones are ordered by real part, then by imaginary part."

cumsum = _cumulative(_running.cumsum, "cumsum", "sums", "cumsum", "[1, 4, 6]")
cumprod = _cumulative(_running.cumprod, "cumprod", "products", "cumprod", "[1, 3, 6]")
cummax = _cumulative(_running.cummax, "cummax", "maxima", "maximum.accumulate", "[1, 3, 3]", _ORDER)
cummin = _cumulative(_running.cummin, "cummin", "minima", "minimum.accumulate", "[1, 1, 1]", _ORDER)


@docs_from(cumsum)
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative log-sum-exp along an axis: log(cumsum(exp(x))) without overflow (as ``numpy.logaddexp.accumulate``).

    Args:
      operand: array of floats or complex numbers.

    Raises:
      DtypeError: the elements are not floats or complex numbers.

    >>> cumlogsumexp(np.zeros(2, np.float32))
    Array([0.       , 0.6931472], dtype=float32)
    """
    operand = check_one("cumlogsumexp", operand)
    return _running.cumlogsumexp(operand, axis=integer("cumlogsumexp", "axis", axis), reverse=bool(reverse))


_ANY, _BITS = "numbers or bools", "integers or bools"


def _reduction(
    primitive: Any,
    name: str,
    what: str,
    example: str,
    result: str,
    takes: str,
    nothing: str,
    takes_sharding: bool = False,
) -> _Reduction:
    def plain(operand: ArrayLike, axes: Ints) -> Array:
        operand = check_one(name, operand)
        return primitive(operand, axes=tuple(axes))

    def laid_out(operand: ArrayLike, axes: Ints, *, out_sharding: OutSharding = None) -> Array:
        return plain(operand, axes)

    function: Any = laid_out if takes_sharding else plain
    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.lax"
    function.__doc__ = (
        f"{what} of the elements over `axes` (StableHLO's ``reduce``).\n\n"
        f"Args:\n  operand: array of {takes}.\n  axes: axis numbers to reduce over, distinct and not negative.\n\n"
        f"Returns:\n  An array of the dtype of `operand`, without `axes`; {nothing} where there are no elements.\n\n"
        f"Raises:\n  DtypeError: the elements are not {takes}.\n"
        "  ShapeError: an axis is out of range, or is named twice.\n\n"
        f">>> from phlox import lax\n>>> lax.{name}(np.array({example}), (0,))\n{result}\n"
    )
    return takes_out_sharding(function) if takes_sharding else function


@takes_out_sharding
def reduce_sum(operand: ArrayLike, axes: Ints, *, out_sharding: OutSharding = None) -> Array:
    """The sum of the elements over `axes` (StableHLO's ``reduce``).

    Args:
      operand: array of numbers.
      axes: axis numbers to sum over, distinct and not negative.

    Returns:
      An array of the dtype of `operand`, without `axes`; 0 where there are no elements.

    Raises:
      DtypeError: `operand` is bool, or has 16-bit floats and the flag ``allow_f16_reductions`` is False.
      ShapeError: an axis is out of range, or is named twice.

    >>> reduce_sum(np.array([1, 2]), (0,))
    Array(3, dtype=int32)
    """
    return _reduce.reduce_sum(check_one("reduce_sum", operand), axes=tuple(axes))


reduce_prod = _reduction(
    _reduce.reduce_prod, "reduce_prod", "The product", "[2, 3]", "Array(6, dtype=int32)", "numbers", "1"
)
reduce_max = _reduction(
    _reduce.reduce_max,
    "reduce_max",
    "The largest",
    "[1, 2]",
    "Array(2, dtype=int32)",
    _ANY,
    "-inf or the smallest integer",
    takes_sharding=True,
)
reduce_min = _reduction(
    _reduce.reduce_min,
    "reduce_min",
    "The smallest",
    "[1, 2]",
    "Array(1, dtype=int32)",
    _ANY,
    "inf or the largest integer",
    takes_sharding=True,
)
reduce_and = _reduction(
    _reduce.reduce_and, "reduce_and", "The bitwise and", "[True]", "Array(True, dtype=bool)", _BITS, "all bits set"
)
reduce_or = _reduction(
    _reduce.reduce_or, "reduce_or", "The bitwise or", "[False]", "Array(False, dtype=bool)", _BITS, "0"
)
reduce_xor = _reduction(
    _reduce.reduce_xor, "reduce_xor", "The bitwise exclusive or", "[1, 3]", "Array(2, dtype=int32)", _BITS, "0"
)

# --- contraction ----------------------------------------------------------------------------------------


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products over contracted axes, with optional batch axes (StableHLO's ``dot_general``).

    Args:
      lhs, rhs: arrays of any dtype. If their dtypes differ, both are converted to the more precise one.
      dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)): sequences of axis numbers, not
        negative. Corresponding axes of lhs and rhs have the same length. An integer stands for a sequence of one axis.
      precision: a `Precision` or its name, a pair of these for `lhs` and `rhs`, a `DotAlgorithm` or a
        `DotAlgorithmPreset`; None means the value of the flag ``default_matmul_precision``.
      preferred_element_type: dtype in which products are summed, and of the result; None means the dtype of the
        operands.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operands, or chosen by the compiler.

    Returns:
      An array with the batch axes first, then the remaining axes of `lhs`, then those of `rhs`.

    Raises:
      ShapeError: an axis is out of range or is named twice, or corresponding axes differ in length.
      OptionError: `precision` is unknown.

    >>> dot_general(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """

    lhs, rhs = operands_for(out_sharding, *check("dot_general", lhs, rhs))
    preferred = None if preferred_element_type is None else dtypes.user_dtype(preferred_element_type)
    if preferred is not None and _of_different_bytes(lhs, rhs):
        # Both hold the numbers of both. XLA's CPU has not all products of bfloat16 with results of float32.
        wide = dtypes.float32 if preferred in (dtypes.float32, dtypes.float64) else dtypes.bfloat16
        lhs, rhs = to_dtype(lhs, wide), to_dtype(rhs, wide)
    lhs, rhs = _of_higher_precision(lhs, rhs)
    (lc, rc), (lb, rb) = dimension_numbers
    out = contract(lhs, rhs, _pair(lc, rc), _pair(lb, rb), precision, preferred)
    return lay_out("dot_general", out, out_sharding)


def _of_different_bytes(lhs: Any, rhs: Any) -> bool:
    """Whether these are two kinds of floats of 8 bits, none of which holds the numbers of the other."""
    first, second = type_of(lhs).dtype, type_of(rhs).dtype
    return first != second and all(dtypes.kind(d) == "f" and dtypes.itemsize_bits(d) <= 8 for d in (first, second))


def _of_higher_precision(lhs: Any, rhs: Any) -> list[Any]:
    """Operands in the dtype of that which XLA takes for the more precise; integers are computed modulo their width."""
    types = [type_of(x) for x in (lhs, rhs)]
    if types[0].dtype == types[1].dtype:
        return promote_dtypes(lhs, rhs)

    def precision(dtype: Any) -> tuple[Any, ...]:
        inside = dtypes.real_part(dtype)
        if not dtypes.is_inexact(inside):
            bits = 1 if dtypes.kind(inside) == "b" else dtypes.itemsize_bits(inside)
            return False, -1, -1, bits, dtypes.kind(inside) != "u"
        info = dtypes.finfo(inside)
        return inside != dtype, info.maxexp, info.nmant, dtypes.itemsize_bits(inside), True

    dtype = max((aval.dtype for aval in types), key=precision)
    return [to_dtype(x, dtype, all(aval.weak_type for aval in types)) for x in (lhs, rhs)]


def _pair(first: Any, second: Any) -> tuple[Ints, Ints]:
    """Axes of both sides; where there is one it may stand alone."""
    return several(first), several(second)


@takes_out_sharding
def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of vectors and matrices: sums over the last axis of `lhs` and the first axis of `rhs` (as
    ``numpy.dot``).

    Args:
      lhs, rhs: vectors or matrices; arrays of any shape if `dimension_numbers` is given. If their dtypes differ, both
        are converted to the more precise one.
      dimension_numbers, precision, preferred_element_type: as for `dot_general`; without `dimension_numbers`, the
        contracted axes are those of the matrix product.

    Returns:
      An array with the remaining axes of `lhs`, then those of `rhs`, as for `dot_general`.

    Raises:
      ShapeError: an operand is not a vector or matrix, or the contracted axes differ in length.
      OptionError: `precision` is unknown.

    >>> dot(np.ones(2, np.float32), np.ones(2, np.float32))
    Array(2., dtype=float32)
    """
    lhs, rhs = check("dot", lhs, rhs)
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    if not (1 <= type_of(lhs).ndim <= 2 and 1 <= type_of(rhs).ndim <= 2):
        raise ShapeError(
            f"dot takes vectors and matrices, got {type_of(lhs).short} and {type_of(rhs).short}",
            instead="dot_general, or phlox.numpy.dot",
            shapes=[type_of(lhs).shape, type_of(rhs).shape],
        )
    numbers = (((type_of(lhs).ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, numbers, precision, preferred_element_type)


Precision = _dot.Precision
DotAlgorithm = _algorithms.DotAlgorithm
DotAlgorithmPreset = _algorithms.DotAlgorithmPreset
DotDimensionNumbers = _dot.DotDimensionNumbers
GatherDimensionNumbers = _indexing.GatherDimensionNumbers
ScatterDimensionNumbers = _indexing.ScatterDimensionNumbers
GatherScatterMode = _indexing.GatherScatterMode
