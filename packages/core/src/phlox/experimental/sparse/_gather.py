"""`bcoo_gather`: the parts of a `BCOO` at arrays of indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import numpy as jnp
from ._bcoo import BCOO, mapped, parts
from ._layouts import bcoo_update_layout
from ._shapes import bcoo_dynamic_slice, bcoo_squeeze, bcoo_transpose


def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """The parts of a sparse array at an array of indices, as `phlox.lax.gather`.

    Args:
      operand: `BCOO`.
      start_indices: indices of shape (..., number of indexed axes).
      dimension_numbers: `phlox.lax.GatherDimensionNumbers` without batching dimensions.
      slice_sizes: lengths of a part.
      unique_indices: not used.
      indices_are_sorted: not used.
      mode: not used: indices out of bounds are moved inside.
      fill_value: not used.

    Returns:
      A `BCOO`. Axes of indices that come first are batch axes.

    Raises:
      NotImplementedError: there are batching dimensions.

    >>> from phlox import lax
    >>> from phlox.experimental.sparse import eye
    >>> rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> bcoo_gather(eye(3), jnp.array([[2], [0]]), rows, (1, 3)).todense()
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    axes, collapsed = tuple(dimension_numbers.start_index_map), tuple(dimension_numbers.collapsed_slice_dims)
    if dimension_numbers.operand_batching_dims:
        raise NotImplementedError("sparse gather is not implemented for batching dimensions")
    if operand.n_batch:
        operand = bcoo_update_layout(operand, n_batch=0)

    def part(place: Any) -> Any:
        starts = [place[axes.index(i)] if i in axes else 0 for i in range(operand.ndim)]
        return parts(bcoo_squeeze(bcoo_dynamic_slice(operand, starts, slice_sizes), dimensions=collapsed))

    start_indices = jnp.asarray(start_indices)
    outer = start_indices.shape[:-1]
    inner = [n for i, n in enumerate(slice_sizes) if i not in collapsed]
    result = BCOO(mapped(part, len(outer))(start_indices), shape=(*outer, *inner))
    return _move_inner_axes(result, len(outer), tuple(dimension_numbers.offset_dims))


def _move_inner_axes(mat: BCOO, n_outer: int, positions: tuple[int, ...]) -> BCOO:
    """Moves the axes after the first `n_outer` to `positions`."""
    outer = (i for i in range(mat.ndim) if i not in positions)
    sources = {
        **dict(zip(outer, range(n_outer), strict=True)),
        **dict(zip(positions, range(n_outer, mat.ndim), strict=True)),
    }
    permutation = [sources[i] for i in range(mat.ndim)]
    if permutation == list(range(mat.ndim)):
        return mat
    return bcoo_transpose(bcoo_update_layout(mat, n_batch=0), permutation=permutation)
