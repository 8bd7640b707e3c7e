"""Reductions over axes: sums, means, extrema, truth, positions, running totals."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api.jit import jit
from .._base.errors import ShapeError
from .._ir import dtypes
from .._ops import elementwise as e, reduce as ops, running
from .._ops.shape import broadcast_in_dim, reshape
from ._choose import where as choose
from ._promote import canonical_axes, canonical_axis, check, promote_dtypes, to_dtype, type_of
from ._shapes import broadcast_to, ravel
from ._unary import as_bool, is_kind

Axis = int | Sequence[int] | None
_STATIC = ("axis", "dtype", "keepdims")


def _hashable(axis: Any) -> Any:
    """A user's axis as something a cache can key on."""
    return tuple(axis) if isinstance(axis, list) else axis


def restore_axes(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """`x` with axes of length one where it was reduced, if `keepdims`."""
    if not keepdims or not axes:
        return x
    shape = list(type_of(x).shape)
    for axis in axes:
        shape.insert(axis, 1)
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=kept)


def _keep(a: Any, where_: Any, neutral: Any) -> Any:
    """`a` with the neutral element where it does not take part."""
    return a if where_ is None else choose(where_, a, to_dtype(neutral, type_of(a).dtype))


def _accumulated(a: Any) -> Any:
    """Bools as integers, small integers widened to 32 bits: the dtype in which NumPy sums."""
    dtype = type_of(a).dtype
    kind = dtypes.kind(dtype)
    if kind == "b":
        return to_dtype(a, dtypes.canonical(dtypes.int64))
    if kind in "iu" and dtypes.bits(dtype) < dtypes.bits(dtypes.canonical(dtypes.int64)):
        return to_dtype(a, dtypes.canonical(dtypes.int64 if kind == "i" else dtypes.uint64))
    return a


def _in_wide(a: Any, reduce: Callable[[Any], Any]) -> Any:
    """`reduce`, done in float32 for narrower floats, with the result in the dtype of `a`."""
    aval = type_of(a)
    if dtypes.kind(aval.dtype) == "f" and dtypes.bits(aval.dtype) < 32:
        return to_dtype(reduce(to_dtype(a, dtypes.float32)), aval.dtype)
    return reduce(a)


@functools.partial(jit, inline=True, static_argnames=_STATIC)
def _sum(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "sum")
    a = _accumulated(_keep(a, where, 0)) if dtype is None else to_dtype(_keep(a, where, 0), dtype)
    out = restore_axes(_in_wide(a, lambda x: ops.reduce_sum(x, axes=axes)), axes, keepdims)
    return out if initial is None else e.add(out, to_dtype(initial, type_of(out).dtype))


