"""The order, the multiplicity and the layout (batch, sparse, dense) of the stored elements of a `BCOO`."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ... import numpy as jnp
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, OptionError, SparseEfficiencyError
from ..._trace.trace import Tracer
from ...ops import segment_sum
from ._base import SparseEfficiencyWarning, columns
from ._bcoo import BCOO, is_inside, mapped, parts, zero_unless


def _in_order(indices: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The order of rows of indices, the sorted rows, and which of them differ from the row before.

    Rows outside of the shape are set to the shape, so they come last and are equal.
    """
    outside = (indices >= jnp.array(shape, indices.dtype)).any(-1, keepdims=True)
    rows = jnp.where(outside, jnp.array(shape, indices.dtype), indices)
    # The last key of `lexsort` counts most, so columns are reversed.
    order = jnp.lexsort(columns(rows)[::-1]) if shape else jnp.arange(rows.shape[0])
    rows = rows[order]
    changed = (rows[1:] != rows[:-1]).any(-1)
    new = jnp.concatenate([jnp.ones((min(1, rows.shape[0]),), bool), changed])
    return order, rows, new


def is_first(indices: Any, shape: tuple[int, ...], n_batch: int) -> Any:
    """For each stored element, whether it is the first with its indices."""

    def one(indices: Any) -> Any:
        order, _, new = _in_order(indices, shape)
        return jnp.zeros(new.shape, bool).at[order].set(new)

    return mapped(one, n_batch)(indices)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array with its elements in the order of their indices.

    Args:
      mat: `BCOO`.

    Returns:
      A `BCOO`.

    >>> bcoo_sort_indices(BCOO((jnp.array([1, 2]), jnp.array([[1], [0]])), shape=(2,))).data
    Array([2, 1], dtype=int32)
    """

    def one(data: Any, indices: Any) -> Any:
        order = jnp.lexsort(columns(indices)[::-1]) if mat.n_sparse else jnp.arange(mat.nse)
        return data[order], indices[order]

    return BCOO(
        mapped(one, mat.n_batch)(*parts(mat)),
        shape=mat.shape,
        indices_sorted=True,
        unique_indices=mat.unique_indices,
    )


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with one stored element for each index.

    Args:
      mat: `BCOO`.
      nse: number of elements to store; None for as many as there are indices. Under `jit` it must be given.

    Returns:
      A `BCOO`, its elements in order.

    >>> twice = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(2,))
    >>> bcoo_sum_duplicates(twice).data
    Array([3.], dtype=float32)
    """
    data, indices = parts(mat)
    shape = mat.sparse_shape
    if nse is None:

        def count(indices: Any) -> Any:
            _, rows, new = _in_order(indices, shape)
            return (new & is_inside(rows, shape)).sum()

        counts = mapped(count, mat.n_batch)(indices)
        nse = int(counts.max()) if counts.size else 0
    size: int = nse

    def one(data: Any, indices: Any) -> Any:
        order, rows, new = _in_order(indices, shape)
        group = jnp.cumsum(new) - 1
        outside = jnp.full((size, len(shape)), jnp.array(shape, indices.dtype), indices.dtype)
        values = zero_unless(is_inside(rows, shape), data[order])
        return segment_sum(values, group, size), outside.at[group].set(rows, mode="drop")

    return BCOO(mapped(one, mat.n_batch)(data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def distinct(mat: BCOO) -> BCOO:
    """The same array with one stored element for each index; as many as before where they cannot be counted."""
    if mat.unique_indices:
        return mat
    return bcoo_sum_duplicates(mat, nse=mat.nse if isinstance(mat.indices, Tracer) else None)


def without_zeros(mat: BCOO) -> BCOO:
    """The same array with stored zeros turned to padding."""
    data, indices = parts(mat)
    used = (data != 0).any(tuple(range(mat.n_batch + 1, data.ndim)))
    outside = jnp.array(mat.sparse_shape, indices.dtype)
    return BCOO((data, jnp.where(used[..., None], indices, outside)), shape=mat.shape)


def fewer(mat: BCOO) -> BCOO:
    """The same array, without more stored elements than the array has elements."""
    most = math.prod(mat.sparse_shape)
    return bcoo_sum_duplicates(mat, nse=most) if mat.nse > most else mat


@docs_from(bcoo_sort_indices)
def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense axes.

    Args:
      n_batch: number of batch axes of the result; None for that of `mat`.
      n_dense: number of dense axes; None for that of `mat`.
      on_inefficient: what to do when more elements must be stored than before: "error", "warn" or None.

    Raises:
      SparseEfficiencyError: more axes become batch or dense axes, and `on_inefficient` is "error".

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_update_layout(eye(3), n_dense=1, on_inefficient=None)
    BCOO(float32[3, 3], nse=3, n_dense=1)
    """
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    if on_inefficient not in ("error", "warn", None):
        raise OptionError(f"on_inefficient={on_inefficient!r}", instead="'error', 'warn' or None")
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ArgumentError(f"n_batch={n_batch} and n_dense={n_dense} for an array with {mat.ndim} axes")
    costs = n_batch > mat.n_batch or n_dense > mat.n_dense
    if costs and on_inefficient is not None:
        what = f"the layout n_batch={n_batch}, n_dense={n_dense} stores more elements than that of {mat}"
        if on_inefficient == "error":
            raise SparseEfficiencyError(what, instead="on_inefficient='warn' or None")
        warnings.warn(what, SparseEfficiencyWarning, stacklevel=2)
    # Axes become sparse before others become batch or dense: a batch axis can become dense that way only.
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    return mat


def flat(mat: BCOO) -> BCOO:
    """The same array without batch axes."""
    return bcoo_update_layout(mat, n_batch=0)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    data, indices = parts(mat)

    def one(data: Any, indices: Any) -> Any:
        count, nse = data.shape[:2]
        which = jnp.broadcast_to(jnp.arange(count, dtype=indices.dtype)[:, None, None], (count, nse, 1))
        joined = jnp.concatenate([which, indices], -1).reshape(count * nse, mat.n_sparse + 1)
        return data.reshape(count * nse, *data.shape[2:]), joined

    return BCOO(
        mapped(one, mat.n_batch - 1)(data, indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _dense_to_sparse(mat: BCOO) -> BCOO:
    data, indices = parts(mat)

    def one(data: Any, indices: Any) -> Any:
        nse, count = data.shape[:2]
        rows = jnp.broadcast_to(indices[:, None, :], (nse, count, indices.shape[-1]))
        which = jnp.broadcast_to(jnp.arange(count, dtype=indices.dtype)[None, :, None], (nse, count, 1))
        joined = jnp.concatenate([rows, which], -1).reshape(nse * count, mat.n_sparse + 1)
        return data.reshape(nse * count, *data.shape[2:]), joined

    return BCOO(
        mapped(one, mat.n_batch)(data, indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _sparse_to_dense(mat: BCOO) -> BCOO:
    count = mat.sparse_shape[-1]
    if not mat.n_sparse:
        raise ArgumentError(f"{mat} has no sparse axis that could become dense")

    def one(data: Any, indices: Any) -> Any:
        here = indices[:, -1:] == jnp.arange(count)
        here = here.reshape(here.shape + (1,) * (data.ndim - 1))
        return jnp.where(here, data[:, None], jnp.zeros((), data.dtype)), indices[:, :-1]

    return BCOO(mapped(one, mat.n_batch)(*parts(mat)), shape=mat.shape)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    count, rest = mat.sparse_shape[0], mat.sparse_shape[1:]

    def one(data: Any, indices: Any) -> Any:
        # Each example of the new batch has all elements; those of other examples become padding of it.
        here = indices[:, 0] == jnp.arange(count, dtype=indices.dtype)[:, None]
        rows = jnp.where(here[..., None], indices[:, 1:], jnp.array(rest, indices.dtype))
        mask = here.reshape(here.shape + (1,) * (data.ndim - 1))
        return jnp.where(mask, data, jnp.zeros((), data.dtype)), rows

    return BCOO(mapped(one, mat.n_batch)(*parts(mat)), shape=mat.shape)
