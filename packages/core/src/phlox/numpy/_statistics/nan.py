"""Reductions that ignore nan, for data with missing values.

Each replaces nan by a neutral element and reduces as usual; counts are numbers of the other elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._ir import dtypes
from ..._operands.checks import check_one, refuse_out, type_of
from ..._operands.promotion import to_dtype
from ..._operands.short_floats import summing_dtype
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.binary import divide, logical_and
from .._elementwise.choose import where as select_elements
from .._elementwise.unary import is_kind, isnan, logical_not
from . import moments, reductions as r

#: the neutral element of an extremum for a dtype: `dtypes.lowest` or `dtypes.highest`
_Limit = Callable[[Any], Any]


def _replaced(a: Any, value: Any) -> Any:
    """`a` with nan replaced by `value`, in its dtype."""
    # By a selection, so that nan stays out of the derivatives too
    return select_elements(isnan(a), to_dtype(value, type_of(a).dtype), a) if is_kind(a, "fc") else a


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
@docs_from(r.sum)
def nansum(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum over `axis` of the elements of `a` that are not nan (as ``numpy.nansum``).

    Returns:
      An array without the axes summed over, of the dtype that `sum` gives; 0 where all elements are nan.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    a = check_one("nansum", a)
    return r.sum(_replaced(a, 0), axis, dtype, out, keepdims, initial, where)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
@docs_from(r.prod)
def nanprod(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product over `axis` of the elements of `a` that are not nan (as ``numpy.nanprod``).

    Returns:
      An array without the axes multiplied over, of the dtype that `prod` gives; 1 where all elements are nan.

    >>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array(6., dtype=float32)
    """
    a = check_one("nanprod", a)
    return r.prod(_replaced(a, 1), axis, dtype, out, keepdims, initial, where)


def _extremum(
    reduce: Callable[..., Any], worst: _Limit, a: Any, axis: r.Axis, keepdims: bool, initial: Any, where: Any
) -> Any:
    """The largest or smallest element that is not nan; nan if all are nan and there is no `initial`."""
    if not is_kind(a, "fc"):
        return reduce(a, axis, None, keepdims, initial, where)
    out = reduce(_replaced(a, worst(type_of(a).dtype)), axis, None, keepdims, initial, where)
    if initial is not None:
        return out
    # Where all elements are nan the reduction has seen the neutral element alone.
    nothing = r.all(isnan(a), axis, keepdims=keepdims)
    return select_elements(nothing, to_dtype(np.nan, type_of(out).dtype), out)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
