"""Positions and elements selected by values: nonzero, argwhere, extract, compress, place, put and others.

The number of positions depends on values, but shapes in a compiled program are static. These functions therefore take
`size`: they return the first `size` positions, and fill the rest if there are fewer.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ConcretizationTypeError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import typeof_value
from ..._ir.dimensions import max_dim, value_of
from ..._operands.checks import check, check_one, integer, refuse_out, type_of
from ..._operands.index_bounds import PUT, WRITE, check_positions
from ..._operands.promotion import to_dtype
from ..._ops.structure import nonzero as ops
from ..._ops.structure.numbers import literal_of
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike
from .._elementwise.binary import remainder
from .._elementwise.choose import clip, where as select_elements
from .._elementwise.comparisons import less
from .._elementwise.unary import as_bool
from .._manipulation.joining import stack
from .._manipulation.shapes import atleast_1d, flat_or_along, ravel, reshape, transpose
from .._statistics import reductions as r
from .at import At
from .reading import grid_index, take


def known_count(function: str, mask: Any) -> int:
    """The number of true elements. Raises `ConcretizationTypeError` if `mask` is traced."""
    if isinstance(mask, Tracer):
        use = f"The size argument of jnp.{function} must be static, as {function} without size"
        mask._refuse(ConcretizationTypeError, use, f"{function}(..., size=n)")
    return int(np.asarray(r.count_nonzero(mask)))


@functools.partial(jit, static_argnames="size")
def first_places(mask: Any, size: int, fill: Any) -> Any:
    """The positions of the first `size` true elements of a vector, then `fill`."""
    n = type_of(mask).shape[0]
    positions = ops.first_places(mask, size=size, index_dtype=dtypes.canonical(dtypes.int64))
    return select_elements(less(positions, n), positions, to_dtype(fill, type_of(positions).dtype))


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> tuple[Array, ...]:
    """The indices of the nonzero elements of `a`, an array for each axis (as ``numpy.nonzero``).

    Args:
      a: array of any dtype with at least one axis.
      size: number of indices to return; None returns all, which depends on the values of `a`: under `jit`, `size` is
        required.
      fill_value: index that pads the result to `size`: a number, or a tuple with a number for each axis; None is 0.

    Returns:
      A tuple of vectors of integers, one for each axis of `a`, of length `size`.

    Raises:
      ConcretizationTypeError: `a` is traced and `size` is not given.
      ShapeError: `a` has no axes, or `fill_value` does not have one number for each axis.

    >>> jnp.nonzero(jnp.array([0, 5, 6]))
    (Array([1, 2], dtype=int32),)
    >>> jnp.nonzero(jnp.array([0, 5, 6]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    """
    a = check_one("nonzero", a)
    shape = type_of(a).shape
    if not shape:
        raise ShapeError("nonzero of an array without axes", instead="phlox.numpy.nonzero(phlox.numpy.atleast_1d(x))")
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * len(shape)
    if len(fills) != len(shape) or any(np.ndim(f) for f in fills if typeof_value(f) is not None):
        raise ShapeError(f"nonzero: fill_value={fill_value!r}", instead=f"a number, or a tuple of {len(shape)}")
    mask = ravel(as_bool(a))
    size = known_count("nonzero", mask) if size is None else integer("nonzero", "size", size)
    # -1 marks entries beyond the nonzero elements, each of which has a fill value of its own axis.
    flat = first_places(mask, size, np.int32(-1))
    missing = less(flat, 0)
    out = []
    for i, (n, fill) in enumerate(zip(shape, fills, strict=True)):
        # Axes without elements must not divide by 0.
        below = value_of(max_dim(math.prod(shape[i + 1 :]), 1))
        indices = select_elements(missing, fill, remainder(flat // below, value_of(max_dim(n, 1))))
        out.append(to_dtype(indices, type_of(indices).dtype))  # no weak type, of floats either
    return tuple(out)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> Array:
    """The indices of the nonzero elements of the flattened `a` (as ``numpy.flatnonzero``).

    Args:
      a: array of any dtype and shape.
      size: number of indices to return; None returns all, which depends on the values of `a`: under `jit`, `size` is
        required.
      fill_value: index that pads the result to `size`, a number; None is 0.

    Returns:
      A vector of integers, of length `size`.

    Raises:
      ConcretizationTypeError: `a` is traced and `size` is not given.

    >>> jnp.flatnonzero(jnp.array([[0, 5], [6, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(check_one("flatnonzero", a)), size=size, fill_value=fill_value)[0]


@docs_from(flatnonzero)
def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
) -> Array:
    """The indices of the nonzero elements of `a`, one element in each row (as ``numpy.argwhere``).

    Args:
      fill_value: index that pads the result to `size`: a number, or a tuple with a number for each axis; None is 0.

    Returns:
      A matrix of integers, with `size` rows and a column for each axis of `a`.

    >>> jnp.argwhere(jnp.array([[0, 5], [6, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    a = check_one("argwhere", a)
    indices = transpose(stack(nonzero(atleast_1d(a), size=size, fill_value=fill_value)))
    return indices if type_of(a).shape else indices[:, :0]


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices of `a` along `axis`, or the elements of the flattened `a`, where the vector `condition` is true (as
    ``numpy.compress``).

    Args:
      condition: vector of bools; numbers other than 0 are treated as True. It may be shorter than the axis; it may be
        longer if it is False beyond the end of the axis or if `size` is given.
      a: array of any dtype.
      axis: axis along which slices are selected; None selects elements of the flattened array.
      size: number of slices in the result, at most the length of the axis; None returns all that are selected. Required
        under `jit`.
      fill_value: number that pads the result if fewer than `size` slices are selected.
      out: not supported, must be None: arrays cannot be changed in place.

    Returns:
      An array of the dtype of `a`, of length `size` along `axis`; a vector where `axis` is None.

    Raises:
      ShapeError: `condition` is not a vector, or it is True beyond the end of the axis.
      OptionError: `size` is negative or more than the length of the axis.
      ConcretizationTypeError: `condition` is traced and `size` is not given.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([4, 5, 6]))
    Array([4, 6], dtype=int32)
    """
    condition, a = check("compress", condition, a)
    refuse_out("compress", out)
    if type_of(condition).ndim != 1:
        raise ShapeError(f"compress: condition must be a vector, got {type_of(condition).short}")
    a, at = flat_or_along("compress", a, axis)
    n = type_of(a).shape[at]
    if size is None and not isinstance(condition, Tracer) and np.asarray(condition)[n:].any():
        raise ShapeError(f"compress: condition is true beyond the {n} elements of {type_of(a).short}")
    mask = as_bool(condition)[:n]
    n = min(n, type_of(mask).shape[0])
    if size is None:
        size = known_count("compress", mask)
    else:
        size = integer("compress", "size", size)
        if not 0 <= size <= n:
            raise OptionError(f"compress: size={size} for {n} elements", instead=f"a size from 0 to {n}")
        a = to_dtype(a, type_of(a).dtype)  # strongly typed, as in JAX, where the fill value is
    # `take` fills what is beyond the axis.
    beyond = to_dtype(value_of(type_of(a).shape[at]), np.dtype(np.int32))
    return take(a, first_places(mask, size, beyond), at, fill_value=fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of `arr` where `condition` is not zero, both flattened (as ``numpy.extract``).

    Args:
      condition: array of as many elements as `arr`.
      arr: array of any dtype and shape.
      size: number of elements in the result; None returns all that are selected. Required under `jit`.
      fill_value: number that pads the result if fewer than `size` elements are selected.

    Returns:
      A vector of the dtype of `arr`, of length `size`.

    Raises:
      ConcretizationTypeError: `condition` is traced and `size` is not given.
      OptionError: `size` is negative or more than the number of elements.

    >>> jnp.extract(jnp.array([1, 0, 1]), jnp.array([4, 5, 6]))
    Array([4, 6], dtype=int32)
    """
    condition, arr = check("extract", condition, arr)
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def _not_in_place(function: str, inplace: bool) -> None:
    if inplace:
        raise ArgumentError(f"{function}: arrays do not change", instead=f"x = {function}(x, ..., inplace=False)")


def _repeated(values: Any, count: int) -> Any:
    """The first `count` of the flattened values, repeated from the beginning if there are fewer."""
    values = ravel(values)
    return take(values, np.arange(count, dtype=np.int32) % type_of(values).shape[0])


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """`arr` with the elements where `mask` is not zero replaced by `vals`, in order (as ``numpy.place``).

    Args:
      arr: array of any dtype and shape.
      mask: array with as many elements as `arr`.
      vals: values that replace the elements, flattened; repeated if there are too few. At least one.
      inplace: must be False, because arrays cannot be changed in place.

    Returns:
      A new array of the shape and dtype of `arr`.

    Raises:
      ArgumentError: `inplace` is true.
      ShapeError: `mask` and `arr` differ in their numbers of elements, or `vals` is empty.

    >>> jnp.place(jnp.array([1, 2, 3]), jnp.array([True, False, True]), jnp.array([7, 8]), inplace=False)
    Array([7, 2, 8], dtype=int32)
    """
    arr, mask, vals = check("place", arr, mask, vals)
    _not_in_place("place", inplace)
    shape, count = type_of(arr).shape, type_of(arr).size
    if type_of(mask).size != count:
        raise ShapeError(f"place: {type_of(mask).short} as mask of {type_of(arr).short}")
    if not type_of(vals).size:
        raise ShapeError("place: no values to take from", shapes=[type_of(vals).shape])
    # Missing positions are out of bounds, where updates are dropped.
    positions = first_places(ravel(as_bool(mask)), count, to_dtype(value_of(count), np.dtype(np.int32)))
    return reshape(At(ravel(arr))[positions].set(_repeated(vals, count), mode="drop"), shape)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """`a` with the elements at the flat indices `ind` replaced by `v` (as ``numpy.put``).

    Args:
      a: array of any dtype and shape.
      ind: array of integers: indices into the flattened `a`.
      v: values to put there, flattened; repeated if there are too few.
      mode: treatment of out-of-bounds indices: 'clip' moves them to the nearest end, 'wrap' wraps them around; with
        None, negative ones count from the end, and those still out of bounds are moved to the nearest end.
      inplace: must be False, because arrays cannot be changed in place.

    Returns:
      A new array of the shape and dtype of `a`.

    Raises:
      ArgumentError: `inplace` is true.
      UnsupportedError: `mode` is 'raise'.
      OptionError: `mode` is not one of the listed names.

    >>> jnp.put(jnp.array([1, 2, 3]), jnp.array([0, -1]), jnp.array([7, 8]), inplace=False)
    Array([7, 2, 8], dtype=int32)
    """
    a, ind, v = check("put", a, ind, v)
    _not_in_place("put", inplace)
    if mode == "raise":
        raise UnsupportedError("put: mode='raise' is not supported", instead="mode='clip' or 'wrap'")
    if mode not in (None, "clip", "wrap"):
        raise OptionError(f"put: mode={mode!r}", instead="None, 'clip' or 'wrap'")
    if mode is None:
        check_positions("put", a, ind, None, PUT)
    shape, count = type_of(a).shape, type_of(a).size
    if not type_of(ind).size or not type_of(v).size:
        return reshape(a, shape)
    ind = ravel(ind)
    if mode == "wrap":
        ind = remainder(ind, max(count, 1))
    else:
        # The default of JAX is "clip", but with negative positions counted from the end.
        ind = select_elements(less(ind, 0), ind + count, ind) if mode is None else ind
        ind = clip(ind, 0, max(count - 1, 0))
    values: Any = v
    values = literal_of(values, type_of(a).dtype) if type(values) is int else values
    return reshape(At(ravel(a))[ind].set(_repeated(values, type_of(ind).size), mode="drop"), shape)


@docs_from(place)
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """`arr` with the elements that `take_along_axis` reads replaced by `values` (as ``numpy.put_along_axis``).

    Args:
      arr: array of any dtype.
      indices: array of integers: indices along `axis`, with as many axes as `arr`; the other axes are broadcast.
      values: values to put there: an array that broadcasts to `indices`, converted to the dtype of `arr`.
      axis: axis along which values are put; None flattens `arr` and `indices`.
      mode: treatment of out-of-bounds indices, as for ``x.at[...].set``; with None their values are dropped.

    Raises:
      ShapeError: `indices` and `arr` differ in their numbers of axes.

    >>> jnp.put_along_axis(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [0]]), 9, 1, inplace=False)
    Array([[1, 9],
           [9, 4]], dtype=int32)
    """
    _not_in_place("put_along_axis", inplace)
    if mode is None:
        check_positions("put_along_axis", arr, indices, axis, WRITE)
    return _put_along_axis(arr, indices, values, axis, mode)


@functools.partial(jit, inline=True, static_argnames=("axis", "mode"))
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None, mode: str | None) -> Any:
    arr, indices, values = check("put_along_axis", arr, indices, values)
    shape = type_of(arr).shape
    flat = ravel(arr) if axis is None else arr
    if axis is None:
        indices, axis = ravel(indices), 0
    index = grid_index("put_along_axis", flat, indices, axis)
    return reshape(At(flat)[index].set(values, mode=mode), shape)
