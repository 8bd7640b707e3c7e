"""Functions for common cases: constant arrays, one index along an axis, batched matmul, the k largest elements."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.devices.transfers import own_sharding, placed
from .._api.jit.jit import jit
from .._api.jit.programs import ShapeDtypeStruct, dtype_like
from .._base import checks
from .._base.docstrings import docs_from
from .._base.errors import IndexingError, ShapeError
from .._ir import dtypes
from .._ir.avals import typeof_value
from .._ir.dimensions import surely_at_least
from .._operands import index_bounds
from .._operands.broadcasting import checked_common_shape
from .._operands.checks import (
    array_like,
    as_shape,
    canonical_axis,
    check,
    check_one,
    declared_dtype,
    integer,
    refuse_complex,
    type_of,
    type_or_content_type,
)
from .._operands.keys import as_keys
from .._operands.promotion import to_dtype
from .._ops.linalg.dot import PrecisionLike
from .._ops.structure import shape as ops, top_k as topk
from .._ops.structure.numbers import large_integer
from .._transform.manual_axes import vary_also
from .._xla.sharding import Sharding
from ..typing import Array, ArrayLike, DTypeLike, Shape
from ._contraction import dot_general
from ._slices import dynamic_slice_in_dim, dynamic_update_slice, slice_in_dim, starts_along
from ._structural import broadcast_in_dim, reshape

# --- constants ------------------------------------------------------------------------------------------


def _scalar(function: str, value: Any, dtype: Any, weak: bool = False) -> Any:
    """The value of all elements, with the dtype of the array."""
    if dtypes.is_extended(dtype):
        return as_keys(function, value, dtype)
    refuse_complex(function, value, dtype)
    return to_dtype(large_integer(value, dtype), dtype, weak)


def full(
    shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Sharding | None = None
) -> Array:
    """An array of `shape` filled with one value (as ``numpy.full``).

    Args:
      shape: shape of the result; an integer stands for one axis.
      fill_value: value of all elements, a scalar.
      dtype: dtype of the result; None means the dtype of `fill_value`; for a Python number that is the default dtype,
        weakly typed.
      sharding: sharding of the result; None means the default device.

    Returns:
      An array of `shape` and `dtype`.

    Raises:
      ShapeError: `fill_value` has axes, or a length is negative.
      ArgumentError: `fill_value` is a complex Python number and `dtype` is real.

    >>> full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32, weak_type=True)
    """
    value = check_one("full", fill_value)
    aval = type_of(value)
    if aval.shape:
        raise ShapeError(f"full: fill_value must be a number, got {aval.short}", instead="phlox.numpy.full")
    lengths = as_shape(shape, "full")
    out_dtype = aval.dtype if dtype is None else dtypes.user_dtype(dtype, "full")
    scalar = _scalar("full", value, out_dtype, aval.weak_type and dtype is None)
    return placed(broadcast_in_dim(scalar, lengths, ()) if lengths else ops.as_array_or_tracer(scalar), sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """An array filled with one value, with the shape and dtype of `x` by default (as ``numpy.full_like``).

    Args:
      x: array, reference, or list or tuple of numbers, whose shape and dtype are used; its values are not.
      fill_value: value of all elements, a scalar.
      dtype: dtype of the result; None means the dtype of `x`.
      shape: shape of the result; None means the shape of `x`.
      sharding: sharding of the result; None means that of `x`, if it is committed and has the shape of the result, else
        the default device.

    Returns:
      An array of this shape and dtype.

    Raises:
      ShapeError: `fill_value` has axes, or a length is negative.
      ArgumentError: `fill_value` is a complex Python number and the dtype is real.

    >>> full_like(np.ones(2, np.float32), 3)
    Array([3., 3.], dtype=float32)
    """
    x = array_like(np.asarray(x) if isinstance(x, list | tuple) else x)
    aval = type_or_content_type("full_like", x)
    value = check_one("full_like", fill_value)
    out_dtype = dtype_like(x, aval) if dtype is None else dtypes.user_dtype(dtype, "full_like")
    value = _scalar("full_like", value, out_dtype)
    lengths = aval.shape if shape is None else as_shape(shape, "full_like")
    # A ShapeDtypeStruct has a weak type for tracing only, as in JAX: the array of a type has a dtype.
    is_weak = aval.weak_type and dtype is None and not isinstance(x, ShapeDtypeStruct)
    if sharding is None and not is_weak:
        sharding = own_sharding(x, lengths)
    out = full(lengths, value, sharding=sharding)
    # As in JAX, it varies between the devices of a `shard_map` as `x` does.
    return vary_also(ops.convert(out, type_of(out).dtype, is_weak), aval.vma)


@takes_out_sharding
def empty(shape: Shape, dtype: DTypeLike | None, *, out_sharding: OutSharding = None) -> Array:
    """An array of `shape` with unspecified values; they are zeros (as ``numpy.empty``).

    Args:
      shape: shape of the result; an integer stands for one axis.
      dtype: dtype of the result; None means the default float.

    Returns:
      An array of `shape` and `dtype`.

    Raises:
      ShapeError: a length is negative.

    >>> empty((2,), "int8").dtype, empty((2,), None).dtype
    (dtype('int8'), dtype('float32'))
    """
    return full(shape, 0, dtypes.python_scalar_dtype(float) if dtype is None else dtype)


def dtype(x: ArrayLike | DTypeLike) -> np.dtype[Any]:
    """The dtype of an array or number, or the dtype that a type or name denotes (as ``jax.lax.dtype``).

    Args:
      x: array, number, reference, or another object with an attribute ``dtype``; or a dtype, a scalar type such as
        ``float``, or a name such as ``"int8"``.

    Returns:
      A dtype; while the flag ``enable_x64`` is off, 64-bit dtypes are replaced by their 32-bit counterparts.

    Raises:
      ArgumentError: `x` cannot be converted to an array.
      DtypeError: `x` is a type or a name that denotes no dtype.

    >>> dtype(1.0), dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, type | str | np.dtype):
        return dtypes.user_dtype(x, "dtype")
    declared = declared_dtype(x)
    return type_or_content_type("dtype", x).dtype if declared is None else declared


