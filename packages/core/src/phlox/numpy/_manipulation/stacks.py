"""Joining, splitting and rotating along particular axes: dstack, block, hsplit, rot90, rollaxis and others."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..._api.jit.jit import jit
from ..._base import pytree
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, AxisError, ShapeError
from ..._operands.checks import canonical_axes, canonical_axis, check, check_one, integer, sequence, type_of
from ..._ops.structure.shape import as_array_or_tracer
from ...typing import Array, ArrayLike, DTypeLike
from .._creation.from_data import asarray
from .joining import array_split, concatenate, rows_of, split
from .shapes import atleast_2d, expand_dims, flip, moveaxis, reshape, squeeze, swapaxes

# --- joining --------------------------------------------------------------------------------------------


def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays as arrays with at least three axes (as ``numpy.atleast_3d``).

    Args:
      *arys: arrays or numbers.

    Returns:
      An array for one argument, a tuple of arrays for several; a vector has shape (1, n, 1), a matrix (m, n, 1).

    >>> jnp.atleast_3d(jnp.ones(3)).shape
    (1, 3, 1)
    """
    out = []
    for x in check("atleast_3d", *arys):
        shape = type_of(x).shape
        in_front = (1,) if len(shape) < 2 else ()
        behind = (1,) * (3 - len(in_front) - len(shape))
        out.append(reshape(x, (*in_front, *shape, *behind)))
    return out[0] if len(out) == 1 else tuple(out)


def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis (as ``numpy.dstack``).

    Args:
      tup: sequence of arrays of equal lengths along all axes but the third; those with fewer than three axes are
        extended by `atleast_3d`.
      dtype: dtype of the result; None is the promoted dtype of the arrays.

    Returns:
      An array with at least three axes.

    Raises:
      ShapeError: `tup` is empty, or lengths along other axes differ.

    >>> jnp.dstack([jnp.zeros(2), jnp.ones(2)]).shape
    (1, 2, 2)
    """
    return concatenate([atleast_3d(x) for x in rows_of("dstack", tup, dtype)], 2, dtype)


def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Vectors, as columns, and matrices joined along the second axis (as ``numpy.column_stack``).

    Args:
      tup: sequence of vectors and matrices with the same number of rows; a vector is one column.

    Returns:
      A matrix of the promoted dtype.

    Raises:
      ShapeError: `tup` is empty, or the numbers of rows differ.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    columns = [atleast_2d(x) if type_of(x).ndim != 1 else expand_dims(x, 1) for x in rows_of("column_stack", tup)]
    return concatenate(columns, 1)


@jit(inline=True)
def block(arrays: ArrayLike | list[ArrayLike]) -> Array:
    """An array assembled from nested lists of blocks, the innermost lists along the last axis (as ``numpy.block``).

    Args:
      arrays: an array, or nested lists of arrays, all of one depth; the innermost lists are joined along the last axis,
        the lists around them along the second to last axis, and so on.

    Returns:
      An array of the promoted dtype, with as many axes as the deepest array, and at least as many as there are levels.

    Raises:
      ShapeError: lists have different depths or are empty, or lengths differ.
      ArgumentError: `arrays` contains a tuple in place of a list.

    >>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    depth = _depth(arrays)
    arrays = _checked(arrays)
    rank = max(depth, *(type_of(x).ndim for x in pytree.tree_leaves(arrays)))
    return _joined(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if isinstance(arrays, tuple):
        raise ArgumentError("block: tuples are not joined", instead="a list")
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(part) for part in arrays}
    if len(depths) != 1:
        description = "an empty list" if not arrays else f"lists of depths {sorted(depths)} side by side"
        raise ShapeError(f"block: {description}", instead="lists of one depth")
    return 1 + depths.pop()


def _checked(arrays: Any) -> Any:
    return [_checked(part) for part in arrays] if isinstance(arrays, list) else check_one("block", arrays)


def _joined(arrays: Any, depth: int, rank: int) -> Any:
    if depth == 0:
        return asarray(reshape(arrays, (1,) * (rank - type_of(arrays).ndim) + type_of(arrays).shape))
    return concatenate([_joined(part, depth - 1, rank) for part in arrays], rank - depth)


# --- splitting ------------------------------------------------------------------------------------------