def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The sum of the elements of `a` over `axis`, by default over all (as ``numpy.sum``).

    Args:
      dtype: in which to sum; by default bools and small integers are summed as int32 (int64 in x64 mode).
      keepdims: keep reduced axes with length one.
      initial: a number to begin with.
      where: a mask of the elements that take part.

    >>> import phlox.numpy as jnp
    >>> jnp.sum(jnp.ones((2, 3)), axis=1)
    Array([3., 3.], dtype=float32)
    """
    (a,) = check("sum", a)
    wanted = None if dtype is None else dtypes.user_dtype(dtype, "sum")
    if not promote_integers and wanted is None:
        wanted = type_of(a).dtype
    return _sum(a, axis=_hashable(axis), dtype=wanted, keepdims=keepdims, initial=initial, where=where)


@functools.partial(jit, inline=True, static_argnames=_STATIC)
def _prod(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "prod")
    a = _accumulated(_keep(a, where, 1)) if dtype is None else to_dtype(_keep(a, where, 1), dtype)
    out = restore_axes(_in_wide(a, lambda x: ops.reduce_prod(x, axes=axes)), axes, keepdims)
    return out if initial is None else e.mul(out, to_dtype(initial, type_of(out).dtype))


def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Any:
    """The product of the elements of `a` over `axis`; arguments as for `sum` (as ``numpy.prod``).

    >>> import phlox.numpy as jnp
    >>> jnp.prod(jnp.array([2.0, 3.0]))
    Array(6., dtype=float32)
    """
    (a,) = check("prod", a)
    wanted = None if dtype is None else dtypes.user_dtype(dtype, "prod")
    if not promote_integers and wanted is None:
        wanted = type_of(a).dtype
    return _prod(a, axis=_hashable(axis), dtype=wanted, keepdims=keepdims, initial=initial, where=where)


# --- extrema and truth ----------------------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "largest"))
def _extremum(a: Any, axis: Any, keepdims: bool, initial: Any, where: Any, largest: bool) -> Any:
    name = "max" if largest else "min"
    aval = type_of(a)
    axes = canonical_axes(axis, aval.ndim, name)
    if initial is None:
        if math.prod(aval.shape[i] for i in axes) == 0:
            raise ShapeError(
                f"{name} of an empty array of type {aval.short}", instead="initial=...", shapes=[aval.shape]
            )
        if where is not None:
            raise ShapeError(f"{name} with where= needs initial=, the value of an empty selection")
    neutral = ops.lowest if largest else ops.highest
    if is_kind(a, "c"):
        out = _complex_extremum(a, axes, largest)
    else:
        a = _keep(a, where, neutral(aval.dtype))
        out = (ops.reduce_max if largest else ops.reduce_min)(a, axes=axes)
    out = restore_axes(out, axes, keepdims)
    if initial is not None:
        pick = e.max_ if largest else e.min_
        out = pick(out, to_dtype(initial, type_of(out).dtype))
    return out


def _complex_extremum(a: Any, axes: tuple[int, ...], largest: bool) -> Any:
    """Complex numbers are compared by real part, then by imaginary part."""
    reduce = ops.reduce_max if largest else ops.reduce_min
    re, im = e.real(a), e.imag(a)
    best = reduce(re, axes=axes)
    tied = re == ops.spread(best, type_of(re), axes)
    worst = (ops.lowest if largest else ops.highest)(type_of(im).dtype)
    return e.complex_(best, reduce(choose(tied, im, to_dtype(worst, type_of(im).dtype)), axes=axes))


def max(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The largest element of `a` over `axis`; nan where there is one (as ``numpy.max``).

    Elements that share the maximum share its derivative equally. Raises `ShapeError` for an empty array.

    >>> import phlox.numpy as jnp
    >>> jnp.max(jnp.array([1, 3, 2]))
    Array(3, dtype=int32)
    """
    (a,) = check("max", a)
    return _extremum(a, axis=_hashable(axis), keepdims=keepdims, initial=initial, where=where, largest=True)


