"""Collectives that reduce over an axis mapped by vmap, pmap or shard_map, by its name; axis_index and axis_size."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base import pytree
from .._base.docstrings import docs_from
from .._base.errors import OptionError
from .._ir import dtypes
from .._operands.checks import check, type_of
from .._operands.promotion import promoted_inexact, to_dtype
from .._ops.elementwise import arithmetic as e
from .._ops.spmd import collectives as ops
from .._ops.structure.shape import as_array_or_tracer
from .._trace import axes as _axes
from ..typing import Array

AxisName = Any
#: lists of indices along a mapped axis; each list is a group
AxisGroups = Sequence[Sequence[int]] | None


def names_of(axis_name: AxisName) -> tuple[Any, ...]:
    """The mapped axes that a collective works over, as a tuple. Raises `AxisNameError` for those not in scope."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    ops.check_bound(names)
    return names


def groups_of(axis_index_groups: AxisGroups) -> ops.Groups:
    """The groups as tuples. Raises `OptionError` unless they hold each of the first indices once."""
    if axis_index_groups is None:
        return None
    try:
        groups = tuple([tuple(map(operator.index, group)) for group in axis_index_groups])
    except TypeError:
        raise OptionError(
            f"axis_index_groups={axis_index_groups!r:.60} is no list of lists of indices", instead="[[0, 1], [2, 3]]"
        ) from None
    if not groups or sorted(i for group in groups for i in group) != list(range(sum(map(len, groups)))):
        raise OptionError(f"axis_index_groups={axis_index_groups} must hold every index of the axis once")
    return groups


def group_size(axis_name: AxisName, groups: ops.Groups) -> int:
    """The number of indices in each group."""
    return axis_size(axis_name) if groups is None else len(groups[0])


def axis_size(axis_name: AxisName) -> int:
    """The length of a mapped axis, a Python int (as ``jax.lax.axis_size``).

    Args:
      axis_name: name of the mapped axis; a tuple of names gives the product of their lengths.

    Returns:
      A Python int, known while tracing.

    Raises:
      AxisNameError: no mapped axis has this name.

    >>> phlox.vmap(lambda x: x * axis_size("i"), axis_name="i")(jnp.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    return _axes.axis_size(axis_name if not isinstance(axis_name, list) else tuple(axis_name))


def axis_index(axis_name: AxisName) -> Array:
    """The position of the current example, or device, along a mapped axis (as ``jax.lax.axis_index``).

    Args:
      axis_name: name of the mapped axis; for a tuple of names, positions are counted in row-major order.

    Returns:
      An int32 scalar, from 0 to the length of the axis minus 1.

    Raises:
      AxisNameError: no mapped axis has this name.

    >>> phlox.vmap(lambda x: axis_index("i"), axis_name="i")(jnp.ones(3))
    Array([0, 1, 2], dtype=int32)
    """
    index: Any = None
    # Several axes count as one, whose index changes fastest along the last of them.
    for name in names_of(axis_name):
        here = ops.axis_index.bind(axis_name=name)
        index = here if index is None else index * _axes.axis_size(name) + here
    return as_array_or_tracer(0) if index is None else index


def _collective(primitive: Any, function: str, x: Any, axis_name: AxisName, axis_index_groups: AxisGroups) -> Any:
    groups = groups_of(axis_index_groups)
    names = names_of(axis_name)
    leaves, tree = pytree.flatten(x)
    arrays = check(function, *leaves)
    if function == "psum":
        # Bools are counted.
        arrays = [to_dtype(a, dtypes.int32) if type_of(a).dtype == dtypes.bool_ else a for a in arrays]
    if not arrays or not names:
        return tree.unflatten([as_array_or_tracer(a) for a in arrays])
    if primitive is ops.psum:
        return tree.unflatten(ops.sum_over_axes(arrays, names, groups))
    arrays = [ops.varying_over(x, names) for x in arrays]
    return tree.unflatten(primitive.bind(*arrays, axes=names, axis_index_groups=groups))


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: AxisGroups = None) -> Any:
    """The sum of `x` over a mapped axis, for each leaf of a pytree (StableHLO's ``all_reduce``).

    A Python number gives a Python number: ``psum(1, "i")`` is the length of the axis.

    Args:
      x: pytree of arrays; bools are summed as int32.
      axis_name: name of the mapped axis, or a tuple of names.
      axis_index_groups: groups, as lists of positions along the axis; each group is reduced separately. None means one
        group of all positions. Under vmap, groups are not supported.

    Returns:
      A pytree like `x`, with equal values at all positions along the axis (or in a group).

    Raises:
      AxisNameError: no mapped axis has this name.
      OptionError: `axis_index_groups` does not contain every position exactly once.
      UnsupportedError: `axis_index_groups` is given and vmap maps the axis.

    >>> phlox.vmap(lambda x: x / psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    # Python numbers are equal everywhere, so that their sum needs no communication: psum(1, axis) is the size of the
    # axis, a Python number, as in JAX.
    leaves, tree = pytree.flatten(x)
    if leaves and all(isinstance(leaf, bool | int | float | complex | np.generic) for leaf in leaves):
        size = group_size(axis_name, groups_of(axis_index_groups))
        return tree.unflatten([leaf * size for leaf in leaves])
    return _collective(ops.psum, "psum", x, axis_name, axis_index_groups)


@docs_from(psum)
def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: AxisGroups = None) -> Any:
    """The mean of `x` over a mapped axis, for each leaf of a pytree (StableHLO's ``all_reduce``).

    Args:
      x: pytree of arrays; integers and bools give floats.

    >>> phlox.vmap(lambda x: pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    size = group_size(axis_name, groups_of(axis_index_groups))
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    return pytree.tree_map(lambda leaf: e.div(*promoted_inexact("pmean", leaf, size)), total)


@docs_from(pmean)
def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: AxisGroups = None) -> Any:
    """The largest `x` along a mapped axis, elementwise, for each leaf of a pytree (StableHLO's ``all_reduce``).

    Args:
      x: pytree of arrays.

    >>> phlox.vmap(lambda x: pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([3., 3.], dtype=float32)
    """
    return _collective(ops.pmax, "pmax", x, axis_name, axis_index_groups)


@docs_from(pmax)
def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: AxisGroups = None) -> Any:
    """The smallest `x` along a mapped axis, elementwise, for each leaf of a pytree (StableHLO's ``all_reduce``).

    >>> phlox.vmap(lambda x: pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([1., 1.], dtype=float32)
    """
    return _collective(ops.pmin, "pmin", x, axis_name, axis_index_groups)
