"""Reductions over axes: sums, extrema, logical ones, positions of extrema, cumulative sums."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, ShapeError
from ..._base.wrapping import renamed
from ..._ir import dtypes
from ..._operands.checks import canonical_axes, canonical_axis, check, check_one, hashable, refuse_out, type_of
from ..._operands.integer_overflow import check_range
from ..._operands.promotion import to_dtype
from ..._operands.short_floats import summing_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ..._ops.reductions import reduce as ops, running
from ..._ops.structure.shape import broadcast_in_dim
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.choose import where as select_elements
from .._elementwise.unary import as_bool, is_kind
from .._manipulation.shapes import ravel

Axis = int | Sequence[int] | None
STATIC_OPTIONS = ("axis", "dtype", "keepdims")


def restore_axes(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """`x` with axes of length one at the reduced `axes`, if `keepdims`."""
    if not keepdims or not axes:
        return x
    shape = list(type_of(x).shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    remaining = tuple(i for i in range(len(shape)) if i not in axes)
    return broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=remaining)


def check_mask(function: str, mask: Any) -> Any:
    """The argument `where`, an array of bools or None. Raises `DtypeError` for other dtypes."""
    if mask is None:
        return None
    mask = check_one("where", mask)
    if type_of(mask).dtype != dtypes.bool_:
        raise DtypeError(
            f"jnp.{function}: where must be None or a boolean array, got {type_of(mask).short}", instead="x != 0"
        )
    return mask


def apply_mask(function: str, a: Any, mask: Any, neutral: Any) -> Any:
    """`a` with the neutral element where `mask` is false."""
    mask = check_mask(function, mask)
    return a if mask is None else select_elements(mask, a, to_dtype(neutral, type_of(a).dtype))


def accumulator(dtype: Any) -> Any:
    """The dtype in which NumPy sums: the default integers for bools and smaller integers."""
    kind = dtypes.kind(dtype)
    default = dtypes.canonical(dtypes.uint64 if kind == "u" else dtypes.int64)
    return default if kind == "b" or (kind in "iu" and dtypes.bits(dtype) < dtypes.bits(default)) else dtype


def _total(
    name: str,
    reduce: Callable[..., Any],
    reduce_bools: Callable[..., Any],
    combine: Callable[..., Any],
    combine_bools: Callable[..., Any],
    neutral: int,
) -> Callable[..., Any]:
    """The sum or product of an array."""

    def total(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any = None, where: Any = None) -> Any:
        axes = canonical_axes(axis, type_of(a).ndim, name)
        result = accumulator(type_of(a).dtype) if dtype is None else dtype
        a = apply_mask(name, to_dtype(a, summing_dtype(result) if dtype is None else dtype), where, neutral)
        # In the dtype bool, a sum is a logical or and a product is an and, as in NumPy.
        truth = type_of(a).dtype == dtypes.bool_
        # With checks="strict", sums of integers that wrap around raise when the program runs.
        check_range(name, functools.partial(getattr(np, name), axis=axes), type_of(a).dtype, a)
        out = (reduce_bools if truth else reduce)(a, axes=axes)
        if initial is not None:
            out = (combine_bools if truth else combine)(_initial(name, initial, type_of(out).dtype), out)
        return to_dtype(restore_axes(out, axes, keepdims), result)

    # The name of the call in jaxprs and in profiles
    total.__name__ = total.__qualname__ = name
    return jit(total, inline=True, static_argnames=STATIC_OPTIONS)


# Unlike those of `sum`, a dtype of 64 bits is taken as it is: it is that of an operand, and not one that a user named.
sum_as = _total("sum", ops.reduce_sum, ops.reduce_or, e.add, logic.or_, 0)
_prod = _total("prod", ops.reduce_prod, ops.reduce_and, e.mul, logic.and_, 1)


def _initial(function: str, initial: Any, dtype: Any) -> Any:
    initial = check_one(function, initial)
    if type_of(initial).shape:
        raise ShapeError(f"{function}: initial value must be a scalar. Got array of shape {type_of(initial).shape}")
    return to_dtype(initial, dtype)


def _result_dtype(function: str, a: Any, dtype: Any, out: None, promote_integers: bool) -> Any:
    """The dtype of a sum or product; None if it is the default. Raises for the unsupported ``out=``."""
    refuse_out(function, out)
    if dtype is not None:
        return dtypes.user_dtype(dtype, function)
    dtype = type_of(a).dtype
    return dtype if not promote_integers and dtypes.kind(dtype) in "iu" else None


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of the elements of `a` over `axis`, by default over all (as ``numpy.sum``).

    Args:
      a: array of any dtype and shape.
      axis: axis or axes to reduce over; negative numbers count from the last axis; None reduces over all axes.
      dtype: dtype of the accumulator and of the result; None sums bools and small integers in int32 or uint32 (int64 or
        uint64 in x64 mode), and 16-bit floats in float32.
      out: not supported, must be None: arrays cannot be changed in place.
      keepdims: True keeps the reduced axes, with length one.
      initial: initial value of the sum, a number; None is 0.
      where: array of bools that broadcasts to `a`, True for the elements to include; None includes all.
      promote_integers: False keeps the dtype of small integers, where `dtype` is None.

    Returns:
      An array without the axes summed over, of `dtype`; by default of the dtype of `a`, but wider for bools and small
      integers.

    Raises:
      DtypeError: `where` is not of bools.
      ShapeError: `initial` has axes.

    >>> jnp.sum(jnp.ones((2, 3)), axis=1)
    Array([3., 3.], dtype=float32)
    """
    a = check_one("sum", a)
    if out is not None or dtype is not None or not promote_integers:
        dtype = _result_dtype("sum", a, dtype, out, promote_integers)
    if axis is not None:
        axis = hashable(axis)
    if initial is None and where is None:  # a jitted call with one array takes the fastest path
        return sum_as(a, axis, dtype, keepdims)
    return sum_as(a, axis, dtype, keepdims, initial, where)