def min(
    a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The smallest element of `a` over `axis`; nan where there is one (as ``numpy.min``).

    >>> import phlox.numpy as jnp
    >>> jnp.min(jnp.array([1, 3, 2]))
    Array(1, dtype=int32)
    """
    (a,) = check("min", a)
    return _extremum(a, axis=_hashable(axis), keepdims=keepdims, initial=initial, where=where, largest=False)


amax, amin = max, min


def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Any:
    """The largest minus the smallest element of `a` over `axis` (as ``numpy.ptp``).

    >>> import phlox.numpy as jnp
    >>> jnp.ptp(jnp.array([1, 3, 2]))
    Array(2, dtype=int32)
    """
    return e.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims"))
def _all(a: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "all")
    return restore_axes(ops.reduce_and(_keep(as_bool(a), where, True), axes=axes), axes, keepdims)


def all(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether all elements of `a` over `axis` are true (as ``numpy.all``).

    >>> import phlox.numpy as jnp
    >>> jnp.all(jnp.array([True, False]))
    Array(False, dtype=bool)
    """
    (a,) = check("all", a)
    return _all(a, axis=_hashable(axis), keepdims=keepdims, where=where)


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims"))
def _any(a: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "any")
    return restore_axes(ops.reduce_or(_keep(as_bool(a), where, False), axes=axes), axes, keepdims)


def any(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Any:
    """Whether any element of `a` over `axis` is true (as ``numpy.any``).

    >>> import phlox.numpy as jnp
    >>> jnp.any(jnp.array([True, False]))
    Array(True, dtype=bool)
    """
    (a,) = check("any", a)
    return _any(a, axis=_hashable(axis), keepdims=keepdims, where=where)


def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """How many elements of `a` over `axis` are not zero (as ``numpy.count_nonzero``).

    >>> import phlox.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([0, 1, 2]))
    Array(2, dtype=int32)
    """
    (a,) = check("count_nonzero", a)
    return sum(as_bool(a), axis, keepdims=keepdims)


# --- moments --------------------------------------------------------------------------------------------


def _moment_dtype(a: Any, dtype: Any, function: str) -> Any:
    return dtypes.to_inexact(type_of(a).dtype) if dtype is None else dtypes.user_dtype(dtype, function)


def _count(a: Any, axes: tuple[int, ...], where_: Any, dtype: Any) -> Any:
    """How many elements each result is made of."""
    if where_ is None:
        return np.asarray(math.prod(type_of(a).shape[i] for i in axes), dtype)
    return sum(broadcast_to(where_, type_of(a).shape), axes, dtype, keepdims=True)


@functools.partial(jit, inline=True, static_argnames=_STATIC)
def _mean(a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "mean")
    wide = dtypes.float32 if dtypes.bits(dtype) < 32 else dtype
    count = _count(a, axes, where, wide)
    if where is not None and not keepdims:
        count = count.reshape([n for i, n in enumerate(type_of(count).shape) if i not in axes])
    total = sum(a, axes, wide, keepdims=keepdims, where=where)
    return to_dtype(e.div(total, count), dtype, type_of(a).weak_type and type_of(a).dtype == dtype)


def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Any:
    """The arithmetic mean of `a` over `axis`, a float (as ``numpy.mean``). Narrow floats are summed in float32.

    >>> import phlox.numpy as jnp
    >>> jnp.mean(jnp.array([1, 2, 3, 4]))
    Array(2.5, dtype=float32)
    """
    (a,) = check("mean", a)
    wanted = _moment_dtype(a, dtype, "mean")
    return _mean(a, axis=_hashable(axis), dtype=wanted, keepdims=keepdims, where=where)


@functools.partial(jit, static_argnames=_STATIC)
def _var(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any) -> Any:
    axes = canonical_axes(axis, type_of(a).ndim, "var")
    real = dtypes.real_part(dtype)
    wide = dtype if dtypes.bits(dtype) >= 32 else dtypes.float32
    a = to_dtype(a, wide)
    centered = e.sub(a, mean(a, axes, keepdims=True, where=where))
    squares = e.real(e.mul(centered, e.conj(centered))) if is_kind(centered, "c") else e.square(centered)
    count = _count(a, axes, where, type_of(squares).dtype)
    if where is not None and not keepdims:
        count = count.reshape([n for i, n in enumerate(type_of(count).shape) if i not in axes])
    free = e.sub(count, to_dtype(ddof, type_of(squares).dtype))
    total = e.div(sum(squares, axes, keepdims=keepdims, where=where), free)
    return to_dtype(_where_positive(free, total), real)


def _where_positive(free: Any, total: Any) -> Any:
    """nan where no degree of freedom is left."""
    return choose(free > to_dtype(0, type_of(free).dtype), total, np.asarray(np.nan, type_of(total).dtype))


def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: int | None = None,
) -> Any:
    """The variance of `a` over `axis`: the mean square distance from the mean (as ``numpy.var``).

    The sum of squares is divided by the number of elements less `ddof` (or `correction`).

    >>> import phlox.numpy as jnp
    >>> jnp.var(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    (a,) = check("var", a)
    freedom = ddof if correction is None else correction
    wanted = _moment_dtype(a, dtype, "var")
    return _var(a, axis=_hashable(axis), dtype=wanted, ddof=freedom, keepdims=keepdims, where=where)


def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: int | None = None,
) -> Any:
    """The standard deviation of `a` over `axis`: the square root of `var` (as ``numpy.std``).

    >>> import phlox.numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    return e.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, correction=correction))


