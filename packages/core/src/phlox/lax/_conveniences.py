"""Functions for common cases: constant arrays, one index along an axis, batched matmul, the k largest elements."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._api.devices.out_sharding import takes_out_sharding
from .._api.devices.transfers import placed
from .._api.jit.jit import jit
from .._base.errors import IndexingError, ShapeError
from .._ir import dtypes
from .._operands.broadcasting import checked_common_shape
from .._operands.checks import as_shape, canonical_axis, check, check_one, refuse_complex, type_of
from .._operands.promotion import to_dtype
from .._ops.structure import shape as ops, top_k as topk
from ._structural import (
    broadcast_in_dim,
    dot_general,
    dynamic_slice_in_dim,
    dynamic_update_slice,
    reshape,
    slice_in_dim,
    starts_along,
)

if TYPE_CHECKING:
    from .._api.devices.out_sharding import OutSharding
    from .._ops.linalg.dot import PrecisionLike
    from .._xla.sharding import Sharding
    from ..typing import Array, ArrayLike, DTypeLike, Shape

# --- constants ------------------------------------------------------------------------------------------


def full(
    shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, sharding: Sharding | None = None
) -> Array:
    """An array of `shape` with one value everywhere (as ``numpy.full``).

    Args:
      shape: length of each axis; an integer for one axis.
      fill_value: scalar.
      dtype: dtype of the result; None takes that of `fill_value`, and of a Python number the default dtype, weakly
        typed.
      sharding: the sharding of the array; None means the default device.

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
    wanted = aval.dtype if dtype is None else dtypes.user_dtype(dtype, "full")
    refuse_complex("full", value, wanted)
    made = to_dtype(ops.wrapped(value, wanted), wanted, aval.weak_type and dtype is None)
    return placed(broadcast_in_dim(made, lengths, ()) if lengths else ops.own(made), sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """`full` with the shape and dtype of `x`, unless told otherwise (as ``numpy.full_like``).

    Args:
      x: array, or a list or tuple of numbers, of which only shape and dtype matter.
      fill_value: scalar.
      dtype: dtype of the result; None takes that of `x`.
      shape: shape of the result; None takes that of `x`.
      sharding: the sharding of the array; None means the default device.

    Returns:
      An array of `shape` and `dtype`.

    Raises:
      ShapeError: `fill_value` has axes, or a length is negative.
      ArgumentError: `fill_value` is a complex Python number and the dtype is real.

    >>> full_like(np.ones(2, np.float32), 3)
    Array([3., 3.], dtype=float32)
    """
    x = check_one("full_like", np.asarray(x) if isinstance(x, list | tuple) else x)
    aval = type_of(x)
    value = check_one("full_like", fill_value)
    wanted = aval.dtype if dtype is None else dtypes.user_dtype(dtype, "full_like")
    refuse_complex("full_like", value, wanted)
    value = to_dtype(ops.wrapped(value, wanted), wanted)
    made = full(aval.shape if shape is None else shape, value, sharding=sharding)
    return ops.convert(made, type_of(made).dtype, aval.weak_type and dtype is None)


@takes_out_sharding
def empty(shape: Shape, dtype: DTypeLike | None, *, out_sharding: OutSharding = None) -> Array:
    """An array of `shape` whose values do not matter; they are zeros (as ``numpy.empty``).

    Args:
      shape: length of each axis; an integer for one axis.
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
    """The element type of `x`, as an array; or the one that a type or its name stands for (as ``jax.lax.dtype``).

    Args:
      x: array or number; or a dtype, a scalar type such as ``float``, or a name such as ``"int8"``.

    Returns:
      A dtype; of 64-bit types the 32-bit one, as long as the flag ``enable_x64`` is off.

    Raises:
      ArgumentError: `x` can be no array.
      DtypeError: `x` is a type or a name of no dtype.

    >>> dtype(1.0), dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, type | str | np.dtype):
        return dtypes.user_dtype(x, "dtype")
    return type_of(*check("dtype", x)).dtype


