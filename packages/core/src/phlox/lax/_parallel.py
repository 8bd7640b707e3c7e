"""Collectives: what functions mapped by vmap and pmap say to each other, by the name of the mapped axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import numpy as jnp
from .._base import pytree
from .._ir import dtypes
from .._ops import collectives as ops
from .._trace import axes as _axes
from ..numpy._promote import check, to_dtype, type_of

AxisName = Any


def _names(axis_name: AxisName) -> tuple[Any, ...]:
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    ops.in_scope(names)
    return names


def axis_size(axis_name: AxisName) -> int:
    """The length of a mapped axis, a Python int; of several axes the product.

    >>> import phlox, phlox.numpy as jnp
    >>> phlox.vmap(lambda x: x * axis_size("i"), axis_name="i")(jnp.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    return _axes.axis_size(axis_name if not isinstance(axis_name, list) else tuple(axis_name))


def axis_index(axis_name: AxisName) -> Any:
    """The position of this example (or device) along a mapped axis, an int32; along several, counted row by row.

    >>> import phlox, phlox.numpy as jnp
    >>> phlox.vmap(lambda x: axis_index("i"), axis_name="i")(jnp.ones(3))
    Array([0, 1, 2], dtype=int32)
    """
    index: Any = None
    for name in _names(axis_name):
        here = ops.axis_index.bind(axis_name=name)
        index = here if index is None else index * _axes.axis_size(name) + here
    return index


def _collective(primitive: Any, function: str, x: Any, axis_name: AxisName) -> Any:
    names = _names(axis_name)
    leaves, tree = pytree.flatten(x)
    arrays = check(function, *leaves)
    if function == "psum":
        arrays = [to_dtype(a, dtypes.int32) if type_of(a).dtype == dtypes.bool_ else a for a in arrays]
    return tree.unflatten(primitive.bind(*arrays, axes=names) if arrays else [])


def psum(x: Any, axis_name: AxisName) -> Any:
    """The sum of `x` over a mapped axis, for each leaf of a tree.

    A Python number gives a Python number: ``psum(1, "i")`` is the length of the axis.

    >>> import phlox, phlox.numpy as jnp
    >>> phlox.vmap(lambda x: x / psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    leaves, tree = pytree.flatten(x)
    if leaves and all(isinstance(leaf, bool | int | float | complex | np.generic) for leaf in leaves):
        size = axis_size(axis_name)
        return tree.unflatten([leaf * size for leaf in leaves])
    return _collective(ops.psum, "psum", x, axis_name)


def pmean(x: Any, axis_name: AxisName) -> Any:
    """The mean of `x` over a mapped axis, for each leaf of a tree.

    >>> import phlox, phlox.numpy as jnp
    >>> phlox.vmap(lambda x: pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([2., 2.], dtype=float32)
    """
    size = axis_size(axis_name)
    return pytree.tree_map(lambda leaf: jnp.divide(leaf, size), psum(x, axis_name))


def pmax(x: Any, axis_name: AxisName) -> Any:
    """The largest `x` over a mapped axis, for each leaf of a tree.

    >>> import phlox, phlox.numpy as jnp
    >>> phlox.vmap(lambda x: pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([3., 3.], dtype=float32)
    """
    return _collective(ops.pmax, "pmax", x, axis_name)


def pmin(x: Any, axis_name: AxisName) -> Any:
    """The smallest `x` over a mapped axis, for each leaf of a tree.

    >>> import phlox, phlox.numpy as jnp
    >>> phlox.vmap(lambda x: pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([1., 1.], dtype=float32)
    """
    return _collective(ops.pmin, "pmin", x, axis_name)