def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """The weighted mean of `a` over `axis` (as ``numpy.average``); with `returned`, also the sum of weights.

    >>> import phlox.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.5, dtype=float32)
    """
    (a,) = check("average", a)
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        count = to_dtype(type_of(a).size / (type_of(out).size or 1), type_of(out).dtype)
        return (out, broadcast_to(count, type_of(out).shape)) if returned else out
    (weights,) = check("average", weights)
    if type_of(weights).shape != type_of(a).shape:
        if type_of(weights).ndim != 1 or axis is None:
            raise ShapeError(
                f"average: weights {type_of(weights).short} do not fit {type_of(a).short}",
                instead="weights of the shape of a, or one for each element along axis",
            )
        at = canonical_axis(axis, type_of(a).ndim, "average")
        weights = reshape(
            weights,
            new_sizes=tuple(n if i == at else 1 for i, n in enumerate(type_of(a).shape)),
            dimensions=None,
        )
        weights = broadcast_to(weights, type_of(a).shape)
    a, weights = promote_dtypes(a, weights)
    real = dtypes.to_inexact(type_of(a).dtype)
    a, weights = to_dtype(a, real), to_dtype(weights, real)
    total = sum(weights, axis, keepdims=keepdims)
    out = e.div(sum(e.mul(a, weights), axis, keepdims=keepdims), total)
    return (out, total) if returned else out


# --- positions and running totals -----------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "largest"))
def _position(a: Any, axis: int | None, keepdims: bool, largest: bool) -> Any:
    rank = type_of(a).ndim
    if axis is None:
        flat, at, axes = ravel(a), 0, tuple(range(rank))
    else:
        at = canonical_axis(axis, rank, "argmax" if largest else "argmin")
        flat, axes = a, (at,)
    find = ops.argmax if largest else ops.argmin
    index = find(flat, axes=(at,), index_dtype=dtypes.canonical(dtypes.int64))
    return restore_axes(index, axes, keepdims)


def argmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The position of the first largest element (of the first nan, if any), as ``numpy.argmax``.

    >>> import phlox.numpy as jnp
    >>> jnp.argmax(jnp.array([1, 3, 2]))
    Array(1, dtype=int32)
    """
    return _position(check("argmax", a)[0], axis=axis, keepdims=bool(keepdims), largest=True)


def argmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """The position of the first smallest element (of the first nan, if any), as ``numpy.argmin``.

    >>> import phlox.numpy as jnp
    >>> jnp.argmin(jnp.array([3, 1, 2]))
    Array(1, dtype=int32)
    """
    return _position(check("argmin", a)[0], axis=axis, keepdims=bool(keepdims), largest=False)


@functools.partial(jit, inline=True, static_argnames=("axis", "dtype", "product"))
def _running(a: Any, axis: int | None, dtype: Any, product: bool) -> Any:
    if axis is None:
        a, axis = ravel(a), 0
    a = to_dtype(a, dtype) if dtype is not None else _accumulated(a)
    at = canonical_axis(axis, type_of(a).ndim, "cumprod" if product else "cumsum")
    return (running.cumprod if product else running.cumsum)(a, axis=at, reverse=False)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Running sums along `axis`, or of the flattened array (as ``numpy.cumsum``).

    >>> import phlox.numpy as jnp
    >>> jnp.cumsum(jnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    wanted = None if dtype is None else dtypes.user_dtype(dtype, "cumsum")
    return _running(check("cumsum", a)[0], axis=axis, dtype=wanted, product=False)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Running products along `axis`, or of the flattened array (as ``numpy.cumprod``).

    >>> import phlox.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    wanted = None if dtype is None else dtypes.user_dtype(dtype, "cumprod")
    return _running(check("cumprod", a)[0], axis=axis, dtype=wanted, product=True)