# --- shapes ---------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that results from broadcasting arrays of the given shapes together (as ``numpy.broadcast_shapes``).

    Args:
      *shapes: shapes, as tuples of integers; they are aligned at the last axis.

    Returns:
      The broadcast shape, a tuple of integers.

    Raises:
      ShapeError: lengths along an axis differ and are not 1, or one is negative.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return checked_common_shape(shapes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with leading axes of length 1 added until it has `rank` axes (as ``jax.lax.broadcast_to_rank``).

    Args:
      x: array of any shape and dtype.
      rank: minimum number of axes of the result; an array with more axes is unchanged.

    Returns:
      An array of the dtype of `x`.

    >>> broadcast_to_rank(np.ones(3), 3).shape
    (1, 1, 3)
    """
    x = check_one("broadcast_to_rank", x)
    shape = type_of(x).shape
    missing = integer("broadcast_to_rank", "rank", rank) - len(shape)
    if missing <= 0:
        return ops.as_array_or_tracer(x)
    return broadcast_in_dim(x, (1,) * missing + shape, tuple(range(missing, missing + len(shape))))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """`operand` with a range of adjacent axes flattened into one (StableHLO's ``reshape``).

    Args:
      operand: array of any shape and dtype.
      start_dimension: first axis of the range; negative numbers count from the last axis.
      stop_dimension: end of the range, not included; None means through the last axis. If it equals `start_dimension`,
        an axis of length 1 is inserted there.

    Returns:
      An array of the dtype of `operand`.

    Raises:
      ShapeError: `stop_dimension` is before `start_dimension`.

    >>> collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    operand = check_one("collapse", operand)
    shape = type_of(operand).shape
    start_dimension = integer("collapse", "start_dimension", start_dimension)
    stop_dimension = None if stop_dimension is None else integer("collapse", "stop_dimension", stop_dimension)
    first, last, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if last < first:
        raise ShapeError(f"collapse: axes {start_dimension} to {stop_dimension} of {type_of(operand).short}")
    return reshape(operand, (*shape[:first], math.prod(shape[first:last]), *shape[last:]))


# --- one index along an axis ----------------------------------------------------------------------------


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice of `operand` at a single `index` along `axis` (StableHLO's ``slice``).

    Args:
      operand: array of any dtype.
      index: Python integer; negative numbers count from the end.
      axis: axis number to index; negative numbers count from the last axis.
      keepdims: whether the result keeps `axis`, with length 1.

    Returns:
      An array of the dtype of `operand`, without `axis`, or with `axis` of length 1.

    Raises:
      AxisError: the axis number is out of range.
      IndexingError: `index` is out of bounds.

    >>> index_in_dim(np.arange(6).reshape(2, 3), -1, 1)
    Array([[2],
           [5]], dtype=int32)
    """
    operand = check_one("index_in_dim", operand)
    at = canonical_axis(axis, type_of(operand).ndim, "index_in_dim")
    size = type_of(operand).shape[at]
    index = integer("index_in_dim", "index", index)
    place = index + size if index < 0 else index
    if not 0 <= place < size:
        raise IndexingError(f"index_in_dim: {index} is outside of an axis of length {size}", index=index)
    part = slice_in_dim(operand, place, place + 1, axis=at)
    return part if keepdims else ops.squeeze(part, dimensions=(at,))


def _length(x: Any, axis: Any) -> Any:
    """The length of an axis; 0 if there is none, which raises an error later."""
    shape = getattr(typeof_value(x), "shape", ())
    return shape[axis] if isinstance(axis, int) and -len(shape) <= axis < len(shape) else 0


def _check_start(operand: Any, start: Any, axis: Any, length: int, allow_negative_indices: bool) -> None:
    """Checks an index that is known, before it becomes an argument of a jitted function."""
    is_checked = isinstance(start, int | np.generic) or checks.is_strict()
    if is_checked and surely_at_least(length, 1) and surely_at_least(_length(operand, axis), length):
        shape = type_of(operand).shape
        index_bounds.check(start, axis % len(shape), shape, index_bounds.MOVE, bool(allow_negative_indices), length)


@docs_from(index_in_dim)
def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """The slice of `operand` along `axis` at an `index` that may be computed (StableHLO's ``dynamic_slice``).

    Args:
      index: integer scalar; an out-of-bounds index is clamped to the nearest valid one.
      allow_negative_indices: whether a negative index counts from the end.

    Raises:
      ShapeError: `index` is not a scalar.
      IndexingError: `index` is not an integer.

    >>> dynamic_index_in_dim(np.arange(4), jnp.array(2), keepdims=False)
    Array(2, dtype=int32)
    """
    _check_start(operand, index, axis, 1, allow_negative_indices)
    return _dynamic_index_in_dim(operand, index, axis, keepdims, allow_negative_indices)


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "allow_negative_indices"))
def _dynamic_index_in_dim(operand: Any, index: Any, axis: int, keepdims: bool, allow_negative_indices: bool) -> Any:
    operand = check_one("dynamic_index_in_dim", operand)
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    at = canonical_axis(axis, type_of(operand).ndim, "dynamic_index_in_dim")
    return part if keepdims else ops.squeeze(part, dimensions=(at,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with a slice along `axis` replaced by `update`, starting at `start_index` (StableHLO's
    ``dynamic_update_slice``).

    Args:
      operand: array of any dtype.
      update: array of the dtype of `operand`, with the same number of axes, each at most as long as that of `operand`.
      start_index: first index along `axis`, an integer scalar; it is moved if `update` would extend beyond the array.
      axis: axis number of the update; negative numbers count from the last axis.
      allow_negative_indices: whether a negative start index counts from the end.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: `update` differs from `operand` in dtype or number of axes, or is larger.
      IndexingError: `start_index` is not an integer.

    >>> dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    _check_start(operand, start_index, axis, _length(update, axis), allow_negative_indices)
    return _dynamic_update_slice_in_dim(operand, update, start_index, axis, allow_negative_indices)


@functools.partial(jit, inline=True, static_argnames=("axis", "allow_negative_indices"))
def _dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, allow_negative_indices: bool
) -> Any:
    operand, update = check("dynamic_update_slice_in_dim", operand, update)
    rank = type_of(operand).ndim
    at = canonical_axis(axis, rank, "dynamic_update_slice_in_dim")
    starts = starts_along("dynamic_update_slice_in_dim", rank, at, start_index)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


@docs_from(dynamic_update_slice_in_dim)
def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with the slice at `index` along `axis` replaced by `update` (StableHLO's ``dynamic_update_slice``).

    Args:
      update: array of the dtype of `operand`: the new slice, with or without `axis`.
      index: integer scalar; it is moved if `update` would extend beyond the array.
      axis: axis number to index; negative numbers count from the last axis.
      allow_negative_indices: whether a negative index counts from the end.

    Raises:
      ShapeError: `update` differs from `operand` in dtype, or its shape does not match the slice.
      IndexingError: `index` is not an integer.

    >>> dynamic_update_index_in_dim(np.zeros(3), 5.0, 1, 0)
    Array([0., 5., 0.], dtype=float32)
    """
    _check_start(operand, index, axis, 1, allow_negative_indices)
    return _dynamic_update_index_in_dim(operand, update, index, axis, allow_negative_indices)


@functools.partial(jit, inline=True, static_argnames=("axis", "allow_negative_indices"))
def _dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int, allow_negative_indices: bool) -> Any:
    operand, update = check("dynamic_update_index_in_dim", operand, update)
    at = canonical_axis(axis, type_of(operand).ndim, "dynamic_update_index_in_dim")
    shape = type_of(update).shape
    if len(shape) != type_of(operand).ndim:
        update = reshape(update, (*shape[:at], 1, *shape[at:]))
    update = ops.as_array_or_tracer(update)
    return dynamic_update_slice_in_dim(operand, update, index, at, allow_negative_indices=allow_negative_indices)


# --- products and order ---------------------------------------------------------------------------------


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products over the last two axes, for each index of the leading axes (StableHLO's ``dot_general``).

    Args:
      lhs: array of shape (..., m, k).
      rhs: array of shape (..., k, n), with the same leading axes.
      precision: as for `dot_general`.

    Returns:
      An array of shape (..., m, n).

    Raises:
      ShapeError: the operands have different numbers of axes or fewer than 2, or lengths of axes do not match.
      OptionError: `precision` is unknown.

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    lhs, rhs = check("batch_matmul", lhs, rhs)
    left, right = type_of(lhs), type_of(rhs)
    if min(left.ndim, right.ndim) < 2 or left.ndim != right.ndim:
        raise ShapeError(f"batch_matmul: {left.short} and {right.short} need as many axes, and two at least")
    front = tuple(range(left.ndim - 2))
    return dot_general(lhs, rhs, (((left.ndim - 1,), (right.ndim - 2,)), (front, front)), precision)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """The `k` largest elements along `axis` and their indices (CHLO's ``top_k``).

    Elements are in descending order, nan before all others; of equal elements the one with the lower index comes first.

    Args:
      operand: array of real numbers or bools.
      k: number of elements to return, from 0 to the length of the axis.
      axis: axis number to search along; negative numbers count from the last axis.
      is_stable: False permits another order of equal elements; here the order is the same.

    Returns:
      The list [values, indices]: arrays of the dtype of `operand` and of int32, with length `k` along `axis`.

    Raises:
      AxisError: the axis number is out of range.
      DtypeError: `operand` is complex.
      OptionError: `k` is out of range.

    >>> top_k(np.array([3, 1, 2]), 2)
    [Array([3, 2], dtype=int32), Array([0, 2], dtype=int32)]
    """
    operand = check_one("top_k", operand)
    return topk.top_k(operand, k=integer("top_k", "k", k), axis=canonical_axis(axis, type_of(operand).ndim, "top_k"))


def _approximate(
    function: str,
    operand: Any,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[Array]:
    operand = check_one(function, operand)
    rank = type_of(operand).ndim
    return topk.approx_top_k(
        operand,
        k=k,
        reduction_dimension=canonical_axis(reduction_dimension, rank, function) if rank else reduction_dimension,
        recall_target=recall_target,
        is_max_k=function == "approx_max_k",
        reduction_input_size_override=integer(function, "reduction_input_size_override", reduction_input_size_override),
        aggregate_to_topk=bool(aggregate_to_topk),
    )


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The approximately `k` largest elements along an axis and their indices; on TPUs much faster than `top_k` (as
    ``jax.lax.approx_max_k``).

    Args:
      operand: array of floats.
      k: number of elements to return, from 1 to the length of the axis.
      reduction_dimension: axis number to search along; negative numbers count from the last axis.
      recall_target: expected fraction of the true `k` elements that are found, greater than 0 and at most 1; CPUs and
        GPUs always find all of them.
      reduction_input_size_override: length of the whole axis, if `operand` is only a part of the data; negative means
        the length of the axis of `operand`.
      aggregate_to_topk: whether the candidates are sorted and reduced to `k`; if False, the result may contain more.

    Returns:
      The list [values, indices]: arrays of the dtype of `operand` and of int32, with length `k` along the axis.

    Raises:
      ShapeError: `operand` is a scalar.
      AxisError: the axis number is out of range.
      DtypeError: the elements are not floats.
      OptionError: `k`, `recall_target` or `reduction_input_size_override` is out of range.

    >>> approx_max_k(np.array([3.0, 1.0, 2.0], np.float32), 2)
    [Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    options = reduction_input_size_override, aggregate_to_topk
    return _approximate("approx_max_k", operand, k, reduction_dimension, recall_target, *options)


@docs_from(approx_max_k)
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """The approximately `k` smallest elements along an axis and their indices (as ``jax.lax.approx_min_k``).

    Args:
      recall_target, reduction_input_size_override, aggregate_to_topk: as for `approx_max_k`.

    >>> approx_min_k(np.array([3.0, 1.0, 2.0], np.float32), 2)
    [Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    options = reduction_input_size_override, aggregate_to_topk
    return _approximate("approx_min_k", operand, k, reduction_dimension, recall_target, *options)