@docs_from(sum)
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of the elements of `a` over `axis`, by default over all (as ``numpy.prod``).

    Args:
      dtype: dtype of the accumulator and of the result; by default chosen as for `sum`.
      initial: initial value of the product, a number; None is 1.

    Returns:
      An array without the axes multiplied over, of the dtype that `sum` gives.

    >>> jnp.prod(jnp.array([2.0, 3.0]))
    Array(6., dtype=float32)
    """
    a = check_one("prod", a)
    if out is not None or dtype is not None or not promote_integers:
        dtype = _result_dtype("prod", a, dtype, out, promote_integers)
    if axis is not None:
        axis = hashable(axis)
    if initial is None and where is None:  # a jitted call with one array takes the fastest path
        return _prod(a, axis, dtype, keepdims)
    return _prod(a, axis, dtype, keepdims, initial, where)


# --- extrema and logical reductions ---------------------------------------------------------------------


def _check_elements(function: str, aval: Any, axes: tuple[int, ...], instead: str) -> None:
    """Raises `ShapeError` if there are no elements along the axes."""
    if math.prod(aval.shape[i] for i in axes) == 0:
        raise ShapeError(f"{function} of an empty array of type {aval.short}", instead=instead, shapes=[aval.shape])


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "largest"))
def _extremum(a: Any, axis: Any, keepdims: bool, largest: bool, initial: Any = None, where: Any = None) -> Any:
    name = "max" if largest else "min"
    aval = type_of(a)
    a = to_dtype(a, aval.dtype)
    axes = canonical_axes(axis, aval.ndim, name)
    if initial is None:
        _check_elements(name, aval, axes, "initial=...")
        if where is not None:
            raise ShapeError(f"{name} with where= needs initial=, the value of an empty selection")
    reduce = ops.reduce_max if largest else ops.reduce_min
    neutral = to_dtype((dtypes.lowest if largest else dtypes.highest)(aval.dtype), aval.dtype)
    out = reduce(apply_mask(name, a, where, neutral), axes=axes)
    if initial is not None:
        first = _initial(name, initial, aval.dtype)
        if is_kind(initial, "f") and is_kind(a, "f") and not dtypes.has_infinity(aval.dtype):
            # Infinity becomes nan in this dtype. As the initial value of an extremum it is neutral in one direction.
            infinity = to_dtype(-np.inf if largest else np.inf, type_of(initial).dtype)
            first = select_elements(logic.eq(to_dtype(initial, type_of(initial).dtype), infinity), neutral, first)
        out = (e.max_ if largest else e.min_)(first, out)
    return to_dtype(restore_axes(out, axes, keepdims), aval.dtype)


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element of `a` over `axis`; nan if any element is nan (as ``numpy.max``).

    Elements that share the maximum share its derivative equally.

    Args:
      a: array of any dtype; complex numbers are ordered by their real, then their imaginary parts.
      axis: axis or axes to reduce over; None reduces over all axes.
      out: not supported, must be None: arrays cannot be changed in place.
      keepdims: True keeps the reduced axes, with length one.
      initial: number included in every comparison; required for axes of length 0 and with `where`.
      where: array of bools that broadcasts to `a`, True for the elements to include; None includes all.

    Returns:
      An array without the reduced axes, of the dtype of `a`.

    Raises:
      ShapeError: there are no elements to reduce, or `where` is given, without `initial`; `initial` has axes.
      DtypeError: `where` is not of bools.

    >>> jnp.max(jnp.array([1, 3, 2]))
    Array(3, dtype=int32)
    """
    a = check_one("max", a)
    if out is not None:
        refuse_out("max", out)
    if axis is not None:
        axis = hashable(axis)
    if initial is None and where is None:
        return _extremum(a, axis, keepdims, True)
    return _extremum(a, axis, keepdims, True, initial, where)


