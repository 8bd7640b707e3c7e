"""Repetition and rotation along axes: tile, repeat, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._api.devices.out_sharding import OutSharding, takes_out_sharding
from ..._api.jit.jit import jit
from ..._base.errors import ConcretizationTypeError, DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic, max_dim
from ..._operands.checks import array_like, as_shape, canonical_axis, check, check_one, integer, several, type_of
from ..._operands.promotion import to_dtype
from ..._ops.elementwise import arithmetic as e
from ..._ops.reductions.running import cumsum
from ..._ops.structure import shape as ops
from ..._ops.structure.iota import iota
from ..._ops.structure.slicing import along
from ..._trace.trace import ArrayBase, Tracer
from ...typing import Array, ArrayLike, Shape
from .._creation.fill import zeros
from .._creation.from_data import listed
from .._elementwise.binary import remainder, subtract
from .._indexing.at import At
from .._indexing.reading import take
from .._indexing.rows import unstack_rows
from .broadcasting import broadcast_shapes, broadcast_to
from .shapes import ravel, reshape


def tile(A: ArrayLike, reps: Shape) -> Array:
    """`A` repeated as a whole along each axis (as ``numpy.tile``).

    Args:
      A: array of any dtype and shape.
      reps: number of repetitions along each axis, not traced: an integer for the last axis, or a sequence of integers.
        If `reps` and the shape of `A` differ in length, ones are prepended to the shorter.

    Returns:
      An array of the dtype of `A`, whose length along each axis is multiplied by the number of repetitions.

    >>> jnp.tile(jnp.arange(2), 2)
    Array([0, 1, 0, 1], dtype=int32)
    """
    return _tile(check_one("tile", A), counts=as_shape(reps, "tile"))


@jit(inline=True, static_argnames="counts")
def _tile(A: Any, counts: tuple[int, ...]) -> Any:
    old = type_of(A).shape
    rank = max(len(counts), len(old))
    counts = (1,) * (rank - len(counts)) + counts
    old = (1,) * (rank - len(old)) + old
    # An axis of length 1 in front of each axis, which is then broadcast and merged with it
    split = tuple(n for pair in zip((1,) * rank, old, strict=True) for n in pair)
    wide = tuple(n for pair in zip(counts, old, strict=True) for n in pair)
    return reshape(broadcast_to(reshape(A, split), wide), tuple(r * n for r, n in zip(counts, old, strict=True)))


@jit(inline=True, static_argnames=("axis", "repeats"))
def _repeat(a: Any, repeats: int, axis: int) -> Any:
    old = type_of(a).shape
    spread = ops.broadcast_in_dim(
        a,
        shape=(*old[: axis + 1], repeats, *old[axis + 1 :]),
        broadcast_dimensions=tuple(i for i in range(len(old) + 1) if i != axis + 1),
    )
    return reshape(spread, (*old[:axis], old[axis] * repeats, *old[axis + 1 :]))


@takes_out_sharding
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Each element of `a` `repeats` times in a row, along `axis` or in the flattened array (as ``numpy.repeat``).

    Args:
      a: array of any dtype.
      repeats: number of repetitions: an integer, or an array of integers with one for each element.
      axis: axis along which elements are repeated; None flattens `a`.
      total_repeat_length: length of the result along `axis`, required under `jit` if `repeats` is an array. Longer
        results are cut off, shorter ones are padded by repeating the last element.

    Returns:
      An array of the dtype of `a`; a vector where `axis` is None.

    Raises:
      ShapeError: `repeats` has neither one element nor one for each element along `axis`.
      DtypeError: `repeats` are not integers.
      ConcretizationTypeError: `repeats` is traced and there is no `total_repeat_length`.

    >>> jnp.repeat(jnp.arange(2), 2), jnp.repeat(jnp.arange(2), jnp.array([1, 2]))
    (Array([0, 0, 1, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    length: Any = repeats if is_symbolic(repeats) else None
    a, repeats = check("repeat", a, repeats)
    if dtypes.kind(type_of(repeats).dtype) not in "biu":
        raise DtypeError(f"repeat: repeats must be integers, got {type_of(repeats).short}", instead="x.astype(int)")
    if axis is None:
        a, axis = ravel(a), 0
    if not type_of(a).shape:
        a = reshape(a, (1,))
    at = canonical_axis(axis, type_of(a).ndim, "repeat")
    n = type_of(a).shape[at]
    if length is not None and total_repeat_length is None:
        return _repeat(a, repeats=length, axis=at)
    if total_repeat_length is None and not isinstance(repeats, Tracer) and type_of(repeats).shape in ((), (1,)):
        return _repeat(a, repeats=int(np.asarray(repeats).reshape(())), axis=at)
    counts = reshape(repeats, (1,)) if not type_of(repeats).shape else repeats
    counts = broadcast_to(counts, (n,)) if type_of(counts).shape == (1,) else counts
    if type_of(counts).shape != (n,):
        raise ShapeError(f"repeat: {type_of(repeats).short} repeats for {n} elements", instead="one for each element")
    if n == 0:
        return ops.as_array_or_tracer(a)
    if total_repeat_length is None:
        if isinstance(repeats, Tracer):
            repeats._refuse(ConcretizationTypeError, "repeat without total_repeat_length", "total_repeat_length=...")
        return take(a, np.repeat(np.arange(n), np.asarray(counts)), at)
    # The copies of element i end before position ends[i], so the element at a position is the number of earlier ends.
    ends = cumsum(to_dtype(counts, dtypes.int32), axis=0, reverse=False)
    which = count_up_to(ends, total_repeat_length)
    # Beyond all copies the last element goes on, as in JAX.
    return take(a, e.min_(which, to_dtype(n - 1, dtypes.int32)), at)


def count_up_to(ends: Any, length: int) -> Any:
    """For each position below `length` the number of `ends`, which are not negative, up to it."""
    # A histogram of the ends, whose running sum counts them
    ends_here = At(zeros(length, type_of(ends).dtype))[ends].add(1, mode="drop")
    return cumsum(ends_here, axis=0, reverse=False)


@jit(inline=True, static_argnames=("shift", "axis"))
def _roll(a: Any, shift: tuple[int, ...], axis: tuple[int, ...]) -> Any:
    for by, at in zip(shift, axis, strict=True):
        n = type_of(a).shape[at]
        if n and by % n:
            cut = n - by % n
            a = ops.concatenate(along(a, at, cut, n), along(a, at, 0, cut), dimension=at)
    return a


@jit(inline=True, static_argnames="axis")
def _roll_by(a: Any, shift: Any, axis: int) -> Any:
    """`roll` by a traced number of positions."""
    n = type_of(a).shape[axis]
    indices = iota(dtype=dtypes.int32, shape=(n,), dimension=0)
    return take(a, remainder(subtract(indices, shift), max_dim(n, 1)), axis)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """`a` with its elements shifted along `axis`, those past the end moved to the front (as ``numpy.roll``).

    Args:
      a: array of any dtype and shape.
      shift: number of positions by which elements are shifted: an integer for all axes, or one for each; negative
        numbers shift towards the front.
      axis: axis or axes along which elements are shifted; None shifts the flattened array, then restores its shape.

    Returns:
      An array of the shape and dtype of `a`.

    >>> jnp.roll(jnp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    a = check_one("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), type_of(a).shape)
    axes = several(axis)
    many: Any = array_like(shift)
    if isinstance(many, list | tuple) and any(isinstance(n, ArrayBase) for n in many):
        (many,) = listed("roll", many)
    is_array = isinstance(many, ArrayBase)
    if is_array:
        count = broadcast_shapes(type_of(many).shape, (len(axes),))[-1]
        axes = axes * count if len(axes) == 1 else axes
        for i, by in zip(axes, unstack_rows(broadcast_to(many, (count,))), strict=True):
            a = _roll_by(a, by, axis=canonical_axis(i, type_of(a).ndim, "roll"))
        return a  # type: ignore[return-value]
    shifts = tuple(integer("roll", "shift", n) for n in several(many))
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: {len(shifts)} shifts along {len(axes)} axes", instead="one shift for each axis")
    return _roll(a, shift=shifts, axis=tuple(canonical_axis(i, type_of(a).ndim, "roll") for i in axes))
