"""Reductions that leave nan out: in data with gaps a nan says that nothing was measured there.

Each puts something neutral in the place of nan and reduces as usual; counts are of the elements that remain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, type_of
from ..._operands.promotion import to_dtype
from .._elementwise.binary import divide, less_equal, multiply, subtract
from .._elementwise.choose import where as choose
from .._elementwise.unary import conj, is_kind, isnan, logical_not, real, sqrt
from . import reductions as r

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike, DTypeLike


def _replaced(a: Any, value: Any) -> Any:
    """`a` with a number of its dtype in the place of nan."""
    return choose(isnan(a), to_dtype(value, type_of(a).dtype), a) if is_kind(a, "fc") else a


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
def nansum(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of the elements of `a` that are not nan over `axis` (as ``numpy.nansum``). Arguments as for `sum`.

    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    a = check_one("nansum", a)
    return r.sum(_replaced(a, 0), axis, dtype, out, keepdims, initial, where)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
def nanprod(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of the elements of `a` that are not nan over `axis` (as ``numpy.nanprod``). Arguments as for `sum`.

    >>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array(6., dtype=float32)
    """
    a = check_one("nanprod", a)
    return r.prod(_replaced(a, 1), axis, dtype, out, keepdims, initial, where)


def _extremum(
    reduce: Callable[..., Any], worst: float, a: Any, axis: r.Axis, keepdims: bool, initial: Any, where: Any
) -> Any:
    """The largest or smallest element, nan only where there is nothing else and no number to begin with."""
    if not is_kind(a, "fc"):
        return reduce(a, axis, None, keepdims, initial, where)
    found = reduce(_replaced(a, worst), axis, None, keepdims, initial, where)
    if initial is not None:
        return found
    nothing = r.all(isnan(a), axis, keepdims=keepdims)
    return choose(nothing, to_dtype(np.nan, type_of(found).dtype), found)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
def nanmax(
    a: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element of `a` that is not nan over `axis` (as ``numpy.nanmax``); nan where all are.

    `where` selects the elements that take part and needs `initial`, as for `max`.

    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    a = check_one("nanmax", a)
    r.no_out("nanmax", out)
    return _extremum(r.max, -np.inf, a, axis, keepdims, initial, where)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
def nanmin(
    a: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element of `a` that is not nan over `axis` (as ``numpy.nanmin``); nan where all are.

    `where` selects the elements that take part and needs `initial`, as for `min`.

    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1., dtype=float32)
    """
    a = check_one("nanmin", a)
    r.no_out("nanmin", out)
    return _extremum(r.min, np.inf, a, axis, keepdims, initial, where)


def _counted(a: Any, axis: r.Axis, keepdims: bool, where: Any, dtype: Any) -> Any:
    """How many elements are not nan."""
    return to_dtype(r.sum(logical_not(isnan(a)), axis, np.int32, keepdims=keepdims, where=where), dtype)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: r.Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements of `a` that are not nan over `axis` (as ``numpy.nanmean``); nan where all are.

    The result has `dtype`, by default that of `a`, or a float for integers and bools.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    a = check_one("nanmean", a)
    r.no_out("nanmean", out)
    if not is_kind(a, "fc"):
        return r.mean(a, axis, dtype, None, keepdims, where=where)
    wanted = type_of(a).dtype if dtype is None else dtypes.user_dtype(dtype, "nanmean")
    total = nansum(a, axis, wanted, keepdims=keepdims, where=where)
    return to_dtype(divide(total, _counted(a, axis, keepdims, where, wanted)), wanted)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
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
    """The variance of the elements of `a` that are not nan over `axis` (as ``numpy.nanvar``).

    The sum of squared distances from the mean is divided by the number of elements less `ddof`; where nothing is
    left to divide by, the result is nan. A `mean` that is known already, of a shape that broadcasts with `a`, is taken.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    a = check_one("nanvar", a)
    r.no_out("nanvar", out)
    computed, wanted = r.variance_dtypes(type_of(a), dtype)
    a = to_dtype(a, computed)
    middle = nanmean(a, axis, computed, keepdims=True, where=where) if mean is None else check("nanvar", mean)[0]
    centered = choose(isnan(a), to_dtype(0, computed), subtract(a, middle))
    squares = real(multiply(centered, conj(centered))) if is_kind(centered, "c") else multiply(centered, centered)
    dtype = type_of(squares).dtype
    freedom = subtract(_counted(a, axis, keepdims, where, dtype), to_dtype(ddof, dtype))
    found = divide(r.sum(squares, axis, dtype, keepdims=keepdims, where=where), freedom)
    return to_dtype(choose(less_equal(freedom, to_dtype(0, dtype)), to_dtype(np.nan, dtype), found), wanted)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out", "keepdims"))
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
    """The standard deviation of the elements of `a` that are not nan over `axis`: the square root of `nanvar`, with
    its arguments (as ``numpy.nanstd``).

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    if dtype is not None and not dtypes.is_inexact(dtypes.user_dtype(dtype, "nanstd")):
        raise DtypeError(f"nanstd: dtype={dtype!r} has no roots", instead="a float or complex dtype")
    return sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


def _position(find: Callable[..., Any], worst: float, a: Any, axis: int | None, keepdims: bool) -> Any:
    """Where the extremum is, -1 where all elements are nan."""
    if not is_kind(a, "fc"):
        return find(a, axis, None, keepdims)
    found = find(_replaced(a, worst), axis, None, keepdims)
    return choose(r.all(isnan(a), axis, keepdims=keepdims), to_dtype(-1, type_of(found).dtype), found)


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The position of the first largest element that is not nan, -1 if all are (as ``numpy.nanargmax``).

    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    a = check_one("nanargmax", a)
    r.no_out("nanargmax", out)
    return _position(r.argmax, -np.inf, a, axis, bool(keepdims))


@functools.partial(jit, inline=True, static_argnames=("axis", "out", "keepdims"))
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The position of the first smallest element that is not nan, -1 if all are (as ``numpy.nanargmin``).

    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(0, dtype=int32)
    """
    a = check_one("nanargmin", a)
    r.no_out("nanargmin", out)
    return _position(r.argmin, np.inf, a, axis, bool(keepdims))


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out"))
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sums along `axis`, or of the flattened array, in which nan counts as 0 (as ``numpy.nancumsum``).

    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    a = check_one("nancumsum", a)
    return r.cumsum(_replaced(a, 0), axis, dtype, out)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "out"))
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running products along `axis`, or of the flattened array, in which nan counts as 1 (as ``numpy.nancumprod``).

    >>> jnp.nancumprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array([3., 3., 6.], dtype=float32)
    """
    a = check_one("nancumprod", a)
    return r.cumprod(_replaced(a, 1), axis, dtype, out)
