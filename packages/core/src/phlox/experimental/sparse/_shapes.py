"""Operations on `BCOO` that move or select its elements: transposes, shapes, slices, concatenation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ShapeError
from ..._ir import dtypes
from ._bcoo import BCOO, is_inside, join_columns, mapped, parts, zero_unless
from ._layouts import fewer


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A sparse array with its axes in another order.

    Args:
      mat: `BCOO`.
      permutation: the axis of `mat` for each axis of the result. Batch, sparse and dense axes stay among themselves.

    Returns:
      A `BCOO`.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_transpose(eye(2, 3), permutation=(1, 0))
    BCOO(float32[3, 2], nse=2)
    """
    order = [int(i) for i in permutation]
    b, end = mat.n_batch, mat.n_batch + mat.n_sparse
    if sorted(order) != list(range(mat.ndim)):
        raise ArgumentError(f"bcoo_transpose: permutation {tuple(order)} for {mat.ndim} axes")
    batch, sparse, dense = order[:b], order[b:end], order[end:]
    if any(i >= b for i in batch) or any(not b <= i < end for i in sparse):
        raise NotImplementedError(
            f"bcoo_transpose: permutation {tuple(order)} mixes batch, sparse and dense axes of {mat}; "
            "instead: update_layout before it"
        )
    data, indices = parts(mat)
    columns = [i - b for i in sparse]
    indices = indices.transpose(*batch, b, b + 1)[..., np.array(columns, int)]
    data = data.transpose(*batch, b, *[i - end + b + 1 for i in dense])
    same_order = columns == sorted(columns)
    return BCOO(
        (data, indices),
        shape=[mat.shape[i] for i in order],
        indices_sorted=mat.indices_sorted and same_order,
        unique_indices=mat.unique_indices,
    )


@docs_from(bcoo_transpose)
def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """A sparse array in another shape.

    Args:
      new_sizes: shape of the result; its batch, sparse and dense axes have as many elements as those of `mat`.
      dimensions: order of the axes of `mat` in which its elements are read.
      sharding: not used.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_reshape(eye(2), new_sizes=(4,)).indices
    Array([[0],
           [3]], dtype=int32)
    """
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = tuple(map(int, new_sizes))
    if math.prod(sizes) != mat.size:
        raise ShapeError(f"bcoo_reshape: {mat.shape} to {sizes}: other numbers of elements", shapes=[mat.shape, sizes])
    b, old = mat.n_batch, mat.sparse_shape
    first = _split(sizes, math.prod(mat.shape[:b])) if b else 0
    last = _split(sizes[::-1], math.prod(mat.shape[b + mat.n_sparse :])) if mat.n_dense else 0
    new = () if first is None or last is None else sizes[first : len(sizes) - last]
    if first is None or last is None or first + last > len(sizes) or math.prod(new) != math.prod(old):
        kinds = "batch and sparse" if first is None else "sparse and dense"
        raise ShapeError(
            f"bcoo_reshape: a new shape cannot mix {kinds} dimensions, got {sizes} for {mat}",
            instead="update_layout before it",
            shapes=[mat.shape, sizes],
        )

    groups = _groups_of_axes(old, new)
    # Narrow dtypes hold an index, and not the number of an element in several axes.
    counter = mat.indices.dtype if mat.indices.dtype.itemsize >= 4 else np.dtype(np.int32)
    for _, lengths in groups:
        if not dtypes.holds(counter, count := math.prod(lengths)):
            raise dtypes.too_large(count, counter, "bcoo_reshape: the number of an element: ")

    def change(indices: Any) -> Any:
        coordinates: list[Any] = []
        for axes, lengths in groups:
            place = jnp.zeros(indices.shape[:1], counter)
            for axis in axes:
                place = place * old[axis] + indices[:, axis]
            last_first = []
            for length in lengths[::-1]:
                last_first.append(place % length)
                place = place // length
            coordinates += last_first[::-1]
        rows = join_columns(coordinates, indices.shape[:1], counter).astype(indices.dtype)
        # Padding is set apart, as its indices may count up to a position inside of the new shape.
        return jnp.where(is_inside(indices, old)[:, None], rows, jnp.array(new, indices.dtype))

    data, indices = parts(mat)
    indices = mapped(change, b)(indices).reshape(*sizes[:first], mat.nse, len(new))
    data = data.reshape(*sizes[:first], mat.nse, *sizes[len(sizes) - last :])
    return BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)