@docs_from(r.max)
def nanmax(
    a: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest over `axis` of the elements of `a` that are not nan (as ``numpy.nanmax``).

    Args:
      where: array of bools that broadcasts to `a`, True for the elements to include; requires `initial`.

    Returns:
      An array without the reduced axes, of the dtype of `a`; nan where all elements are nan, unless `initial` is given.

    Raises:
      ShapeError: there are no elements to reduce, or `where` is given, without `initial`.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    a = check_one("nanmax", a)
    refuse_out("nanmax", out)
    return _extremum(r.max, dtypes.lowest, a, axis, keepdims, initial, where)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
@docs_from(nanmax)
def nanmin(
    a: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest over `axis` of the elements of `a` that are not nan (as ``numpy.nanmin``).

    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1., dtype=float32)
    """
    a = check_one("nanmin", a)
    refuse_out("nanmin", out)
    return _extremum(r.min, dtypes.highest, a, axis, keepdims, initial, where)


def _counted(a: Any, axis: r.Axis, keepdims: bool, where: Any, dtype: Any) -> Any:
    """The number of elements that are not nan."""
    return to_dtype(r.sum(logical_not(isnan(a)), axis, np.int32, keepdims=keepdims, where=where), dtype)


def _present(function: str, a: Any, where: Any) -> Any:
    """`where` without the elements that are nan."""
    where = r.check_mask(function, where)
    if not is_kind(a, "fc"):
        return where
    return logical_not(isnan(a)) if where is None else logical_and(where, logical_not(isnan(a)))


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
@docs_from(moments.mean)
def nanmean(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean over `axis` of the elements of `a` that are not nan (as ``numpy.nanmean``).

    Args:
      dtype: dtype of the accumulator and of the result; None is the dtype of `a`, or a float dtype for integers and
        bools; 16-bit floats are summed in float32.
      where: array of bools that broadcasts to `a`, True for the elements to include; None includes all.

    Returns:
      An array without the reduced axes; nan where all elements are nan.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    a = check_one("nanmean", a)
    refuse_out("nanmean", out)
    if not is_kind(a, "fc"):
        return moments.mean(a, axis, dtype, None, keepdims, where=where)
    out_dtype = type_of(a).dtype if dtype is None else dtypes.user_dtype(dtype, "nanmean")
    computed = summing_dtype(out_dtype) if dtype is None else out_dtype
    total = nansum(a, axis, computed, keepdims=keepdims, where=where)
    return to_dtype(divide(total, _counted(a, axis, keepdims, where, computed)), out_dtype)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
@docs_from(moments.mean)
def nanvar(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance over `axis` of the elements of `a` that are not nan (as ``numpy.nanvar``).

    The sum of squared distances from the mean is divided by the number of elements that are not nan, less `ddof`.

    Args:
      dtype: dtype of the computation and of the result; None is the dtype of `a`, or a float dtype for integers and
        bools; 16-bit floats are computed in float32.
      ddof: delta degrees of freedom: the sum of squares is divided by the number of elements minus `ddof`.
      where: array of bools that broadcasts to `a`, True for the elements to include; None includes all.
      mean: precomputed mean, an array that broadcasts against `a`; None computes the mean.

    Returns:
      An array without the reduced axes, real unless `dtype` is complex; nan where the divisor is not positive.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    a = check_one("nanvar", a)
    refuse_out("nanvar", out)
    variance = moments.variance(
        "nanvar", a, axis, dtype, ddof, keepdims, _present("nanvar", a, where), mean, root=False
    )
    return variance if dtype is None else to_dtype(variance, dtypes.user_dtype(dtype, "nanvar"))


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
@docs_from(nanvar)
def nanstd(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation over `axis` of the elements of `a` that are not nan (as ``numpy.nanstd``).

    Args:
      dtype: float or complex dtype of the computation and of the result; None chooses it by `a`, as for `var`.

    Returns:
      An array without the reduced axes: the square root of `nanvar`.

    Raises:
      DtypeError: `dtype` is neither a float nor complex.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    a = check_one("nanstd", a)
    refuse_out("nanstd", out)
    where = _present("nanstd", a, where)
    return moments.variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean, root=True)


def _position(find: Callable[..., Any], worst: _Limit, a: Any, axis: int | None, keepdims: bool) -> Any:
    """The position of the extremum, or -1 if all elements are nan."""
    if not is_kind(a, "fc"):
        return find(a, axis, None, keepdims)
    positions = find(_replaced(a, worst(type_of(a).dtype)), axis, None, keepdims)
    # -1 as in JAX; NumPy raises.
    return select_elements(r.all(isnan(a), axis, keepdims=keepdims), to_dtype(-1, type_of(positions).dtype), positions)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
@docs_from(r.argmax)
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first maximum along `axis`, nan left out (as ``numpy.nanargmax``).

    Returns:
      An array of integers without the axis searched; -1 where all elements are nan, for which NumPy raises.

    Raises:
      ShapeError: there are no elements to search.

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    a = check_one("nanargmax", a)
    refuse_out("nanargmax", out)
    return _position(r.argmax, dtypes.lowest, a, axis, bool(keepdims))


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
@docs_from(nanargmax)
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Index of the first minimum along `axis`, nan left out (as ``numpy.nanargmin``).

    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(0, dtype=int32)
    """
    a = check_one("nanargmin", a)
    refuse_out("nanargmin", out)
    return _position(r.argmin, dtypes.highest, a, axis, bool(keepdims))


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out"))
@docs_from(r.cumsum)
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Cumulative sums in which nan counts as 0 (as ``numpy.nancumsum``).

    Returns:
      An array of the shape and dtype that `cumsum` gives.

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    a = check_one("nancumsum", a)
    return r.cumsum(_replaced(a, 0), axis, dtype, out)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out"))
@docs_from(r.cumprod)
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Cumulative products in which nan counts as 1 (as ``numpy.nancumprod``).

    Returns:
      An array of the shape and dtype that `cumprod` gives.

    >>> jnp.nancumprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array([3., 3., 6.], dtype=float32)
    """
    a = check_one("nancumprod", a)
    return r.cumprod(_replaced(a, 1), axis, dtype, out)