def _along(function: str, ary: Any, axis: int) -> int:
    ary = check_one(function, ary)
    if type_of(ary).ndim <= axis:
        raise AxisError(f"{function}: {type_of(ary).short} has no axis {axis}", axis=axis)
    return axis


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`ary` split along the first axis (as ``numpy.vsplit``).

    Args:
      ary, indices_or_sections: as for `split`.

    Returns:
      A list of arrays of the dtype of `ary`.

    Raises:
      AxisError: `ary` has no axes.
      ShapeError: the axis cannot be split into that many equal parts.

    >>> [x.shape for x in jnp.vsplit(jnp.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, _along("vsplit", ary, 0))


@docs_from(vsplit)
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`ary` split along the second axis, or along the first if it is a vector (as ``numpy.hsplit``).

    >>> [x.shape for x in jnp.hsplit(jnp.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    ary = check_one("hsplit", ary)
    return split(ary, indices_or_sections, _along("hsplit", ary, 0 if type_of(ary).ndim == 1 else 1))


@docs_from(vsplit)
def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int]) -> list[Array]:
    """`ary` split along the third axis (as ``numpy.dsplit``).

    Raises:
      AxisError: `ary` has fewer than three axes.

    >>> [x.shape for x in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return split(ary, indices_or_sections, _along("dsplit", ary, 2))


@functools.partial(jit, inline=True, static_argnames="axis")
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The subarrays of `x` along `axis`, without this axis (as ``numpy.unstack``).

    Args:
      x: array of any dtype with at least one axis.
      axis: axis along which to split.

    Returns:
      A tuple of ``x.shape[axis]`` arrays.

    Raises:
      ShapeError: `x` has no axes.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    x = check_one("unstack", x)
    if not type_of(x).shape:
        raise ShapeError(f"unstack: needs at least 1 axis, got {type_of(x).short}")
    at = canonical_axis(axis, type_of(x).ndim, "unstack")
    n = type_of(x).shape[at]
    return tuple(squeeze(part, at) for part in array_split(x, n, at)) if n else ()


# --- reversing and rotating -----------------------------------------------------------------------------


def _flipped(function: str, m: Any, axis: int) -> Any:
    return flip(m, _along(function, m, axis))


def fliplr(m: ArrayLike) -> Array:
    """`m` with its columns in reverse order (as ``numpy.fliplr``).

    Args:
      m: array of any dtype with at least two axes, of which the second is reversed.

    Returns:
      An array of the shape and dtype of `m`.

    Raises:
      AxisError: `m` has fewer than two axes.

    >>> jnp.fliplr(jnp.array([[1, 2]]))
    Array([[2, 1]], dtype=int32)
    """
    return _flipped("fliplr", m, 1)


@docs_from(fliplr)
def flipud(m: ArrayLike) -> Array:
    """`m` with its rows in reverse order (as ``numpy.flipud``).

    Args:
      m: array of any dtype with at least one axis, of which the first is reversed.

    Raises:
      AxisError: `m` has no axes.

    >>> jnp.flipud(jnp.array([1, 2]))
    Array([2, 1], dtype=int32)
    """
    return _flipped("flipud", m, 0)


@functools.partial(jit, inline=True, static_argnames=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` rotated by multiples of 90 degrees, from the first of `axes` towards the second (as ``numpy.rot90``).

    Args:
      m: array of any dtype with at least two axes.
      k: number of rotations by 90 degrees, not traced; negative numbers rotate in the opposite direction.
      axes: the two axes of the plane of rotation.

    Returns:
      An array of the dtype of `m`; for odd `k` with the lengths of `axes` exchanged.

    Raises:
      ShapeError: `m` has fewer than two axes, or `axes` contains an axis twice.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    m = check_one("rot90", m)
    if type_of(m).ndim < 2:
        raise ShapeError(
            f"rot90 requires its first argument to have ndim at least two, but got first argument of {type_of(m).short}"
        )
    first, second = canonical_axes(sequence("rot90", "axes", axes), type_of(m).ndim, "rot90")
    turns = integer("rot90", "k", k) % 4
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    if turns == 3:
        return flip(swapaxes(m, first, second), second)
    return flip(m, (first, second)) if turns else as_array_or_tracer(m)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """`a` with one axis moved before another (as ``numpy.rollaxis``); prefer `moveaxis`.

    Args:
      a: array of any dtype.
      axis: the axis to move.
      start: the axis is moved before this position; the number of axes of `a` moves it to the end.

    Returns:
      An array of the dtype of `a`.

    Raises:
      AxisError: `start` is neither an axis nor the end.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = check_one("rollaxis", a)
    rank = type_of(a).ndim
    place, before = canonical_axis(axis, rank, "rollaxis"), integer("rollaxis", "start", start)
    if not -rank <= before <= rank:
        raise AxisError(f"rollaxis: start={before} is no place among {rank} axes", axis=before)
    before += rank if before < 0 else 0
    return moveaxis(a, place, before - (before > place))