def _groups_of_axes(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of successive axes that a reshape changes by themselves: axes of `old`, lengths in `new`."""
    if 0 in old:
        return [(list(range(len(old))), list(new))]
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, start, old_count, new_count = i, j, 1, 1
        while (i, j) == (first, start) or old_count != new_count:
            if i < len(old) and old_count <= new_count:
                old_count, i = old_count * old[i], i + 1
            else:
                new_count, j = new_count * new[j], j + 1
        groups.append((list(range(first, i)), list(new[start:j])))
    return groups


def _split(sizes: Sequence[int], count: int) -> int | None:
    """How many of the first lengths have this product."""
    return next((i for i in range(len(sizes) + 1) if math.prod(sizes[:i]) == count), None)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A sparse array without axes of length one.

    Args:
      arr: `BCOO`.
      dimensions: the axes to leave out.

    Returns:
      A `BCOO`.

    >>> from phlox.experimental.sparse import empty
    >>> bcoo_squeeze(empty((1, 3)), dimensions=(0,))
    BCOO(float32[3], nse=0)
    """
    left_out = {int(i) % arr.ndim for i in dimensions}
    if any(arr.shape[i] != 1 for i in left_out):
        raise ShapeError(f"bcoo_squeeze: axes {sorted(left_out)} of shape {arr.shape} are not all of length 1")
    b, end = arr.n_batch, arr.n_batch + arr.n_sparse
    data, indices = parts(arr)
    rows = [i - b for i in range(b, end) if i not in left_out]
    outside = [i - b for i in range(b, end) if i in left_out]
    # Padding may lie outside along these axes only, and would come inside without them.
    data = zero_unless(is_inside(indices[..., np.array(outside, int)], [1] * len(outside)), data)
    indices = indices[..., np.array(rows, int)]
    batch = tuple(i for i in left_out if i < b)
    dense = tuple(b + 1 + i - end for i in left_out if i >= end)
    return BCOO(
        (jnp.squeeze(data, batch + dense), jnp.squeeze(indices, batch)),
        shape=[n for i, n in enumerate(arr.shape) if i not in left_out],
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )


@docs_from(bcoo_reshape)
def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """A sparse array with more axes, and longer axes where its length is one.

    New axes before the sparse axes are batch axes; those after dense axes are dense.

    Args:
      shape: of the result.
      broadcast_dimensions: the axis of the result for each axis of `mat`, in order.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_broadcast_in_dim(eye(2), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    axes, shape = [int(i) for i in broadcast_dimensions], tuple(map(int, shape))
    if len(axes) != mat.ndim or axes != sorted(set(axes)):
        raise ArgumentError(f"bcoo_broadcast_in_dim: broadcast_dimensions {tuple(axes)} for {mat.ndim} axes")
    if any(n not in (1, shape[i]) for n, i in zip(mat.shape, axes, strict=True)):
        raise ShapeError(f"bcoo_broadcast_in_dim: {mat.shape} to {shape} along {tuple(axes)}")
    b, end = mat.n_batch, mat.n_batch + mat.n_sparse
    first = min(axes[b:], default=len(shape))
    last = axes[end] if mat.n_dense else len(shape)
    first = min(first, last) if mat.n_sparse else last
    data, indices = parts(mat)
    # Batch and dense axes are broadcast; a new or longer sparse axis repeats the stored elements.
    batch_lengths = [1] * first
    for i in range(b):
        batch_lengths[axes[i]] = mat.shape[i]
    dense_lengths = [1] * (len(shape) - last)
    for i in range(end, mat.ndim):
        dense_lengths[axes[i] - last] = mat.shape[i]
    data = data.reshape(*batch_lengths, mat.nse, *dense_lengths)
    data = jnp.broadcast_to(data, (*shape[:first], mat.nse, *shape[last:]))
    indices = indices.reshape(*batch_lengths, mat.nse, mat.n_sparse)
    indices = jnp.broadcast_to(indices, (*shape[:first], mat.nse, mat.n_sparse))
    # The sparse axis of the array for each sparse axis of the result that is not new.
    old = {place: i for i, place in enumerate(axes[b:end])}
    columns = []
    for axis in range(first, last):
        length = shape[axis]
        if axis in old and mat.shape[b + old[axis]] == length:
            columns.append(indices[..., old[axis]])
            continue
        if axis in old:  # padding stays outside
            data = zero_unless(indices[..., old[axis]] < 1, data)
        count = indices.shape[-2]
        data, indices = jnp.repeat(data, length, first), jnp.repeat(indices, length, first)
        columns = [jnp.repeat(column, length, first) for column in columns]
        columns.append(jnp.broadcast_to(jnp.tile(jnp.arange(length, dtype=indices.dtype), count), indices.shape[:-1]))
    indices = join_columns(columns, indices.shape[:-1], indices.dtype)
    simple = last - first == mat.n_sparse and all(shape[i] == mat.shape[b + j] for i, j in old.items())
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=simple and mat.indices_sorted,
        unique_indices=simple and mat.unique_indices,
    )


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Sparse arrays one after the other along an axis.

    Args:
      operands: arrays of class `BCOO`, with equal layouts.
      dimension: a batch or sparse axis.

    Returns:
      A `BCOO`.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_concatenate([eye(2), eye(2)], dimension=0)
    BCOO(float32[4, 2], nse=4)
    """
    mats = list(operands)
    dimension = int(dimension)
    if not mats or not all(isinstance(x, BCOO) for x in mats):
        raise ArgumentError(f"bcoo_concatenate: {mats}", instead="BCOO arrays")
    b, d = mats[0].n_batch, mats[0].n_dense
    if not 0 <= dimension < mats[0].ndim or any((x.n_batch, x.n_dense) != (b, d) for x in mats):
        raise ShapeError(f"bcoo_concatenate: operands {mats} along axis {dimension} have other layouts")
    if len({(*x.shape[:dimension], *x.shape[dimension + 1 :]) for x in mats}) > 1:
        raise ShapeError(f"bcoo_concatenate: operands {mats} differ beside axis {dimension}")
    shape = list(mats[0].shape)
    shape[dimension] = sum(x.shape[dimension] for x in mats)
    if dimension < b:
        mats = [_padded(x, max(y.nse for y in mats)) for x in mats]
        data, indices = zip(*map(parts, mats), strict=True)
        return BCOO((jnp.concatenate(data, dimension), jnp.concatenate(indices, dimension)), shape=shape)
    if dimension >= b + mats[0].n_sparse:
        raise NotImplementedError("bcoo_concatenate along a dense axis; instead: update_layout before it")
    moved, start = [], 0
    for x in mats:
        data, indices = parts(x)
        axis = dimension - b
        outside = (indices >= jnp.array(x.sparse_shape, indices.dtype)).any(-1)
        # Padding of an array may have an index that is inside of the longer result.
        column = jnp.where(outside, shape[dimension], indices[..., axis] + start)
        moved.append((data, indices.at[..., axis].set(column.astype(indices.dtype))))
        start += x.shape[dimension]
    data, indices = zip(*moved, strict=True)
    return BCOO((jnp.concatenate(data, b), jnp.concatenate(indices, b)), shape=shape)


def _padded(mat: BCOO, nse: int) -> BCOO:
    data, indices = parts(mat)
    more = nse - mat.nse
    widths = [(0, more if axis == mat.n_batch else 0) for axis in range(data.ndim)]
    outside = jnp.broadcast_to(
        jnp.array(mat.sparse_shape, indices.dtype), (*indices.shape[: mat.n_batch], more, mat.n_sparse)
    )
    return BCOO((jnp.pad(data, widths), jnp.concatenate([indices, outside], mat.n_batch)), shape=mat.shape)


@docs_from(bcoo_transpose)
def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """A part of a sparse array, as `phlox.lax.slice`.

    Args:
      start_indices: first index along each axis.
      limit_indices: the index behind the last.
      strides: steps; None for 1.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_slice(eye(4), start_indices=(1, 0), limit_indices=(4, 2)).todense()
    Array([[0., 1.],
           [0., 0.],
           [0., 0.]], dtype=float32)
    """
    starts, limits = [int(i) for i in start_indices], [int(i) for i in limit_indices]
    steps = [1] * mat.ndim if strides is None else [int(i) for i in strides]
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ArgumentError(f"bcoo_slice: {starts}, {limits}, {steps} for {mat.ndim} axes")
    if any(not 0 <= a <= z <= n or s < 1 for a, z, s, n in zip(starts, limits, steps, mat.shape, strict=True)):
        raise ArgumentError(f"bcoo_slice: {starts} to {limits} by {steps} of shape {mat.shape}")
    shape = [-(-(z - a) // s) for a, z, s in zip(starts, limits, steps, strict=True)]
    b, end = mat.n_batch, mat.n_batch + mat.n_sparse
    cut = [slice(a, z, s) for a, z, s in zip(starts, limits, steps, strict=True)]
    data, indices = parts(mat)
    data, indices = data[(*cut[:b], slice(None), *cut[end:])], indices[tuple(cut[:b])]
    part = _selected(data, indices, shape, mat, starts[b:end], steps[b:end])
    same = shape[b:end] == list(mat.sparse_shape)
    if same:
        part.indices_sorted, part.unique_indices = mat.indices_sorted, mat.unique_indices
    return part if same else fewer(part)


def _selected(data: Any, indices: Any, shape: Sequence[int], mat: BCOO, starts: Any, steps: Any) -> BCOO:
    """The stored elements that lie in a part of the sparse axes; the others become padding."""
    b = mat.n_batch
    lengths = jnp.array(shape[b : b + mat.n_sparse], indices.dtype)
    steps = jnp.array(steps, indices.dtype)
    moved = indices - jnp.asarray(starts, indices.dtype)
    keep = ((moved >= 0) & (moved % steps == 0) & (moved // steps < lengths)).all(-1)
    positions = jnp.where(keep[..., None], moved // steps, lengths)
    return BCOO((zero_unless(keep, data), positions), shape=shape)


@docs_from(bcoo_transpose)
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of a sparse array whose place may be an array, as `phlox.lax.dynamic_slice`.

    Args:
      start_indices: first index along each axis; moved so that the part lies inside.
      slice_sizes: lengths of the part.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_dynamic_slice(eye(4), (1, 1), (2, 2)).todense()
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    from ... import lax

    sizes = [int(n) for n in slice_sizes]
    if (
        len(sizes) != mat.ndim
        or len(start_indices) != mat.ndim
        or any(not 0 <= n <= m for n, m in zip(sizes, mat.shape, strict=True))
    ):
        raise ArgumentError(f"bcoo_dynamic_slice: {sizes} of shape {mat.shape}")
    starts = [
        jnp.clip(jnp.where(jnp.asarray(i) < 0, jnp.asarray(i) + n, i), 0, n - m).astype(np.int32)
        for i, n, m in zip(start_indices, mat.shape, sizes, strict=True)
    ]
    b, end = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = parts(mat)
    zero = jnp.int32(0)
    data = lax.dynamic_slice(data, [*starts[:b], zero, *starts[end:]], [*sizes[:b], mat.nse, *sizes[end:]])
    indices = lax.dynamic_slice(indices, [*starts[:b], zero, zero], [*sizes[:b], *indices.shape[b:]])
    first = jnp.stack(starts[b:end]) if mat.n_sparse else jnp.zeros(0, np.int32)
    return fewer(_selected(data, indices, sizes, mat, first, [1] * mat.n_sparse))


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A sparse array whose elements along some axes are in reverse order.

    Args:
      operand: `BCOO`.
      dimensions: these axes.

    Returns:
      A `BCOO`.

    >>> from phlox.experimental.sparse import eye
    >>> bcoo_rev(eye(2), dimensions=(0,)).todense()
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    b, end = operand.n_batch, operand.n_batch + operand.n_sparse
    data, indices = parts(operand)
    batch = [i for i in dimensions if i < b]
    data = jnp.flip(data, batch + [i - end + b + 1 for i in dimensions if i >= end])
    indices = jnp.flip(indices, batch)
    for i in dimensions:
        if b <= i < end:
            column = indices[..., i - b]
            # Padding keeps its index: reversed, it would be negative.
            turned = jnp.where(column < operand.shape[i], operand.shape[i] - 1 - column, column)
            indices = indices.at[..., i - b].set(turned)
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices)
