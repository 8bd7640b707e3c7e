"""The shape of an array: reading it, reshaping, permuting, adding and removing axes.

The parameter `out_sharding` of public functions is handled in `_arrays/with_out_sharding.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._api.devices.out_sharding import OutSharding
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import InconclusiveDimensionOperation, OptionError, ShapeError
from ..._base.source import warn
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._operands.broadcasting import insert_axes
from ..._operands.checks import (
    as_shape,
    canonical_axes,
    canonical_axis,
    check,
    check_one,
    hashable,
    sequence,
    several,
    type_of,
    type_or_content_type,
)
from ..._ops.structure import shape as ops
from ...typing import Array, ArrayLike, Shape


def _type_of_argument(function: str, a: Any) -> ShapedArray:
    """The type of `a`, which may also be nested lists, or None (for NumPy an object of shape ())."""
    if a is None or isinstance(a, list | tuple):
        warn(f"{function} requires ndarray or scalar arguments, got {type(a)}", DeprecationWarning)
    if a is None:
        # np.shape(None) is (), since NumPy makes an array of one object of it.
        return shaped((), dtypes.float32)
    return type_or_content_type(function, np.asarray(a) if isinstance(a, list | tuple) else a)


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The lengths of the axes of `a` (as ``numpy.shape``).

    Args:
      a: array, number or reference.

    Returns:
      A tuple of ints, one for each axis.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    return _type_of_argument("shape", a).shape


def ndim(a: ArrayLike) -> int:
    """The number of axes of `a` (as ``numpy.ndim``).

    Args:
      a: array, number or reference.

    Returns:
      An int; 0 for a number.

    >>> ndim(1.0)
    0
    """
    return _type_of_argument("ndim", a).ndim


def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of `a`, or along `axis` (as ``numpy.size``).

    Args:
      a: array, number or reference.
      axis: axis or axes along which elements are counted; None counts all elements.

    Returns:
      An int.

    >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), 1)
    (6, 3)
    """
    aval = _type_of_argument("size", a)
    return math.prod(aval.shape[i] for i in canonical_axes(axis, aval.ndim, "size"))


