"""Operations of ``phlox.lax`` on the shape, dtype and order of elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence

from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._base.errors import ArgumentError
from .._ir import dtypes
from .._operands.broadcasting import insert_axes
from .._operands.checks import (
    as_shape,
    canonical_axis,
    check,
    check_one,
    integer,
    integers,
    sequence,
    type_of,
    warn_of_lost_parts,
)
from .._ops.structure import (
    iota as _iota,
    shape as ops,
)
from .._ops.structure.numbers import wrapped_integer
from .._transform.sharding_types import with_reductions
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
    # A conversion to the same dtype still removes a weak type.
    x = ops.as_array_or_tracer(wrapped_integer(check_one("convert_element_type", operand), result_dtype))
    warn_of_lost_parts(x.aval.dtype, result_dtype)
    return x if x.aval.dtype == result_dtype and not x.aval.weak_type else ops.convert_array(x, result_dtype, False)


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
        operand = ops.transpose(operand, permutation=integers("reshape", "dimensions", dimensions))
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
    return ops.transpose(*check("transpose", operand), permutation=integers("transpose", "permutation", permutation))


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
        return ops.as_array_or_tracer(operand)
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
    dims, shape = integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions), as_shape(shape)
    if shape == type_of(operand).shape and dims == tuple(range(len(shape))):
        return ops.as_array_or_tracer(operand)
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
    axes = sequence("squeeze", "dimensions", dimensions)
    return ops.squeeze(array, dimensions=tuple(canonical_axis(i, type_of(array).ndim, "squeeze") for i in axes))


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
    axes = sequence("expand_dims", "dimensions", dimensions)
    return insert_axes("expand_dims", check_one("expand_dims", array), axes)


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
    padding_value = with_reductions(padding_value, type_of(operand))
    rows = tuple([integers("pad", "padding_config", row) for row in sequence("pad", "padding_config", padding_config)])
    return ops.pad(operand, padding_value, padding_config=rows)


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
    return ops.rev(*check("rev", operand), dimensions=integers("rev", "dimensions", dimensions))


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
