"""Collectives that move data along a mapped axis: who gets what of whom. All take trees and treat each leaf alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError, UnsupportedError
from .._ir import dtypes
from .._operands.broadcasting import insert_axes, where
from .._operands.checks import canonical_axis, check, type_of
from .._operands.promotion import to_dtype
from .._ops.spmd import exchange as ops
from .._ops.structure import shape
from ._parallel import AxisName, axis_index, axis_size, group_size, groups_of, names_of, psum


def _each(function: str, x: Any, one: Callable[[Any], Any]) -> Any:
    return pytree.tree_map(lambda leaf: one(*check(function, leaf)), x)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The `x` of all along a mapped axis, which everybody gets (StableHLO's ``all_gather``).

    Args:
      x: array or tree of them.
      axis_name: the mapped axis; a tuple of names makes one axis of several, row by row.
      axis_index_groups: lists of indices along the axis; only those in one list give to each other.
      axis: where the mapped axis appears in the result.
      tiled: join them along the existing `axis` instead.
      to: "varying" or "invarying". It means nothing here, since phlox does not track what is the same on all devices.

    >>> import phlox
    >>> phlox.vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.arange(2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to not in ("varying", "invarying", "reduced"):
        raise OptionError(f"all_gather: to={to!r}", instead="'varying' or 'invarying'")
    if to == "reduced":
        raise UnsupportedError("all_gather: to='reduced'", instead="to='varying'")
    names, groups = names_of(axis_name), groups_of(axis_index_groups)
    if not names:
        return x
    size = group_size(names, groups)

    def one(leaf: Any) -> Any:
        return ops.all_gather.bind(
            leaf,
            all_gather_dimension=canonical_axis(axis, type_of(leaf).ndim + (not tiled), "all_gather"),
            axis_name=names,
            axis_index_groups=groups,
            axis_size=size,
            tiled=tiled,
        )

    return _each("all_gather", x, one)


def psum_scatter(
    x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """`psum`, of which each gets only its own part: that at its own index along `scatter_dimension` (StableHLO's
    ``reduce_scatter``).

    Args:
      x: array or tree of them.
      axis_name: the mapped axis, or a tuple of them.
      scatter_dimension: the axis of `x` that is shared out, as long as the mapped axis; it is gone afterwards.
      axis_index_groups: lists of indices along the axis; only those in one list are summed.
      tiled: the axis stays, and may be a multiple as long.

    Raises `ShapeError` when the lengths do not fit.

    >>> import phlox
    >>> phlox.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([11, 22], dtype=int32)
    """
    names, groups = names_of(axis_name), groups_of(axis_index_groups)
    if not names:
        return x
    size = group_size(names, groups)

    def one(leaf: Any) -> Any:
        return ops.reduce_scatter.bind(
            leaf,
            scatter_dimension=canonical_axis(scatter_dimension, type_of(leaf).ndim, "psum_scatter"),
            axis_name=names,
            axis_index_groups=groups,
            axis_size=size,
            tiled=tiled,
        )

    return _each("psum_scatter", x, one)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Everybody cuts `x` into parts along `split_axis`, one for each; what it gets lies along `concat_axis`
    (StableHLO's ``all_to_all``).

    Args:
      x: array or tree of them. `split_axis` has the length of the mapped axis.
      axis_name: the mapped axis, or a tuple of them.
      split_axis: the axis that is cut, and gone afterwards.
      concat_axis: where the mapped axis appears in the result.
      axis_index_groups: lists of indices along the axis; only those in one list give to each other.
      tiled: both axes exist before and after; `split_axis` gets shorter and `concat_axis` longer.

    Raises `ShapeError` when `split_axis` cannot be shared out.

    >>> import phlox
    >>> phlox.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    names, groups = names_of(axis_name), groups_of(axis_index_groups)
    size = group_size(names, groups)

    def one(leaf: Any) -> Any:
        rank = type_of(leaf).ndim
        split = canonical_axis(split_axis, rank, "all_to_all")
        at = canonical_axis(concat_axis, rank, "all_to_all")
        length = type_of(leaf).shape[split]
        if length % size if tiled else length != size:
            raise ShapeError(
                f"all_to_all: axis {split} of {type_of(leaf).short} has length {length}, "
                f"which is {'no multiple of' if tiled else 'not'} that of the mapped axis, {size}",
                axis=split,
            )
        moves = not tiled and split != at
        if moves:  # `concat_axis` counts axes without the one that is split
            if split < at:
                at += 1
            else:
                split += 1
            leaf = insert_axes("all_to_all", leaf, at)
        out = ops.all_to_all.bind(
            leaf, axis_name=names, split_axis=split, concat_axis=at, axis_index_groups=groups, axis_size=size
        )
        return shape.squeeze(out, dimensions=(split,)) if moves else out

    return _each("all_to_all", x, one)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """`all_to_all` that leaves the mapped axis where the other one was: it swaps the two (StableHLO's ``all_to_all``).

    >>> import phlox
    >>> phlox.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """`x` sent along a mapped axis, by pairs of indices (from, to) (StableHLO's ``collective_permute``). Who is sent
    nothing has zeros.

    Raises `OptionError` when an index sends or receives twice.

    >>> import phlox
    >>> phlox.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    names = names_of(axis_name)
    pairs = tuple((int(source), int(target)) for source, target in perm)
    ops.check_pairs(pairs, axis_size(names))
    return _each("ppermute", x, lambda leaf: ops.ppermute.bind(leaf, axis_name=names, perm=pairs))


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """`x` in another order along a mapped axis: at index i what was at ``perm[i]`` (StableHLO's
    ``collective_permute``).

    >>> import phlox
    >>> phlox.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    if set(perm) != set(range(len(perm))):
        raise OptionError(
            f"pshuffle: `perm` does not represent a permutation: {list(perm)}", instead="every index of the axis once"
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """The `x` of the one at index `source` along a mapped axis, for everybody (as ``jax.lax.pbroadcast``).

    >>> import phlox
    >>> phlox.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(np.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    size = axis_size(names_of(axis_name))
    if not 0 <= source < size:
        raise OptionError(f"pbroadcast: source={source} on a mapped axis of length {size}")
    here = axis_index(axis_name) == source

    def one(leaf: Any) -> Any:
        aval = type_of(leaf)
        return to_dtype(psum(where(here, leaf, to_dtype(0, aval.dtype)), axis_name), aval.dtype)

    return _each("pbroadcast", x, one)


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """`x`, said to differ along mapped axes ("varying") or not (as ``jax.lax.pcast``). phlox does not track that: it is
    `x` as it is.

    Raises `AxisNameError` for axes that nothing maps.

    >>> import phlox
    >>> phlox.vmap(lambda x: pcast(x, "i", to="varying") + 1, axis_name="i")(np.arange(2))
    Array([1, 2], dtype=int32)
    """
    if isinstance(axis_name, set | frozenset):
        raise ArgumentError(f"pcast: axis_name={axis_name!r}", instead="a name or a tuple of names")
    if to not in ("varying", "reduced", "unreduced"):
        raise OptionError(f"pcast: to={to!r}", instead="'varying'")
    if to != "varying":
        raise UnsupportedError(f"pcast: to={to!r}", instead="to='varying'")
    names_of(axis_name)
    return x


def pvary(x: Any, axis_name: AxisName) -> Any:
    """The older name of ``pcast(x, axis_name, to="varying")`` (as ``jax.lax.pvary``).

    >>> import phlox
    >>> phlox.vmap(lambda x: pvary(x, "i") + 1, axis_name="i")(np.arange(2))
    Array([1, 2], dtype=int32)
    """
    return pcast(x, axis_name, to="varying")


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: AxisName,
    axis_index_groups: Any = None,
) -> Any:
    """`all_to_all` of pieces of different lengths, cut from axis 0 of `operand` and written into axis 0 of `output` (as
    ``jax.lax.ragged_all_to_all``).

    It is computed from `all_gather`: everybody sees all operands and picks its pieces out of them.

    Args:
      operand: what is sent.
      output: what the result is where nothing arrives.
      input_offsets, send_sizes: where the pieces begin in `operand`, and how long they are: the same number for each
        receiver, those for the first one first.
      output_offsets: where the receiver writes them.
      recv_sizes: the lengths of the pieces that arrive here.
      axis_name: the mapped axis.
      axis_index_groups: lists of indices along the axis; only those in one list give to each other.

    >>> import phlox
    >>> send = lambda x, starts, sizes, places, got: ragged_all_to_all(
    ...     x, np.zeros(4, np.int32), starts, sizes, places, got, axis_name="i"
    ... )
    >>> phlox.vmap(send, axis_name="i")(
    ...     np.array([[1, 2, 2], [3, 4, 0]]),
    ...     np.array([[0, 1], [0, 1]]),
    ...     np.array([[1, 2], [1, 1]]),
    ...     np.array([[0, 0], [1, 2]]),
    ...     np.array([[1, 1], [2, 1]]),
    ... )
    Array([[1, 3, 0, 0],
           [2, 2, 4, 0]], dtype=int32)
    """
    function = "ragged_all_to_all"
    operand, output = check(function, operand, output)
    given = check(function, input_offsets, send_sizes, output_offsets, recv_sizes)
    for name, x in zip(("input_offsets", "send_sizes", "output_offsets", "recv_sizes"), given, strict=True):
        aval = type_of(x)
        if dtypes.kind(aval.dtype) not in "iu":
            raise DtypeError(f"{function}: {name} is {aval.short}", instead="integers")
        if aval.ndim != 1 or not aval.size:
            raise ShapeError(f"{function}: {name} is {aval.short}", instead="one number for each piece")
    starts, _, places, lengths = given
    if type_of(starts).shape[0] % group_size(axis_name, groups_of(axis_index_groups)):
        raise ShapeError(f"{function}: {type_of(starts).shape[0]} pieces cannot be shared out evenly")
    swapped = [
        all_to_all(x, axis_name, 0, 0, axis_index_groups=axis_index_groups, tiled=True) for x in (starts, places)
    ]
    everything = all_gather(operand, axis_name, axis_index_groups=axis_index_groups, tiled=True)
    rows, count = type_of(operand).shape[0], type_of(lengths).shape[0]
    senders = np.arange(count, dtype=np.int32) // (count // group_size(axis_name, groups_of(axis_index_groups)))
    begins, ends = swapped[1], swapped[1] + lengths
    at = np.arange(type_of(output).shape[0], dtype=np.int32)[:, None]
    arrives = (begins <= at) & (ends > at)
    source = where(arrives, swapped[0] + senders * rows + at - begins, 0).max(1)
    there = insert_axes(function, arrives.any(1), tuple(range(1, type_of(output).ndim)))
    return where(there, everything.at[source].get(mode="clip"), output)