def _fill_in(function: str, new: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
    """`new` with a -1 replaced by the length that the size of `old` determines."""
    if new.count(-1) == 1:
        rest = math.prod(n for n in new if n != -1)
        total = math.prod(old)
        # Beside a length of 0 every length would fit for -1. The error below says so, as NumPy's does.
        if rest != 0 and total % rest == 0:
            return tuple(total // rest if n == -1 else n for n in new)
        if is_symbolic(total) or is_symbolic(rest):
            raise InconclusiveDimensionOperation(
                f"{function}: Cannot divide evenly the sizes of shapes {old} and {new}: {total} elements by {rest}",
                instead=f"a constraint of symbolic_shape, such as 'mod({total}, {rest}) == 0'",
            )
    if any(n == -1 or (not is_symbolic(n) and n < 0) for n in new) or math.prod(new) != math.prod(old):
        raise ShapeError(
            f"{function}: cannot make shape {new} of an array of shape {old} with {math.prod(old)} elements",
            instead="a shape with as many elements; -1 for at most one length",
            shapes=[old, new],
        )
    return new


def reshape(
    a: ArrayLike, shape: Shape, order: str = "C", *, copy: bool | None = None, out_sharding: OutSharding = None
) -> Array:
    """`a` with another shape, its elements in the same order (as ``numpy.reshape``).

    Args:
      a: array of any dtype and shape.
      shape: new shape, not traced: an integer or a sequence of integers; one of them may be -1, for the length that is
        inferred from the number of elements.
      order: order in which elements are read and placed: 'C' with the last axis index changing fastest, 'F' with the
        first; 'A' is 'F' for NumPy arrays in Fortran order in memory, else 'C'.
      copy: has no effect: arrays cannot be changed in place.

    Returns:
      An array of the new shape and the dtype of `a`.

    Raises:
      ShapeError: `shape` has another number of elements than `a`, or more than one length is negative.
      ArgumentError: `shape` is traced or not of integers.
      OptionError: `order` is not one of the listed names.

    >>> jnp.reshape(jnp.arange(4), (2, -1))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    a = check_one("reshape", a)
    old = type_of(a).shape
    new = _fill_in("reshape", as_shape(shape, "reshape"), old)
    if order == "A":  # memory order; only NumPy arrays may have another one than "C"
        order = "F" if isinstance(a, np.ndarray) and a.flags.fnc else "C"
    if order == "F":
        # Column-major order is row-major order of the reversed axes.
        return transpose(reshape(transpose(a), new[::-1]))
    if order != "C":
        instead = "'C', 'F' or 'A'; the shape is one argument, (2, 3)"
        raise OptionError(f"reshape: order={order!r}", instead=instead)
    return ops.as_array_or_tracer(a) if new == old else ops.reshape(a, new_sizes=new, dimensions=None)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """`a` flattened to a vector (as ``numpy.ravel``).

    Args:
      a: array of any dtype and shape.
      order: order in which elements are read: 'C' with the last axis index changing fastest, 'F' with the first; 'A' as
        for `reshape`; 'K' is the order of NumPy arrays in memory, and 'C' of other arrays.

    Returns:
      A vector of the dtype of `a`.

    Raises:
      OptionError: `order` is not one of the listed names.

    >>> jnp.ravel(jnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    a = check_one("ravel", a)
    if order == "K":
        a, order = a.ravel("K") if isinstance(a, np.ndarray) else a, "C"
    if order not in ("C", "F"):
        return reshape(a, (type_of(a).size,), order)
    return ops.as_array_or_tracer(a) if type_of(a).ndim == 1 else _flat(a) if order == "C" else _flat_from_first(a)


@jit(inline=True)
def _flat(a: Any) -> Any:
    return ops.reshape(a, new_sizes=(type_of(a).size,), dimensions=None)


@jit(inline=True)
def _flat_from_first(a: Any) -> Any:
    return _flat(transpose(a))


def flat_or_along(function: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """`a` and its axis `axis`, checked; for None the flattened `a`, and its axis."""
    return (ravel(a), 0) if axis is None else (a, canonical_axis(axis, type_of(a).ndim, function))


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """`a` with its axes in another order (as ``numpy.transpose``).

    Args:
      a: array of any dtype and shape.
      axes: permutation of the axes: axis i of the result is axis ``axes[i]`` of `a`; None reverses their order.

    Returns:
      An array of the dtype of `a`.

    Raises:
      ShapeError: `axes` is not a permutation of the axes of `a`.

    >>> jnp.transpose(jnp.ones((2, 3))).shape
    (3, 2)
    """
    a = check_one("transpose", a)
    rank = type_of(a).ndim
    axes = range(rank)[::-1] if axes is None else sequence("transpose", "axes", axes)
    order = tuple(canonical_axis(i, rank, "transpose") for i in axes)
    if len(order) != rank:
        raise ShapeError(f"transpose: {order} is no permutation of the {rank} axes of {type_of(a).short}")
    return _permuted(a, order)


@docs_from(transpose)
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """`transpose` with the order of axes required (as ``numpy.permute_dims``).

    Args:
      axes: permutation of the axes: axis i of the result is axis ``axes[i]`` of `a`.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """`x` with its last two axes exchanged (as ``numpy.matrix_transpose``).

    Args:
      x: array of shape (..., m, n), of any dtype.

    Returns:
      An array of shape (..., n, m), of the dtype of `x`.

    Raises:
      ShapeError: `x` has fewer than two axes.

    >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    (x,) = check("matrix_transpose", x)
    if ndim(x) < 2:
        raise ShapeError(f"matrix_transpose: x must be at least two-dimensional, got {type_of(x).short}")
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """`a` with two axes exchanged (as ``numpy.swapaxes``).

    Args:
      a: array of any dtype.
      axis1, axis2: axes to exchange; negative numbers count from the last axis.

    Returns:
      An array of the dtype of `a`.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = check_one("swapaxes", a)
    return _permuted(a, _swapped(type_of(a).ndim, axis1, axis2))


@functools.lru_cache(1024, typed=True)
def _swapped(rank: int, axis1: int, axis2: int) -> tuple[int, ...]:
    order = list(range(rank))
    i, j = canonical_axis(axis1, rank, "swapaxes"), canonical_axis(axis2, rank, "swapaxes")
    order[i], order[j] = order[j], order[i]
    return tuple(order)


def _permuted(a: Any, order: tuple[int, ...]) -> Any:
    return ops.as_array_or_tracer(a) if order == tuple(range(len(order))) else _transposed(a, order)


@jit(inline=True, static_argnums=1)
def _transposed(a: Any, order: tuple[int, ...]) -> Any:
    return ops.transpose(a, permutation=order)


@docs_from(swapaxes)
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """`a` with axes moved to other positions, the others in their original order (as ``numpy.moveaxis``).

    Args:
      source: axis or axes of `a` to move.
      destination: position in the result of each axis in `source`; an integer or a sequence of them.

    Raises:
      ShapeError: `source` and `destination` differ in length, or name an axis twice.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = check_one("moveaxis", a)
    return _permuted(a, _moved(type_of(a).ndim, hashable(source), hashable(destination)))


@functools.lru_cache(1024, typed=True)
def _moved(rank: int, source: int | Sequence[int], destination: int | Sequence[int]) -> tuple[int, ...]:
    sources = canonical_axes(source, rank, "moveaxis")
    destinations = canonical_axes(destination, rank, "moveaxis")
    if len(sources) != len(destinations):
        raise ShapeError(f"moveaxis: {len(sources)} sources for {len(destinations)} destinations")
    order = [i for i in range(rank) if i not in sources]
    # In the order of their destinations: an axis that is inserted moves only those after it.
    for to, which in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, which)
    return tuple(order)


@docs_from(transpose)
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """`a` with new axes of length one (as ``numpy.expand_dims``).

    Args:
      axis: position or positions of the new axes in the result.

    Raises:
      ShapeError: a position occurs twice.

    >>> jnp.expand_dims(jnp.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    return insert_axes("expand_dims", check_one("expand_dims", a), several(axis))


@docs_from(transpose)
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`a` without axes of length one (as ``numpy.squeeze``).

    Args:
      axis: axis or axes to drop; None drops all of length one.

    Raises:
      ShapeError: an axis to drop has another length.

    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
    (3,)
    """
    a = check_one("squeeze", a)
    old = type_of(a).shape
    axes = tuple(i for i, n in enumerate(old) if n == 1) if axis is None else canonical_axes(axis, len(old), "squeeze")
    return ops.squeeze(a, dimensions=axes) if axes else ops.as_array_or_tracer(a)


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`m` with the elements along `axis` in reverse order (as ``numpy.flip``).

    Args:
      m: array of any dtype and shape.
      axis: axis or axes to reverse; None reverses all axes.

    Returns:
      An array of the shape and dtype of `m`.

    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    m = check_one("flip", m)
    return ops.rev(m, dimensions=canonical_axes(axis, type_of(m).ndim, "flip"))


def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays as arrays with at least one axis (as ``numpy.atleast_1d``).

    Args:
      *arys: arrays or numbers.

    Returns:
      An array for one argument, a tuple of arrays for several; a number has shape (1,).

    >>> atleast_1d(1.0).shape
    (1,)
    """
    out = [reshape(x, type_of(x).shape or (1,)) for x in check("atleast_1d", *arys)]
    return out[0] if len(out) == 1 else tuple(out)


@docs_from(atleast_1d)
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays as arrays with at least two axes, new ones in front (as ``numpy.atleast_2d``).

    Returns:
      An array for one argument, a tuple of arrays for several; a number has shape (1, 1), a vector (1, n).

    >>> jnp.atleast_2d(jnp.ones(3)).shape
    (1, 3)
    """
    out = []
    for x in check("atleast_2d", *arys):
        shape = type_of(x).shape
        out.append(reshape(x, (1,) * (2 - len(shape)) + shape))
    return out[0] if len(out) == 1 else tuple(out)
