"""Sums and products of `BCOO` arrays with sparse and dense ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.errors import ArgumentError, ShapeError
from ._base import columns
from ._bcoo import BCOO, extract, is_inside, join_columns, mapped, parts, zero_unless
from ._layouts import bcoo_update_layout, fewer, flat

Dimensions = Any  # ((contracted of lhs, of rhs), (batch of lhs, of rhs))


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over some axes.

    Args:
      mat: `BCOO`.
      axes: the axes.

    Returns:
      A `BCOO`, whose indices may be equal.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_reduce_sum(eye(3), axes=(0,)).todense()
    Array([1., 1., 1.], dtype=float32)
    """
    gone = {int(i) % mat.ndim for i in axes}
    b, end = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = parts(mat)
    data = data.sum(tuple(b + 1 + i - end for i in gone if i >= end))
    remaining = [i - b for i in range(b, end) if i not in gone]
    # Without the summed indices, padding that lies outside along those only would come inside.
    if len(remaining) < mat.n_sparse:
        data = zero_unless(is_inside(indices, mat.sparse_shape), data)
    indices = indices[..., np.array(remaining, int)]
    batch, summed = [i for i in range(b) if i not in gone], [i for i in range(b) if i in gone]
    lengths = [mat.shape[i] for i in batch]
    count = math.prod(mat.shape[i] for i in summed) * mat.nse
    order = [*batch, *summed]
    data = data.transpose(*order, *range(b, data.ndim)).reshape(*lengths, count, *data.shape[b + 1 :])
    indices = indices.transpose(*order, b, b + 1).reshape(*lengths, count, len(remaining))
    return BCOO((data, indices), shape=[n for i, n in enumerate(mat.shape) if i not in gone])


def times_dense(sp_mat: BCOO, v: Any) -> BCOO:
    """The product of the elements of a sparse and a dense array, as a sparse array."""
    return sp_mat._with(bcoo_multiply_dense(sp_mat, v))


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """The stored elements of the product of the elements of a sparse and a dense array.

    Args:
      sp_mat: `BCOO`.
      v: array that can be broadcast to its shape.

    Returns:
      An array: `data` of the product, whose indices are those of `sp_mat`.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_multiply_dense(eye(2), jnp.array([2.0, 3.0]))
    Array([2., 3.], dtype=float32)
    """
    v = jnp.asarray(v)
    if np.broadcast_shapes(v.shape, sp_mat.shape) != sp_mat.shape:
        raise NotImplementedError(
            f"a product of a sparse array of shape {sp_mat.shape} and a dense one of shape {v.shape}, which is larger"
        )
    if v.ndim == 0:
        return sp_mat.data * v
    b, end = sp_mat.n_batch, sp_mat.n_batch + sp_mat.n_sparse
    v = v.reshape((1,) * (sp_mat.ndim - v.ndim) + v.shape)
    data, indices = parts(sp_mat)
    v = jnp.broadcast_to(v, (*sp_mat.shape[:b], *v.shape[b:]))
    long = [i for i in range(b, end) if v.shape[i] != 1]
    if len(long) < end - b:  # along axes of length one all elements are equal
        v = v.reshape(*v.shape[:b], *[v.shape[i] for i in long], *v.shape[end:])
        indices = indices[..., np.array([i - b for i in long], int)]
    factors = extract(indices, v, b) if long else jnp.expand_dims(v, b)
    return data * factors


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The product of the elements of two sparse arrays.

    Args:
      lhs: `BCOO`.
      rhs: `BCOO` of as many axes and the same layout; axes of length one are broadcast.

    Returns:
      A `BCOO` with an element for each pair of stored elements.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_multiply_sparse(eye(2), eye(2)).todense()
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if lhs.ndim != rhs.ndim:
        raise ShapeError(f"bcoo_multiply_sparse: {lhs} and {rhs} differ in the number of axes")
    if (lhs.n_batch, lhs.n_dense) != (rhs.n_batch, rhs.n_dense):
        b, d = min(lhs.n_batch, rhs.n_batch), min(lhs.n_dense, rhs.n_dense)
        lhs, rhs = (bcoo_update_layout(x, n_batch=b, n_dense=d) for x in (lhs, rhs))
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    b = lhs.n_batch
    left, right = lhs.sparse_shape, rhs.sparse_shape
    full = shape[b : b + lhs.n_sparse]

    def one(data: Any, indices: Any, others: Any, other_indices: Any) -> Any:
        i, j = indices[:, None, :], other_indices[None, :, :]
        match = jnp.ones((lhs.nse, rhs.nse), bool)
        joined = []
        for axis, (n, m) in enumerate(zip(left, right, strict=True)):
            a, c = i[..., axis], j[..., axis]
            match &= (a < n) & (c < m) & ((a == c) if n == m else True)
            joined.append(jnp.broadcast_to(c if n == 1 else a, match.shape))
        return _paired(match, data, others, joined, full, indices.dtype)

    batch = shape[:b]
    arrays = [jnp.broadcast_to(x, (*batch, *x.shape[b:])) for mat in (lhs, rhs) for x in parts(mat)]
    return BCOO(mapped(one, b)(*arrays), shape=shape)


