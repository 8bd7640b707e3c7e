"""Collectives that move data along a mapped axis. All take pytrees, and apply to each leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError, UnsupportedError
from .._ir import dtypes
from .._operands.broadcasting import insert_axes, where
from .._operands.checks import canonical_axis, check, type_of
from .._operands.promotion import to_dtype
from .._ops.spmd import exchange as ops
from .._ops.structure import shape
from ._parallel import AxisGroups, AxisName, axis_index, axis_size, group_size, groups_of, names_of, psum

if TYPE_CHECKING:
    from ..typing import Array, ArrayLike


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
    """`x` of all positions along a mapped axis, for each of them (StableHLO's ``all_gather``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis; a tuple of names counts as one axis, in row-major order.
      axis_index_groups: lists of indices along the axis; only those in one list exchange data. None means all.
      axis: the position of the mapped axis in the result; a negative one counts from the last.
      tiled: whether the parts are concatenated along the existing `axis` instead.
      to: "varying" or "invarying". It has no effect, since phlox does not track what is the same on all devices.

    Returns:
      A pytree like `x`, its arrays with one more axis, or with `tiled` as many times longer along `axis`.

    Raises:
      AxisNameError: nothing maps the axis.
      AxisError: an array has no such `axis`.
      OptionError: `to` is another word, or `axis_index_groups` does not hold every index once.
      UnsupportedError: `to` is "reduced", or `axis_index_groups` is given and vmap maps the axis.

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
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: AxisGroups = None,
    tiled: bool = False,
) -> Any:
    """`psum`, of which each position keeps only the part at its own index (StableHLO's ``reduce_scatter``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      scatter_dimension: the axis of `x` that is divided, as long as the mapped axis; a negative one counts from the
        last.
      axis_index_groups: lists of indices along the axis, of which only those in one list are summed; None means all.
      tiled: whether `scatter_dimension` stays; its length is then a multiple of that of the mapped axis.

    Returns:
      A pytree like `x`, its arrays without `scatter_dimension`, or with `tiled` shorter along it.

    Raises:
      AxisNameError: nothing maps the axis.
      AxisError: an array has no such axis.
      ShapeError: the length of `scatter_dimension` does not fit the mapped axis.
      OptionError: `axis_index_groups` does not hold every index once.
      UnsupportedError: `axis_index_groups` is given and vmap maps the axis.

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
    axis_index_groups: AxisGroups = None,
    tiled: bool = False,
) -> Any:
    """Each position cuts `x` along `split_axis` into one part for each position, and joins those it gets along
    `concat_axis` (StableHLO's ``all_to_all``).

    Args:
      x: pytree of arrays, along `split_axis` as long as the mapped axis.
      axis_name: name of the mapped axis, or a tuple of names.
      split_axis: the axis that is cut; a negative one counts from the last.
      concat_axis: the position of the mapped axis in the result; a negative one counts from the last.
      axis_index_groups: lists of indices along the axis; only those in one list exchange data. None means all.
      tiled: whether both axes exist before and after: `split_axis` gets shorter and `concat_axis` longer. Else
        `split_axis` is removed and `concat_axis` is new.

    Returns:
      A pytree like `x`, its arrays of the new shape.

    Raises:
      AxisNameError: nothing maps the axis.
      AxisError: an array has no such axis.
      ShapeError: the length of `split_axis` does not fit the mapped axis.
      OptionError: `axis_index_groups` does not hold every index once.
      UnsupportedError: `axis_index_groups` is given and vmap maps the axis.

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
        if moves:  # `concat_axis` counts axes without `split_axis`
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


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: AxisGroups = None) -> Any:
    """The mapped axis and an axis of `x` exchanged (StableHLO's ``all_to_all``).

    Args:
      x: pytree of arrays, along `axis` as long as the mapped axis.
      axis_name: name of the mapped axis, or a tuple of names.
      axis: the axis of `x`; a negative one counts from the last.
      axis_index_groups: lists of indices along the axis; only those in one list exchange data. None means all.

    Returns:
      A pytree like `x`, of the same shapes.

    Raises:
      AxisNameError: nothing maps the axis.
      AxisError: an array has no such axis.
      ShapeError: `axis` has another length than the mapped axis.
      OptionError: `axis_index_groups` does not hold every index once.
      UnsupportedError: `axis_index_groups` is given and vmap maps the axis.

    >>> import phlox
    >>> phlox.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """`x` sent from position to position along a mapped axis (StableHLO's ``collective_permute``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      perm: pairs (source, target) of indices along the axis, each at most once as source and once as target.

    Returns:
      A pytree like `x`; zeros at positions that are no target.

    Raises:
      AxisNameError: nothing maps the axis.
      OptionError: an index is source or target twice, or is out of range.

    >>> import phlox
    >>> phlox.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(np.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    names = names_of(axis_name)
    pairs = tuple((int(source), int(target)) for source, target in perm)
    ops.check_pairs(pairs, axis_size(names))
    return _each("ppermute", x, lambda leaf: ops.ppermute.bind(leaf, axis_name=names, perm=pairs))


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """`x` in another order along a mapped axis (StableHLO's ``collective_permute``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      perm: for each index along the axis, the index from which its new value comes: a permutation of 0, 1, ….

    Returns:
      A pytree like `x`; zeros at positions after the last one of `perm`.

    Raises:
      AxisNameError: nothing maps the axis.
      OptionError: `perm` is no permutation, or longer than the axis.

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
    """`x` of one position along a mapped axis, for all of them (as ``jax.lax.pbroadcast``).

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      source: index along the axis, not negative.

    Returns:
      A pytree like `x`, the same for all positions.

    Raises:
      AxisNameError: nothing maps the axis.
      OptionError: `source` is out of range.

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
    """`x`, declared to differ along mapped axes or not (as ``jax.lax.pcast``). phlox does not track that: it is `x` as
    it is.

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.
      to: "varying".

    Returns:
      `x`.

    Raises:
      AxisNameError: nothing maps the axis.
      ArgumentError: `axis_name` is a set.
      OptionError: `to` is another word than "varying", "reduced" and "unreduced".
      UnsupportedError: `to` is "reduced" or "unreduced".

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

    Args:
      x: pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names.

    Returns:
      `x`.

    Raises:
      AxisNameError: nothing maps the axis.

    >>> import phlox
    >>> phlox.vmap(lambda x: pvary(x, "i") + 1, axis_name="i")(np.arange(2))
    Array([1, 2], dtype=int32)
    """
    return pcast(x, axis_name, to="varying")


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
      output: array that the result is where nothing arrives; of the dtype of `operand`, with its axes after the first.
      input_offsets, send_sizes: vectors of integers: where the pieces begin in `operand`, and how long they are. Each
        receiver has as many pieces; those for the first one come first.
      output_offsets: vector of integers: where the receivers write the pieces.
      recv_sizes: vector of integers: the lengths of the pieces that arrive here.
      axis_name: name of the mapped axis.
      axis_index_groups: lists of indices along the axis; only those in one list exchange data. None means all.

    Returns:
      An array of the shape of `output`.

    Raises:
      AxisNameError: nothing maps the axis.
      DtypeError: an offset or a size is no integer.
      ShapeError: offsets or sizes are no vectors, or their length is no multiple of that of the axis.
      OptionError: `axis_index_groups` does not hold every index once.

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