# --- shapes ---------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to together (as ``numpy.broadcast_shapes``).

    Args:
      *shapes: shapes, tuples of lengths; aligned at the last axis.

    Returns:
      A tuple: for each axis the length that is not 1, if there is one.

    Raises:
      ShapeError: lengths along an axis differ and are not 1, or one is negative.

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return checked_common_shape(shapes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with axes of length 1 in front until it has at least `rank` axes (as ``jax.lax.broadcast_to_rank``).

    Args:
      x: array of any shape and dtype.
      rank: number of axes; an array that has more keeps them.

    Returns:
      An array of the dtype of `x`.

    >>> broadcast_to_rank(np.ones(3), 3).shape
    (1, 1, 3)
    """
    x = check_one("broadcast_to_rank", x)
    shape = type_of(x).shape
    if rank <= len(shape):
        return ops.own(x)
    missing = rank - len(shape)
    return broadcast_in_dim(x, (1,) * missing + shape, tuple(range(missing, rank)))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """`operand` with several neighbouring axes made one (StableHLO's ``reshape``).

    Args:
      operand: array of any shape and dtype.
      start_dimension: the first of these axes; a negative one counts from the last.
      stop_dimension: the axis to stop before, None for all that follow. If it is `start_dimension`, an axis of length 1
        is inserted there.

    Returns:
      An array of the dtype of `operand`.

    Raises:
      ShapeError: `stop_dimension` is before `start_dimension`.

    >>> collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    operand = check_one("collapse", operand)
    shape = type_of(operand).shape
    first, last, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if last < first:
        raise ShapeError(f"collapse: axes {start_dimension} to {stop_dimension} of {type_of(operand).short}")
    return reshape(operand, (*shape[:first], math.prod(shape[first:last]), *shape[last:]))


# --- one index along an axis ----------------------------------------------------------------------------


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The part of `operand` at `index` along `axis` (StableHLO's ``slice``).

    Args:
      operand: array of any dtype.
      index: Python integer; a negative one counts from the end.
      axis: the axis; a negative one counts from the last.
      keepdims: whether `axis` stays, with length 1.

    Returns:
      An array of the other axes of `operand`, of its dtype.

    Raises:
      AxisError: `operand` has no such axis.
      IndexingError: `index` is out of bounds.

    >>> index_in_dim(np.arange(6).reshape(2, 3), -1, 1)
    Array([[2],
           [5]], dtype=int32)
    """
    operand = check_one("index_in_dim", operand)
    at = canonical_axis(axis, type_of(operand).ndim, "index_in_dim")
    size = type_of(operand).shape[at]
    place = index + size if index < 0 else index
    if not 0 <= place < size:
        raise IndexingError(f"index_in_dim: {index} is outside of an axis of length {size}", index=index)
    part = slice_in_dim(operand, place, place + 1, axis=at)
    return part if keepdims else ops.squeeze(part, dimensions=(at,))


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "allow_negative_indices"))
def dynamic_index_in_dim(
    operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Array:
    """The part of `operand` at a computed `index` along `axis` (StableHLO's ``dynamic_slice``).

    Args:
      operand: array of any dtype.
      index: integer scalar; one outside of the axis is moved to the nearest place in it.
      axis: the axis; a negative one counts from the last.
      keepdims: whether `axis` stays, with length 1.
      allow_negative_indices: whether a negative index counts from the end.

    Returns:
      An array of the other axes of `operand`, of its dtype.

    Raises:
      AxisError: `operand` has no such axis.
      ShapeError: `index` has axes.
      IndexingError: `index` is not an integer.

    >>> dynamic_index_in_dim(np.arange(4), jnp.array(2), keepdims=False)
    Array(2, dtype=int32)
    """
    operand = check_one("dynamic_index_in_dim", operand)
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    at = canonical_axis(axis, type_of(operand).ndim, "dynamic_index_in_dim")
    return part if keepdims else ops.squeeze(part, dimensions=(at,))


@functools.partial(jit, inline=True, static_argnames=("axis", "allow_negative_indices"))
def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with `update` written from `start_index` on along `axis` (StableHLO's ``dynamic_update_slice``).

    Args:
      operand: array of any dtype.
      update: array of the dtype of `operand`, with as many axes, none of them longer.
      start_index: integer scalar; it is moved so that `update` fits.
      axis: the axis; a negative one counts from the last.
      allow_negative_indices: whether a negative start counts from the end.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      AxisError: `operand` has no such axis.
      ShapeError: `update` has another dtype or number of axes than `operand`, or is larger.
      IndexingError: `start_index` is not an integer.

    >>> dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    operand, update = check("dynamic_update_slice_in_dim", operand, update)
    rank = type_of(operand).ndim
    at = canonical_axis(axis, rank, "dynamic_update_slice_in_dim")
    starts = starts_along("dynamic_update_slice_in_dim", rank, at, start_index)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


@functools.partial(jit, inline=True, static_argnames=("axis", "allow_negative_indices"))
def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with `update` written at a computed `index` along `axis` (StableHLO's ``dynamic_update_slice``).

    Args:
      operand: array of any dtype.
      update: array of the dtype of `operand`, without `axis` or with it.
      index: integer scalar; it is moved so that `update` fits.
      axis: the axis; a negative one counts from the last.
      allow_negative_indices: whether a negative index counts from the end.

    Returns:
      An array of the shape and dtype of `operand`.

    Raises:
      AxisError: `operand` has no such axis.
      ShapeError: `update` has another dtype than `operand`, or does not fit into it.
      IndexingError: `index` is not an integer.

    >>> dynamic_update_index_in_dim(np.zeros(3), 5.0, 1, 0)
    Array([0., 5., 0.], dtype=float32)
    """
    operand, update = check("dynamic_update_index_in_dim", operand, update)
    at = canonical_axis(axis, type_of(operand).ndim, "dynamic_update_index_in_dim")
    shape = type_of(update).shape
    if len(shape) != type_of(operand).ndim:
        update = reshape(ops.own(update), (*shape[:at], 1, *shape[at:]))
    placed = ops.own(update)
    return dynamic_update_slice_in_dim(operand, placed, index, at, allow_negative_indices=allow_negative_indices)


# --- products and order ---------------------------------------------------------------------------------


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products over the last two axes, for each index of the axes in front (StableHLO's ``dot_general``).

    Args:
      lhs: array of shape (..., m, k).
      rhs: array of shape (..., k, n), with the same leading axes.
      precision: as for `dot_general`.

    Returns:
      An array of shape (..., m, n).

    Raises:
      ShapeError: the numbers of axes differ or are below 2, or lengths do not fit.
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


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The `k` largest elements along `axis` and their positions (CHLO's ``top_k``).

    The largest comes first, nan before it; of equal elements the one at the lower position.

    Args:
      operand: array of real numbers or bools.
      k: how many, from 0 to the length of the axis.
      axis: the axis; a negative one counts from the last.

    Returns:
      The list [values, positions]: arrays of the dtype of `operand` and of int32, with length `k` along `axis`.

    Raises:
      AxisError: `operand` has no such axis.
      DtypeError: `operand` is complex.
      OptionError: `k` is out of range.

    >>> top_k(np.array([3, 1, 2]), 2)
    [Array([3, 2], dtype=int32), Array([0, 2], dtype=int32)]
    """
    operand = check_one("top_k", operand)
    return topk.top_k(operand, k=int(k), axis=canonical_axis(axis, type_of(operand).ndim, "top_k"))


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
        reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=aggregate_to_topk,
    )


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """About the `k` largest elements along an axis and their positions; on a TPU much faster than `top_k` (as
    ``jax.lax.approx_max_k``).

    Args:
      operand: array of floats.
      k: how many, from 1 to the length of the axis.
      reduction_dimension: the axis; a negative one counts from the last.
      recall_target: the share of the true ones that is to be found, above 0 and up to 1; CPUs and GPUs find all.
      reduction_input_size_override: the length of the whole axis, where `operand` is a part of it; negative means that
        `operand` is all.
      aggregate_to_topk: whether candidates are sorted and cut to `k`; else there may be more of them.

    Returns:
      The list [values, positions]: arrays of the dtype of `operand` and of int32, with length `k` along the axis.

    Raises:
      ShapeError: `operand` has no axes.
      AxisError: `operand` has no such axis.
      DtypeError: the elements are not floats.
      OptionError: `k`, `recall_target` or `reduction_input_size_override` is out of range.

    >>> approx_max_k(np.array([3.0, 1.0, 2.0], np.float32), 2)
    [Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    options = reduction_input_size_override, aggregate_to_topk
    return _approximate("approx_max_k", operand, k, reduction_dimension, recall_target, *options)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """About the `k` smallest elements along an axis and their positions (as ``jax.lax.approx_min_k``).

    Args:
      operand: array of floats.
      k: how many, from 1 to the length of the axis.
      reduction_dimension: the axis; a negative one counts from the last.
      recall_target, reduction_input_size_override, aggregate_to_topk: as for `approx_max_k`.

    Returns:
      The list [values, positions]: arrays of the dtype of `operand` and of int32, with length `k` along the axis.

    Raises:
      ShapeError: `operand` has no axes.
      AxisError: `operand` has no such axis.
      DtypeError: the elements are not floats.
      OptionError: `k`, `recall_target` or `reduction_input_size_override` is out of range.

    >>> approx_min_k(np.array([3.0, 1.0, 2.0], np.float32), 2)
    [Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    options = reduction_input_size_override, aggregate_to_topk
    return _approximate("approx_min_k", operand, k, reduction_dimension, recall_target, *options)