@docs_from(max)
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element of `a` over `axis`; nan if any element is nan (as ``numpy.min``).

    Elements that share the minimum share its derivative equally.

    >>> jnp.min(jnp.array([1, 3, 2]))
    Array(1, dtype=int32)
    """
    a = check_one("min", a)
    if out is not None:
        refuse_out("min", out)
    if axis is not None:
        axis = hashable(axis)
    if initial is None and where is None:
        return _extremum(a, axis, keepdims, False)
    return _extremum(a, axis, keepdims, False, initial, where)


amax, amin = renamed(max, "amax"), renamed(min, "amin")


@docs_from(max)
def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """The smallest and the largest element of `a` over `axis`; nan if any element is nan (as ``numpy.minmax``).

    Args:
      initial: number included in every comparison, or a pair of numbers: for the minimum and for the maximum.

    Returns:
      The pair (minimum, maximum) of arrays without the reduced axes, of the dtype of `a`.

    >>> jnp.minmax(jnp.array([1, 3, 2]))
    (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    a = check_one("minmax", a)
    refuse_out("minmax", out)
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    axis = hashable(axis)
    return _extremum(a, axis, keepdims, False, low, where), _extremum(a, axis, keepdims, True, high, where)


@docs_from(max)
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest minus the smallest element of `a` over `axis` (as ``numpy.ptp``).

    Args:
      a: array of numbers, not bools.

    Raises:
      ShapeError: there are no elements.
      DtypeError: `a` is of dtype bool.

    >>> jnp.ptp(jnp.array([1, 3, 2]))
    Array(2, dtype=int32)
    """
    refuse_out("ptp", out)
    return _range(check_one("ptp", a), axis=hashable(axis), keepdims=keepdims)


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims"))
def _range(a: Any, axis: Any, keepdims: bool) -> Any:
    _check_elements("ptp", type_of(a), canonical_axes(axis, type_of(a).ndim, "ptp"), "an array with elements")
    return e.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def _logical(name: str, reduce: Callable[..., Any], neutral: bool) -> Callable[..., Any]:
    """The conjunction or disjunction of the elements of an array."""

    def logical(a: Any, axis: Any, keepdims: bool, where: Any) -> Any:
        axes = canonical_axes(axis, type_of(a).ndim, name)
        out = reduce(apply_mask(name, as_bool(a), where, neutral), axes=axes)
        return to_dtype(restore_axes(out, axes, keepdims), dtypes.bool_)

    logical.__name__ = logical.__qualname__ = name
    return jit(logical, inline=True, static_argnames=("axis", "keepdims"))


_all, _any = _logical("all", ops.reduce_and, True), _logical("any", ops.reduce_or, False)


def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether all elements of `a` over `axis` are true (as ``numpy.all``).

    Args:
      a: array of any dtype; numbers other than 0 are treated as True.
      axis: axis or axes to reduce over; None reduces over all axes.
      out: not supported, must be None: arrays cannot be changed in place.
      keepdims: True keeps the reduced axes, with length one.
      where: array of bools that broadcasts to `a`, True for the elements to include; None includes all.

    Returns:
      An array of bools without the reduced axes; True where there are no elements.

    Raises:
      DtypeError: `where` is not of bools.

    >>> jnp.all(jnp.array([True, False]))
    Array(False, dtype=bool)
    """
    a = check_one("all", a)
    if out is not None:
        refuse_out("all", out)
    return _all(a, hashable(axis), keepdims, where)


@docs_from(all)
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether any element of `a` over `axis` is true (as ``numpy.any``).

    Returns:
      An array of bools without the reduced axes; False where there are no elements.

    >>> jnp.any(jnp.array([True, False]))
    Array(True, dtype=bool)
    """
    a = check_one("any", a)
    if out is not None:
        refuse_out("any", out)
    return _any(a, hashable(axis), keepdims, where)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of nonzero elements of `a` over `axis` (as ``numpy.count_nonzero``).

    Args:
      a: array of any dtype and shape.
      axis: axis or axes to reduce over; None reduces over all axes.
      keepdims: True keeps the reduced axes, with length one.

    Returns:
      An array of int32 (int64 in x64 mode) without the reduced axes.

    >>> jnp.count_nonzero(jnp.array([0, 1, 2]))
    Array(2, dtype=int32)
    """
    return _count_nonzero(check_one("count_nonzero", a), axis=hashable(axis), keepdims=keepdims)


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims"))
def _count_nonzero(a: Any, axis: Any, keepdims: bool) -> Any:
    return sum(as_bool(a), axis, keepdims=keepdims)


# --- positions of extrema, cumulative sums --------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "largest"))
def _position(a: Any, axis: int | None, keepdims: bool, largest: bool) -> Any:
    name, rank = "argmax" if largest else "argmin", type_of(a).ndim
    if axis is None:
        flat, at, axes = ravel(a), 0, tuple(range(rank))
    else:
        at = canonical_axis(axis, rank, name)
        flat, axes = a, (at,)
    if type_of(flat).shape[at] == 0:
        raise ShapeError(f"attempt to get {name} of an empty sequence: {type_of(a).short}", shapes=[type_of(a).shape])
    find = ops.argmax if largest else ops.argmin
    index = find(flat, axes=(at,), index_dtype=dtypes.canonical(dtypes.int64))
    return restore_axes(index, axes, keepdims)


def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first maximum along `axis`, or of the first nan if there is one (as ``numpy.argmax``).

    Args:
      a: array of any dtype; complex numbers are ordered by their real, then their imaginary parts.
      axis: axis along which to search; None searches the flattened array.
      out: not supported, must be None: arrays cannot be changed in place.
      keepdims: True keeps the searched axis (all axes if `axis` is None), with length one.

    Returns:
      An array of int32 (int64 in x64 mode) without the axis.

    Raises:
      ShapeError: there are no elements.

    >>> jnp.argmax(jnp.array([1, 3, 2]))
    Array(1, dtype=int32)
    """
    if out is not None:
        refuse_out("argmax", out)
    return _position(check("argmax", a)[0], axis=axis, keepdims=bool(keepdims), largest=True)


@docs_from(argmax)
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first minimum along `axis`, or of the first nan if there is one (as ``numpy.argmin``).

    >>> jnp.argmin(jnp.array([3, 1, 2]))
    Array(1, dtype=int32)
    """
    if out is not None:
        refuse_out("argmin", out)
    return _position(check("argmin", a)[0], axis=axis, keepdims=bool(keepdims), largest=False)


def _running(a: Any, axis: int | None, dtype: Any, product: bool) -> Any:
    if axis is None or not type_of(a).shape:
        a, axis = ravel(a), axis or 0
    result = type_of(a).dtype if dtype is None else dtype
    if dtype is None and result == dtypes.bool_:
        result = accumulator(result)
    if result == dtypes.bool_:
        a = as_bool(a)  # as numbers, 1 and -1 would cancel in the sum
    small = dtypes.kind(result) == "f" and dtypes.bits(result) < 16
    a = to_dtype(a, accumulator(result) if result == dtypes.bool_ else dtypes.float32 if small else result)
    name = "cumprod" if product else "cumsum"
    at = canonical_axis(axis, type_of(a).ndim, name)
    check_range(name, functools.partial(getattr(np, name), axis=at), type_of(a).dtype, a)
    return to_dtype((running.cumprod if product else running.cumsum)(a, axis=at, reverse=False), result)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out"))
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Cumulative sums along `axis`, or of the flattened array (as ``numpy.cumsum``).

    Args:
      a: array of any dtype.
      axis: axis along which sums accumulate; None flattens `a`.
      dtype: dtype of the accumulator and of the result; None is the dtype of `a`, or int32 (int64 in x64 mode) for
        bools.
      out: not supported, must be None: arrays cannot be changed in place.

    Returns:
      An array of the shape of `a`, or a vector where `axis` is None.

    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    refuse_out("cumsum", out)
    result = dtypes.optional_dtype(dtype, "cumsum")
    return _running(check("cumsum", a)[0], axis=axis, dtype=result, product=False)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out"))
@docs_from(cumsum)
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Cumulative products along `axis`, or of the flattened array (as ``numpy.cumprod``).

    Args:
      axis: axis along which products accumulate; None flattens `a`.

    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    refuse_out("cumprod", out)
    result = dtypes.optional_dtype(dtype, "cumprod")
    return _running(check("cumprod", a)[0], axis=axis, dtype=result, product=True)
