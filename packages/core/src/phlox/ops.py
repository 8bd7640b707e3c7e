"""``phlox.ops``: sums, products and extrema of segments, which are the rows of an array with the same segment id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numpy as jnp
from ._api.devices.out_sharding import OutSharding, lay_out, operands_for
from ._base import config
from ._base.docstrings import docs_from
from ._base.errors import ConcretizationTypeError, DtypeError, OptionError
from ._base.public_names import publish
from ._ir.dtypes import highest, is_extended, lowest
from ._operands.checks import check
from ._operands.short_floats import round_to, widen
from ._ops.structure.dimension_numbers import GatherScatterMode
from ._trace.trace import Tracer
from .typing import Array, ArrayLike

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _segments(
    function: str,
    method: str,
    start: Callable[[Any], Any],
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: int | None,
    mode: Any,
    out_sharding: Any,
) -> Any:
    data, ids = (jnp.asarray(x) for x in check(function, data, segment_ids))
    if is_extended(data.dtype):
        raise DtypeError(f"{function} takes numbers, got {data.aval.short}", aval=data.aval)
    if num_segments is None:
        if isinstance(ids, Tracer):
            # The number of segments is part of the result's shape.
            ids._refuse(ConcretizationTypeError, f"{function} without num_segments", f"{function}(..., num_segments=n)")
        num_segments = max(int(np.asarray(ids).max()) + 1, 0) if ids.size else 0
    if isinstance(num_segments, Tracer):
        num_segments = num_segments.__index__()
    if num_segments < 0:
        raise OptionError(f"{function}: num_segments={num_segments}")
    if bucket_size is not None and bucket_size < 1:
        raise OptionError(f"{function}: bucket_size={bucket_size}", instead="a positive number, or None")
    options = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": GatherScatterMode.FILL_OR_DROP if mode is None else mode,
        "wrap_negative_indices": False,
    }
    dtype = data.dtype
    if method == "add":
        data = widen(data)  # one by one, 1,000 ones add up to 256 in bfloat16
    first = np.asarray(start(data.dtype)).astype(data.dtype)
    data, ids = operands_for(out_sharding, data, ids)
    if bucket_size is None:
        out = _filled((num_segments, *data.shape[1:]), first)
        out = getattr(out.at[ids], method)(data, **options)
        return lay_out(function, round_to(out, dtype), out_sharding)
    # Reduces each bucket, then the results: the rounding error of sums of many numbers is smaller.
    buckets = -(-ids.size // bucket_size)
    out = _filled((buckets, num_segments, *data.shape[1:]), first)
    out = getattr(out.at[jnp.arange(ids.shape[0]) // bucket_size, ids], method)(data, **options)
    reducers: dict[str, Any] = {"add": jnp.sum, "multiply": jnp.prod, "max": jnp.max, "min": jnp.min}
    return lay_out(function, reducers[method](out, axis=0).astype(dtype), out_sharding)


def _filled(shape: tuple[int, ...], value: np.ndarray) -> Array:
    """An array of the value that a reduction begins with. It may be infinite, which no debugging mode reports."""
    with config.scope(debug_infs=False):
        return jnp.full(shape, value, value.dtype)


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The sums of the rows in each segment (as ``jax.ops.segment_sum``).

    Args:
      data: array of shape (n, ...); its rows are the slices along the first axis.
      segment_ids: vector of n integers, the segment number of each row.
      num_segments: number of segments; None means the largest segment number plus 1. Required under `jit`.
      indices_are_sorted, unique_indices: whether `segment_ids` are known to be in ascending order, and to be distinct,
        which allows faster code.
      bucket_size: number of rows in each of the buckets that are reduced first, before their results are combined; this
        makes long sums more accurate. None means no buckets.
      mode: treatment of rows whose segment number is out of range, as for ``x.at[i]``; None drops them.
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result; None: derived
        from the operands, or chosen by the compiler.

    Returns:
      An array of shape (num_segments, ...), of the dtype of `data`; 0 for a segment without rows.

    Raises:
      DtypeError: `data` are no numbers.
      OptionError: `num_segments` is negative, or `bucket_size` is not positive.
      ConcretizationTypeError: `segment_ids` is traced and `num_segments` is None.

    >>> phlox.ops.segment_sum(jnp.array([1, 2, 4]), jnp.array([0, 1, 0]))
    Array([5, 2], dtype=int32)
    """
    options = num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    return _segments("segment_sum", "add", lambda dtype: 0, data, segment_ids, *options)


@docs_from(segment_sum)
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of the rows of each segment (as ``jax.ops.segment_prod``).

    Returns:
      An array of shape (num_segments, ...), of the dtype of `data`; 1 for a segment without rows.

    >>> phlox.ops.segment_prod(jnp.array([1, 2, 4]), jnp.array([0, 1, 1]))
    Array([1, 8], dtype=int32)
    """
    options = num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    return _segments("segment_prod", "multiply", lambda dtype: 1, data, segment_ids, *options)


@docs_from(segment_sum)
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The largest of the rows of each segment, elementwise (as ``jax.ops.segment_max``).

    Returns:
      An array of shape (num_segments, ...), of the dtype of `data`; -inf, or the least integer, for a segment without
      rows.

    >>> phlox.ops.segment_max(jnp.array([1, 2, 4]), jnp.array([0, 1, 1]))
    Array([1, 4], dtype=int32)
    """
    options = num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    return _segments("segment_max", "max", lowest, data, segment_ids, *options)


@docs_from(segment_sum)
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | GatherScatterMode | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The smallest of the rows of each segment, elementwise (as ``jax.ops.segment_min``).

    Returns:
      An array of shape (num_segments, ...), of the dtype of `data`; inf, or the greatest integer, for a segment without
      rows.

    >>> phlox.ops.segment_min(jnp.array([1, 2, 4]), jnp.array([0, 1, 1]))
    Array([1, 2], dtype=int32)
    """
    options = num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding
    return _segments("segment_min", "min", highest, data, segment_ids, *options)


publish(__name__)
