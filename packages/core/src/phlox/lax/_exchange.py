"""Collectives that move data along a mapped axis. All take pytrees, and apply to each leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.docstrings import docs_from
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError
from .._ir import dtypes
from .._ir.sharding_types import manual_reductions
from .._operands.broadcasting import insert_axes, where
from .._operands.checks import canonical_axis, check, integer, type_of
from .._operands.promotion import to_dtype
from .._ops.spmd import axis_states, exchange as ops
from .._ops.spmd.collectives import varying_over
from .._ops.structure import shape
from .._trace.axes import tracked_axes
from ..typing import Array, ArrayLike
from ._parallel import AxisGroups, AxisName, axis_index, axis_size, group_size, groups_of, names_of, psum


def _each(function: str, x: Any, one: Callable[[Any], Any]) -> Any:
    return pytree.tree_map(lambda leaf: one(*check(function, leaf)), x)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: AxisGroups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values of `x` from all positions along a mapped axis, at every position (StableHLO's ``all_gather``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis; a tuple of names counts as one axis, in row-major order.
      axis_index_groups: groups, as lists of positions along the axis; data is exchanged only within a group. None means
        one group of all positions.
      axis: position of the gathered axis in the result; negative numbers count from the last axis.
      tiled: whether the values are concatenated along the existing `axis` instead of stacked along a new one.
      to: "varying"; or, along axes that a `shard_map` tracks, "invarying": the type says that all devices have the same
        result; or "reduced": it also says that the cotangent consists of partial results.

    Returns:
      A pytree like `x`; each array has one more axis or, with `tiled`, is longer along `axis` by the length of the
      mapped axis as factor.

    Raises:
      AxisNameError: no mapped axis has this name.
      AxisError: `axis` is out of range for an array.
      OptionError: `to` is unknown, or `axis_index_groups` does not contain every position exactly once.
      UnsupportedError: `axis_index_groups` is given and vmap maps the axis.

    >>> phlox.vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.arange(2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to not in ("varying", "invarying", "reduced"):
        raise OptionError(f"all_gather: to={to!r}", instead="'varying', 'invarying' or 'reduced'")
    names, groups = names_of(axis_name), groups_of(axis_index_groups)
    if not names:
        return x
    size = group_size(names, groups)
    tracked = tuple(name for name in names if name in tracked_axes())
    # A group has its own result, which differs from those of others.
    is_equal = to == "invarying" and tracked == names and groups is None
    gather = ops.all_gather_invariant if is_equal else ops.all_gather

    def one(leaf: Any) -> Any:
        out = gather.bind(
            varying_over(leaf, names),
            all_gather_dimension=canonical_axis(axis, type_of(leaf).ndim + (not tiled), "all_gather"),
            axis_name=names,
            axis_index_groups=groups,
            axis_size=size,
            tiled=tiled,
        )
        return axis_states.cast(out, tracked, "reduced") if to == "reduced" and tracked else out

    return _each("all_gather", x, one)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: AxisGroups = None,
    tiled: bool = False,
) -> Any:
    """The sum over a mapped axis as by `psum`, of which each position keeps one part (StableHLO's ``reduce_scatter``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      scatter_dimension: axis number of `x` along which the sum is divided, of the length of the mapped axis; negative
        numbers count from the last axis.
      axis_index_groups: groups, as lists of positions along the axis; each group is summed separately. None means one
        group of all positions.
      tiled: whether the result keeps `scatter_dimension`; its length must then be a multiple of the length of the
        mapped axis.

    Returns:
      A pytree like `x`, its arrays without `scatter_dimension` or, with `tiled`, shorter along it.

    Raises:
      AxisNameError: no mapped axis has this name.
      AxisError: `scatter_dimension` is out of range for an array.
      ShapeError: the length of `scatter_dimension` does not match the mapped axis.
      OptionError: `axis_index_groups` does not contain every position exactly once.
      UnsupportedError: `axis_index_groups` is given and vmap maps the axis.

    >>> phlox.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([11, 22], dtype=int32)
    """
    names, groups = names_of(axis_name), groups_of(axis_index_groups)
    if not names:
        return x
    size = group_size(names, groups)

    def one(leaf: Any) -> Any:
        if partial_along := tuple(name for name in names if name in manual_reductions(type_of(leaf))[0]):
            leaf = axis_states.cast(leaf, partial_along, "varying")
        return ops.reduce_scatter.bind(
            varying_over(leaf, names),
            scatter_dimension=canonical_axis(scatter_dimension, type_of(leaf).ndim, "psum_scatter"),
            axis_name=names,
            axis_index_groups=groups,
            axis_size=size,
            tiled=tiled,
        )

    return _each("psum_scatter", x, one)


@docs_from(psum_scatter)
def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: AxisGroups = None,
    tiled: bool = False,
) -> Any:
    """Splits `x` along `split_axis` into one part for each position along a mapped axis, sends the parts to their
    positions, and joins the received parts along `concat_axis` (StableHLO's ``all_to_all``).

    Args:
      x: pytree of arrays whose `split_axis` has the length of the mapped axis (with `tiled`, a multiple of it).
      split_axis: axis number to split along; negative numbers count from the last axis.
      concat_axis: axis number in the result along which received parts are joined; negative numbers count from the last
        axis.
      axis_index_groups: groups, as lists of positions along the axis; data is exchanged only within a group. None means
        one group of all positions.
      tiled: whether parts keep `split_axis`, and are concatenated along the existing `concat_axis`. If False,
        `split_axis` is removed and `concat_axis` is a new axis.

    Returns:
      A pytree like `x`, with arrays of the new shapes.

    Raises:
      AxisError: an axis number is out of range for an array.
      ShapeError: the length of `split_axis` does not match the mapped axis.

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
        if moves:  # `concat_axis` counts axes without `split_axis`
            if split < at:
                at += 1
            else:
                split += 1
            leaf = insert_axes("all_to_all", leaf, at)
        out = ops.all_to_all.bind(
            varying_over(leaf, names),
            axis_name=names,
            split_axis=split,
            concat_axis=at,
            axis_index_groups=groups,
            axis_size=size,
        )
        return shape.squeeze(out, dimensions=(split,)) if moves else out

    return _each("all_to_all", x, one)


@docs_from(all_to_all)
def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: AxisGroups = None) -> Any:
    """Arrays with a mapped axis swapped with one of their own axes (StableHLO's ``all_to_all``).

    Args:
      x: pytree of arrays whose `axis` has the length of the mapped axis.
      axis: axis number of `x` to swap; negative numbers count from the last axis.

    Returns:
      A pytree like `x`, with arrays of the same shapes.

    Raises:
      AxisError: `axis` is out of range for an array.
      ShapeError: the length of `axis` differs from that of the mapped axis.

    >>> phlox.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """The values of `x` sent between positions along a mapped axis (StableHLO's ``collective_permute``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      perm: pairs (source, target) of positions along the axis; each position is a source at most once, and a target at
        most once.

    Returns:
      A pytree like `x`; zeros at positions that are not targets.

    Raises:
      AxisNameError: no mapped axis has this name.
      OptionError: a position is source or target twice, or is out of range.

    >>> phlox.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    names = names_of(axis_name)
    pairs = tuple([(integer("ppermute", "perm", i), integer("ppermute", "perm", j)) for i, j in perm])
    ops.check_pairs(pairs, axis_size(names))
    return _each("ppermute", x, lambda leaf: ops.ppermute.bind(varying_over(leaf, names), axis_name=names, perm=pairs))


@docs_from(ppermute)
def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """The values of `x` permuted along a mapped axis (StableHLO's ``collective_permute``).

    Args:
      perm: permutation of the positions 0, 1, …: for each position along the axis, the position that its new value
        comes from.

    Returns:
      A pytree like `x`; zeros at positions beyond the length of `perm`.

    Raises:
      OptionError: `perm` is not a permutation, or longer than the axis.

    >>> phlox.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    if set(perm) != set(range(len(perm))):
        raise OptionError(
            f"pshuffle: `perm` does not represent a permutation: {list(perm)}", instead="every index of the axis once"
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """The value of `x` from one position along a mapped axis, at every position (as ``jax.lax.pbroadcast``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      source: position along the axis whose value is sent to all, not negative.

    Returns:
      A pytree like `x`, with equal values at all positions.

    Raises:
      AxisNameError: no mapped axis has this name.
      OptionError: `source` is out of range.

    >>> phlox.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(np.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    size = axis_size(names_of(axis_name))
    if not 0 <= source < size:
        raise OptionError(f"pbroadcast: source={source} on a mapped axis of length {size}")
    here = axis_index(axis_name) == source

    def one(leaf: Any) -> Any:
        aval = type_of(leaf)
        # A sum in which every position but the source has zeros
        return to_dtype(psum(where(here, leaf, to_dtype(0, aval.dtype)), axis_name), aval.dtype)

    return _each("pbroadcast", x, one)


#: the states along an axis that `pcast` changes, and those to which it does
_CASTS = (("invarying", "varying"), ("invarying", "reduced"), ("varying", "unreduced"), ("reduced", "varying"))


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """`x`, declared as varying, reduced or unreduced along mesh axes that a `shard_map` tracks (as ``jax.lax.pcast``).

    A value that is equal on all devices gets a type that varies by itself where it meets one that does. This function
    does it earlier: a gradient with respect to its result is that of each device alone, not the sum over the devices.
    Elsewhere, as in `vmap`, `pmap` and with ``check_vma=False``, `x` is returned unchanged.

    Args:
      x: pytree of arrays, which are all equal on the devices along the axes, or all varying or reduced.
      axis_name: name of the mapped axis, or a tuple of names.
      to: "varying", for values that are equal on all devices or reduced; "reduced", for values that are equal on all
        devices, and whose cotangent is to consist of partial results; "unreduced", for values that vary, and are
        partial results of a sum over the devices.

    Returns:
      A pytree of the same values.

    Raises:
      AxisNameError: no mapped axis has this name.
      ArgumentError: `axis_name` is a set or a list.
      OptionError: `to` is none of "varying", "reduced" and "unreduced", or an array cannot be declared so.

    >>> phlox.vmap(lambda x: pcast(x, "i", to="varying") + 1, axis_name="i")(np.arange(2))
    Array([1, 2], dtype=int32)
    """
    if isinstance(axis_name, set | frozenset | list):
        raise ArgumentError(f"pcast: axis_name={axis_name!r}", instead="a name or a tuple of names")
    if to not in {target for _, target in _CASTS}:
        raise OptionError(f"pcast: to={to!r}", instead="'varying', 'reduced' or 'unreduced'")
    names = names_of(axis_name)
    tracked = tuple(name for name in names if name in tracked_axes())

    def one(leaf: Any) -> Any:
        states = {axis_states.state_of(type_of(leaf), name) for name in tracked}
        if len(states) > 1 or any((state, to) not in _CASTS for state in states):
            raise OptionError(
                f"Unsupported pcast from={', '.join(sorted(states))}, to={to!r}: of a value of type "
                f"{type_of(leaf).short} along {names}",
                instead=", ".join(f"from {a} to {b}" for a, b in _CASTS),
            )
        return leaf if not tracked else axis_states.cast(leaf, tracked, to)

    return _each("pcast", x, one)


def pvary(x: Any, axis_name: AxisName) -> Any:
    """The older name of ``pcast(x, axis_name, to="varying")`` (as ``jax.lax.pvary``), for any axes.

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.

    Returns:
      A pytree of the same values, which vary along these axes and those along which they did before.

    Raises:
      AxisNameError: no mapped axis has this name.

    >>> phlox.vmap(lambda x: pvary(x, "i") + 1, axis_name="i")(np.arange(2))
    Array([1, 2], dtype=int32)
    """
    names = names_of(axis_name)
    return _each("pvary", x, lambda leaf: varying_over(leaf, names))


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: AxisGroups = None,
) -> Array:
    """`all_to_all` of pieces of different lengths, cut from axis 0 of `operand` and written into axis 0 of `output` (as
    ``jax.lax.ragged_all_to_all``).

    It is computed by `all_gather`: each position receives all operands and takes its pieces out of them.

    Args:
      operand: array with the pieces that are sent.
      output: array of the dtype of `operand`, with the same axes after the first; the result has its values where no
        piece is written.
      input_offsets, send_sizes: vectors of integers: start index in `operand` and length of each piece to send. There
        is the same number of pieces for each receiver, ordered by receiver.
      output_offsets: vector of integers: start index of each sent piece in the receiver's `output`.
      recv_sizes: vector of integers: length of each piece that is received.
      axis_name: name of the mapped axis.
      axis_index_groups: groups, as lists of positions along the axis; data is exchanged only within a group. None means
        one group of all positions.

    Returns:
      An array of the shape of `output`.

    Raises:
      AxisNameError: no mapped axis has this name.
      DtypeError: an offset or a size is not an integer.
      ShapeError: offsets or sizes are no vectors, or their length is no multiple of that of the axis.
      OptionError: `axis_index_groups` does not contain every position exactly once.

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
    integers = check(function, input_offsets, send_sizes, output_offsets, recv_sizes)
    for name, x in zip(("input_offsets", "send_sizes", "output_offsets", "recv_sizes"), integers, strict=True):
        aval = type_of(x)
        if dtypes.kind(aval.dtype) not in "iu":
            raise DtypeError(f"{function}: {name} is {aval.short}", instead="integers")
        if aval.ndim != 1 or not aval.size:
            raise ShapeError(f"{function}: {name} is {aval.short}", instead="one number for each piece")
    starts, _, out_starts, lengths = integers
    if type_of(starts).shape[0] % group_size(axis_name, groups_of(axis_index_groups)):
        raise ShapeError(f"{function}: {type_of(starts).shape[0]} pieces cannot be shared out evenly")
    swapped = [
        # Each receiver learns from the senders where its pieces begin in their operands and where they go in its
        # output.
        all_to_all(x, axis_name, 0, 0, axis_index_groups=axis_index_groups, tiled=True)
        for x in (starts, out_starts)
    ]
    everything = all_gather(operand, axis_name, axis_index_groups=axis_index_groups, tiled=True)
    rows, count = type_of(operand).shape[0], type_of(lengths).shape[0]
    # The sender of each piece, as pieces are ordered by sender after the exchange
    senders = np.arange(count, dtype=np.int32) // (count // group_size(axis_name, groups_of(axis_index_groups)))
    begins, ends = swapped[1], swapped[1] + lengths
    at = np.arange(type_of(output).shape[0], dtype=np.int32)[:, None]
    arrives = (begins <= at) & (ends > at)
    # At most one piece arrives at each row, so the maximum is its source, and 0 at rows that nothing reaches.
    source = where(arrives, swapped[0] + senders * rows + at - begins, 0).max(1)
    there = insert_axes(function, arrives.any(1), tuple(range(1, type_of(output).ndim)))
    return where(there, everything.at[source].get(mode="clip"), output)