def _paired(
    match: Any, data: Any, others: Any, columns: Sequence[Any], shape: Sequence[int], dtype: Any
) -> tuple[Any, Any]:
    """The products of all pairs of stored elements, and their indices; pairs that do not `match` become padding."""
    # How many pairs match depends on values, and the shape of a result must not: all of them are kept.
    rows = join_columns(columns, match.shape, dtype)
    rows = jnp.where(match[..., None], rows, jnp.array(shape, rows.dtype))
    product = zero_unless(match, data[:, None] * others[None])
    return product.reshape(match.size, *product.shape[2:]), rows.reshape(match.size, len(shape))


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Dimensions,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sums of products over pairs of axes, as `phlox.lax.dot_general`.

    Args:
      lhs: array, sparse or not.
      rhs: array, sparse or not.
      dimension_numbers: ((contracted axes of `lhs`, of `rhs`), (batch axes of `lhs`, of `rhs`)).
      precision: not used.
      preferred_element_type: dtype of the result; None for that of the product.
      out_sharding: not used.

    Returns:
      A `BCOO` if both are sparse, otherwise an array.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_dot_general(eye(2), jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([1., 1.], dtype=float32)
    """
    (lc, rc), (lb, rb) = (tuple(tuple(map(int, side)) for side in pair) for pair in dimension_numbers)
    if len(lc) != len(rc) or len(lb) != len(rb):
        raise ArgumentError(f"bcoo_dot_general: dimension_numbers {dimension_numbers}")
    shapes = np.shape(lhs) if not isinstance(lhs, BCOO) else lhs.shape, rhs.shape
    for which, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        sizes = [shapes[0][i] for i in left], [shapes[1][i] for i in right]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"dot_general requires {which} dimensions to have the same shape, got {tuple(sizes[0])} and "
                f"{tuple(sizes[1])}",
                shapes=list(shapes),
            )
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        both = _sparse_sparse(lhs, rhs, lc, rc, lb, rb)
        return both if preferred_element_type is None else both.astype(preferred_element_type)
    out: Any
    if isinstance(lhs, BCOO):
        out = _sparse_dense(lhs, jnp.asarray(rhs), lc, rc, lb, rb)
    elif isinstance(rhs, BCOO):
        lhs = jnp.asarray(lhs)
        out = _sparse_dense(rhs, lhs, rc, lc, rb, lb)
        # `_sparse_dense` puts the free axes of the sparse operand first, and those of `lhs` belong there.
        shared, free = len(lb), rhs.ndim - len(rc) - len(rb)
        middle = shared + free
        out = jnp.transpose(out, (*range(shared), *range(middle, out.ndim), *range(shared, middle)))
    else:
        out = lax.dot_general(lhs, rhs, dimension_numbers)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _free(ndim: int, *used: Sequence[int]) -> list[int]:
    used_axes = {i for group in used for i in group}
    return [i for i in range(ndim) if i not in used_axes]


def _sparse_dense(lhs: BCOO, rhs: Any, lc: Any, rc: Any, lb: Any, rb: Any) -> Any:
    """Multiplies each stored element by the matching row of `rhs` and adds it at its row of the result."""
    first_dense = lhs.n_batch + lhs.n_sparse
    if any(i >= first_dense for i in (*lc, *lb)):
        lhs = bcoo_update_layout(lhs, n_dense=0)
    lhs = flat(lhs)
    dtype = jnp.result_type(lhs.dtype, rhs.dtype)
    rows = columns(lhs.indices)
    free, rhs_free = _free(lhs.n_sparse, lc, lb), _free(rhs.ndim, rc, rb)
    rhs = jnp.transpose(rhs, (*rb, *rc, *rhs_free)).astype(dtype)
    picks = tuple(rows[i] for i in (*lb, *lc))
    # Padding has indices behind the ends: it reads zeros here, and is dropped where products are added below.
    picked = rhs.at[picks].get(mode="fill", fill_value=0) if picks else rhs[None]
    dense = lhs.shape[lhs.n_sparse :]
    data = lhs.data.astype(dtype).reshape(lhs.data.shape + (1,) * len(rhs_free))
    picked = picked.reshape(picked.shape[:1] + (1,) * len(dense) + picked.shape[1:])
    product = data * picked
    positions = tuple(rows[i] for i in (*lb, *free))
    inner = product.shape[1:]
    if not positions:
        return zero_unless(is_inside(lhs.indices, lhs.sparse_shape), product).sum(0)
    outer = [lhs.shape[i] for i in (*lb, *free)]
    return jnp.zeros((*outer, *inner), product.dtype).at[positions].add(product, mode="drop")


def _sparse_sparse(lhs: BCOO, rhs: BCOO, lc: Any, rc: Any, lb: Any, rb: Any) -> BCOO:
    """All pairs of stored elements whose contracted indices agree; batch axes of both stay batch axes if they can."""
    lhs, rhs = (bcoo_update_layout(x, n_dense=0) if x.n_dense else x for x in (lhs, rhs))
    n = len(lb)
    leading = tuple(range(n))
    if tuple(lb) != leading or tuple(rb) != leading or min(lhs.n_batch, rhs.n_batch) < n:
        lhs, rhs, n = flat(lhs), flat(rhs), 0
    else:
        lhs, rhs = (bcoo_update_layout(x, n_batch=n) for x in (lhs, rhs))
    batch = lhs.shape[:n]
    pairs = [(i - n, j - n) for i, j in zip((*lb, *lc), (*rb, *rc), strict=True) if i >= n]
    left = [i - n for i in lb if i >= n] + [i - n for i in _free(lhs.ndim, lc, lb)]
    right = [i - n for i in _free(rhs.ndim, rc, rb)]
    shape = [lhs.sparse_shape[i] for i in left] + [rhs.sparse_shape[i] for i in right]

    def one(data: Any, indices: Any, others: Any, other_indices: Any) -> Any:
        match = is_inside(indices, lhs.sparse_shape)[:, None] & is_inside(other_indices, rhs.sparse_shape)[None]
        for i, j in pairs:
            match &= indices[:, None, i] == other_indices[None, :, j]
        both = [jnp.broadcast_to(indices[:, None, i], match.shape) for i in left]
        both += [jnp.broadcast_to(other_indices[None, :, j], match.shape) for j in right]
        return _paired(match, data, others, both, shape, indices.dtype)

    # The number of pairs is that of a product; a small result has less elements than there are pairs.
    result = BCOO(mapped(one, n)(*parts(lhs), *parts(rhs)), shape=(*batch, *shape))
    return fewer(result)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Dimensions) -> Any:
    """The elements at given indices of the contraction of two dense arrays.

    Args:
      A: array.
      B: array.
      indices: rows of indices into the result, of shape (*batch, nse, n); batch axes are leading axes of the result.
      dimension_numbers: as of `bcoo_dot_general`.

    Returns:
      An array of shape (*batch, nse).

    >>> bcoo_dot_general_sampled(
    ...     jnp.eye(2), jnp.ones((2, 2)), jnp.array([[0, 1]]), dimension_numbers=(((1,), (0,)), ((), ()))
    ... )
    Array([1.], dtype=float32)
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    (lc, rc), (batch, _) = dimension_numbers
    if indices.ndim == 2 and not len(batch):
        left, right = _free(A.ndim, lc), _free(B.ndim, rc)
        rows = columns(indices)
        rows, cols = rows[: len(left)], rows[len(left) :]
        if len(rows) + len(cols) == len(left) + len(right):  # only the sampled products are computed
            one = jnp.transpose(A, (*left, *lc)).at[rows].get(mode="fill", fill_value=0) if rows else None
            two = jnp.transpose(B, (*right, *rc)).at[cols].get(mode="fill", fill_value=0) if cols else None
            if one is not None and two is not None:
                product = one * two
                return product.sum(tuple(range(1, product.ndim)))
    full = lax.dot_general(A, B, dimension_numbers)
    return extract(indices, full, indices.ndim - 2)
