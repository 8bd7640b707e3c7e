"""Short forms of common uses: one index along an axis, a constant array, the largest elements."""

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
    """An array of `shape` with one value everywhere; a Python number without `dtype` stays weakly typed (as
    ``numpy.full``).

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
def empty(shape: Shape, dtype: DTypeLike | None, *, out_sharding: OutSharding = None) -> Any:
    """An array of `shape` whose values do not matter; they are zeros (as ``numpy.empty``).

    >>> empty((2,), "int8").dtype
    dtype('int8')
    """
    return full(shape, 0, dtype)


def dtype(x: Any) -> Any:
    """The element type of `x`, as an array; or the one that a type or its name stands for (as ``jax.lax.dtype``).

    >>> dtype(1.0), dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, type | str | np.dtype):
        return dtypes.user_dtype(x, "dtype")
    return type_of(*check("dtype", x)).dtype


# --- shapes ---------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, as in NumPy (as ``numpy.broadcast_shapes``).

    >>> broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return checked_common_shape(shapes)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """`x` with axes of length 1 in front until it has at least `rank` axes (as ``jax.lax.broadcast_to_rank``).

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
    """`operand` with the axes from `start_dimension` to before `stop_dimension` made one (StableHLO's ``reshape``).

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
    """The part of `operand` at `index`, a Python integer, along `axis` (StableHLO's ``slice``).

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
    """The part of `operand` at a computed `index` along `axis`; indices outside are moved to the edge (StableHLO's
    ``dynamic_slice``).

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
    """`operand` with `update` (which lacks `axis`, or has it) written at `index` along `axis` (StableHLO's
    ``dynamic_update_slice``).

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
    """Matrix products of the last two axes; the axes in front must be the same (StableHLO's ``dot_general``).

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    lhs, rhs = check("batch_matmul", lhs, rhs)
    left, right = type_of(lhs), type_of(rhs)
    if min(left.ndim, right.ndim) < 2 or left.ndim != right.ndim:
        raise ShapeError(f"batch_matmul: {left.short} and {right.short} need as many axes, and two at least")
    front = tuple(range(left.ndim - 2))
    return dot_general(lhs, rhs, (((left.ndim - 1,), (right.ndim - 2,)), (front, front)), precision)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Any]:
    """The `k` largest elements along `axis`, largest first, and where they are; equal ones in order of their place
    (CHLO's ``top_k``).

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
) -> list[Any]:
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
) -> list[Any]:
    """About the `k` largest elements along an axis, and where they are; on a TPU much faster than `top_k` (as
    ``jax.lax.approx_max_k``).

    Args:
      operand: floats.
      recall_target: the share of the true ones that is to be found; CPUs and GPUs find all.
      reduction_input_size_override: the length of the whole axis, where `operand` is a part of it.
      aggregate_to_topk: whether candidates are sorted and cut to `k`; else there may be more of them.

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
) -> list[Any]:
    """About the `k` smallest elements along an axis, and where they are; options as for `approx_max_k` (as
    ``jax.lax.approx_min_k``).

    >>> approx_min_k(np.array([3.0, 1.0, 2.0], np.float32), 2)
    [Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    options = reduction_input_size_override, aggregate_to_topk
    return _approximate("approx_min_k", operand, k, reduction_dimension, recall_target, *options)
