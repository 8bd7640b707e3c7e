"""Quantiles: sort along the axes, and interpolate between the two elements next to the position of the quantile."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.devices.out_sharding import OutSharding, takes_out_sharding
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, OptionError, ShapeError, UnsupportedError
from ..._base.strictness import lenient_promotion
from ..._ir import dtypes
from ..._operands.checks import canonical_axes, check, check_one, type_of
from ..._operands.promotion import promote_inexact, to_dtype
from ...typing import Array, ArrayLike
from .._elementwise.binary import add, divide, multiply, subtract
from .._elementwise.choose import clip, where as select_elements
from .._elementwise.comparisons import equal, greater, greater_equal, less_equal
from .._elementwise.unary import ceil, floor, is_kind, isnan, logical_not
from .._indexing.reading import take, take_along_axis
from .._manipulation.broadcasting import broadcast_to
from .._manipulation.shapes import expand_dims, moveaxis, reshape
from .._searches.sorting import argsort, sort
from . import reductions as r
from .moments import weights_along

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _one_axis(a: Any, axes: tuple[int, ...]) -> tuple[Any, int]:
    """`a` with these axes merged, and the merged axis: one axis keeps its position, several become the last axis."""
    if len(axes) == 1:
        return a, axes[0]
    a = moveaxis(a, axes, tuple(range(-len(axes), 0)))
    lengths = type_of(a).shape[: type_of(a).ndim - len(axes)]
    return reshape(a, (*lengths, math.prod(type_of(a).shape[len(lengths) :]))), len(lengths)


def _between(position: Any, last: Any, method: str, pick: Any) -> Any:
    """The value of the sorted elements at a fractional position between 0 and `last`."""
    low, high = floor(position), ceil(position)
    fraction = subtract(position, low)
    dtype = type_of(position).dtype
    zero = to_dtype(0, dtype)
    # A q outside of [0, 1] is clipped, as a compiled program cannot raise.
    below = pick(to_dtype(clip(low, zero, last), dtypes.int32))
    above = pick(to_dtype(clip(high, zero, last), dtypes.int32))
    if method == "linear":
        # Two products as in JAX, and not below + fraction * (above - below), where the difference of large numbers
        # overflows.
        mean = add(multiply(below, subtract(to_dtype(1, dtype), fraction)), multiply(above, fraction))
        # At an element, 0 times an infinite one would be nan.
        return select_elements(equal(fraction, zero), below, mean)
    if method == "lower":
        return below
    if method == "higher":
        return above
    if method == "midpoint":
        return multiply(add(below, above), to_dtype(0.5, dtype))
    # "nearest": a tie goes to the lower element, as in JAX.
    return select_elements(less_equal(fraction, to_dtype(0.5, dtype)), below, above)


def _rows(a: Any, axis: int, shape: tuple[int, ...], positions: Any) -> Any:
    """The elements of `a` at these positions along `axis`, by a slice for one position, a gather for several."""
    rows = take(a, reshape(positions, shape), axis, mode="clip")
    return rows if shape else expand_dims(rows, axis)


def _weighted(q: Any, a: Any, weights: Any, is_nan: Any) -> Any:
    """Along the last axis, the first element at which the cumulative weight reaches `q` times the total weight."""
    order = argsort(a)
    a = take_along_axis(a, order, -1)
    # nan comes last in the order; without weight it is never reached.
    weights = select_elements(is_nan, to_dtype(0, type_of(weights).dtype), weights)
    reached = r.cumsum(take_along_axis(weights, order, -1), -1)
    share = multiply(q, reached[..., -1:])  # (..., len(q))
    enough = greater_equal(expand_dims(reached, -2), expand_dims(share, -1))
    # Elements of weight 0 are skipped, also for q = 0.
    enough = enough & greater(expand_dims(reached, -2), to_dtype(0, type_of(reached).dtype))
    return take_along_axis(a, r.argmax(enough, -1), -1)


def _quantile_over(
    a: Any, q: Any, weights: Any, axes: tuple[int, ...], method: str, keepdims: bool, ignore_nan: bool, scale: int
) -> Any:
    out_dtype = dtypes.to_inexact(type_of(a).dtype)
    if dtypes.bits(out_dtype) < 16 or dtypes.bits(type_of(a).dtype) < 8:  # a dtype that is promoted with no other
        a = to_dtype(a, dtypes.float32)
    if scale != 1:
        (q,) = promote_inexact(q)
    q = to_dtype(q, type_of(q).dtype)  # strongly typed, so that positions are not computed in the 16-bit dtype of `a`
    with lenient_promotion():  # positions may have another dtype than elements, under strict promotion too
        if weights is None:
            a, q = promote_inexact(a, q)
        else:
            a, q, weights = promote_inexact(a, q, weights)
    dtype = type_of(a).dtype
    a, q = to_dtype(a, dtype), to_dtype(q, dtype)
    if scale != 1:
        q = divide(q, to_dtype(scale, dtype))
    aval, several = type_of(a), type_of(q).shape
    lengths = tuple(1 if i in axes else n for i, n in enumerate(aval.shape) if keepdims or i not in axes)
    a, axis = _one_axis(a, axes)
    n, after = type_of(a).shape[axis], type_of(a).ndim - 1 - axis
    q = reshape(q, (-1, *[1] * after))  # aligned with that axis
    if n == 0 and not ignore_nan:
        raise ShapeError(f"a quantile of no elements: {aval.short} over axes {axes}", shapes=[aval.shape])
    if n == 0:
        return broadcast_to(to_dtype(np.nan, out_dtype), several + lengths)
    is_nan = isnan(a)
    if not ignore_nan:
        # One nan makes all elements nan, so that sorting and picking need no test.
        a = select_elements(r.any(is_nan, axis, keepdims=True), to_dtype(np.nan, dtype), a)
    if weights is not None:
        weights, _ = _one_axis(weights, axes)
        out = _weighted(reshape(q, (-1,)), *(moveaxis(x, axis, -1) for x in (a, weights, is_nan)))
        out = moveaxis(out, -1, axis)
        if not ignore_nan:
            out = select_elements(r.any(is_nan, axis, keepdims=True), to_dtype(np.nan, dtype), out)
    else:
        a = sort(a, axis)
        # nan is sorted behind the others, so the first `count` elements are those to rank.
        if ignore_nan:
            count = r.sum(logical_not(is_nan), axis, dtype, keepdims=True)
            pick = functools.partial(take_along_axis, a, axis=axis)
        else:
            count = to_dtype(n, dtype)
            pick = functools.partial(_rows, a, axis, several)
        last = subtract(count, to_dtype(1, dtype))
        if method == "inverted_cdf":
            # The first element at which the share of elements up to it reaches q. For q = 0 this is position -1, which
            # is clipped.
            position = subtract(ceil(multiply(q, count)), to_dtype(1, dtype))
            out = pick(to_dtype(clip(position, to_dtype(0, dtype), last), dtypes.int32))
        else:
            out = _between(multiply(q, last), last, method, pick)
        if ignore_nan:
            out = select_elements(equal(count, to_dtype(0, dtype)), to_dtype(np.nan, dtype), out)
    return to_dtype(reshape(moveaxis(out, axis, 0), several + lengths), out_dtype)


def _quantile(
    function: str,
    a: Any,
    q: Any,
    axis: r.Axis,
    out: None,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    ignore_nan: bool,
    scale: int = 1,
) -> Any:
    """The quantiles for the public function of this name."""
    a, q = check(function, a, q)
    if out is not None or overwrite_input:
        raise OptionError(f"{function}: out= and overwrite_input= are not supported", instead="x = f(...)")
    if method not in _METHODS:
        raise OptionError(f"{function}: method={method!r}", instead=", ".join(map(repr, _METHODS)))
    if weights is not None and method != "inverted_cdf":
        raise UnsupportedError(f"{function}: method={method!r} has no weights", instead="method='inverted_cdf'")
    if is_kind(a, "c") or is_kind(q, "c"):
        raise DtypeError(f"{function}: complex numbers have no order", instead="x.real, x.imag or abs(x)")
    if scale == 1 and is_kind(q, "biu"):
        raise DtypeError(f"{function}: q must be a float, got {type_of(q).short}", instead="q between 0.0 and 1.0")
    if type_of(q).ndim > 1:
        raise ShapeError(f"{function}: q must be a number or a vector, got {type_of(q).short}", instead="q.ravel()")
    axes = canonical_axes(axis, type_of(a).ndim, function)
    if weights is not None:
        weights = check_one(function, weights)
        if type_of(weights).shape != type_of(a).shape:
            weights = broadcast_to(weights_along(function, a, weights, axis, axes), type_of(a).shape)
    return _quantile_over(
        a, q, weights, axes=axes, method=method, keepdims=keepdims, ignore_nan=ignore_nan, scale=scale
    )


_static = functools.partial(jit, inline=True, static_argnames=("axis", "out", "overwrite_input", "method", "keepdims"))
_static_median = functools.partial(jit, inline=True, static_argnames=("axis", "out", "overwrite_input", "keepdims"))


@_static
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The `q`-th quantiles of the elements of `a` over `axis` (as ``numpy.quantile``).

    Args:
      a: array of a real dtype; integers become floats.
      q: probability or probabilities of the quantiles: a float from 0 to 1, or a vector of floats, whose axis is the
        first one of the result.
      axis: axis or axes to reduce over; None reduces over all axes.
      out: not supported, must be None: arrays cannot be changed in place.
      overwrite_input: must be False, because arrays cannot be changed in place.
      method: how a quantile between two elements is determined: 'linear' interpolates, 'lower', 'higher' and 'nearest'
        take one of the two, 'midpoint' takes their mean; 'inverted_cdf' takes the first element whose cumulative share
        reaches `q`.
      keepdims: True keeps the reduced axes, with length one.
      weights: weights of the elements: an array of the shape of `a`, or of the lengths of the axes in `axis`; for
        'inverted_cdf' only.

    Returns:
      An array of floats, of the shape of `q`, then of `a` without the reduced axes; nan where an element is nan.

    Raises:
      DtypeError: `a` or `q` is complex, or `q` is not a float.
      ShapeError: `q` has more than one axis, or the shape of `weights` does not match `a`.
      OptionError: `method` is not one of the listed names, or `overwrite_input` is true.
      UnsupportedError: `weights` is given with another method.
      ShapeError: there are no elements to reduce.

    >>> jnp.quantile(jnp.array([4.0, 1.0, 3.0]), jnp.array([0.5, 0.75]))
    Array([3. , 3.5], dtype=float32)
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=False)


@_static
@docs_from(quantile)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` of the elements that are not nan (as ``numpy.nanquantile``).

    Returns:
      An array of floats, of the shape of `q`, then of `a` without the reduced axes; nan where all elements are nan.

    >>> jnp.nanquantile(jnp.array([4.0, 1.0, jnp.nan, 3.0]), 0.5)
    Array(3., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=True)


@takes_out_sharding
@_static
@docs_from(quantile)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The `q`-th percentiles of the elements of `a` over `axis` (as ``numpy.percentile``).

    Args:
      q: percentage or percentages: an integer or float from 0 to 100, or a vector of these, whose axis is the first one
        of the result.

    Raises:
      DtypeError: `a` or `q` is complex.

    >>> jnp.percentile(jnp.array([4.0, 1.0, 3.0]), 75)
    Array(3.5, dtype=float32)
    """
    return _quantile(
        "percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=False, scale=100
    )


@_static
@docs_from(percentile)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: r.Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` of the elements that are not nan (as ``numpy.nanpercentile``).

    Returns:
      An array of floats, of the shape of `q`, then of `a` without the reduced axes; nan where all elements are nan.

    >>> jnp.nanpercentile(jnp.array([4.0, 1.0, jnp.nan, 3.0]), 75)
    Array(3.5, dtype=float32)
    """
    return _quantile(
        "nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights, ignore_nan=True, scale=100
    )


@_static_median
def median(
    a: ArrayLike, axis: r.Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The median of `a` over `axis`: the middle element in sorted order, or the mean of two (as ``numpy.median``).

    Args:
      a: array of a real dtype; integers become floats.
      axis: axis or axes to reduce over; None reduces over all axes.
      out: not supported, must be None: arrays cannot be changed in place.
      overwrite_input: must be False, because arrays cannot be changed in place.
      keepdims: True keeps the reduced axes, with length one.

    Returns:
      An array of floats without the reduced axes; nan where an element is nan.

    Raises:
      DtypeError: `a` is complex.
      OptionError: `overwrite_input` is true.
      ShapeError: there are no elements to reduce.

    >>> jnp.median(jnp.array([4, 1, 3, 9]))
    Array(3.5, dtype=float32)
    """
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, ignore_nan=False)


@_static_median
@docs_from(median)
def nanmedian(
    a: ArrayLike, axis: r.Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """`median` of the elements that are not nan (as ``numpy.nanmedian``).

    Returns:
      An array of floats without the reduced axes; nan where all elements are nan.

    >>> jnp.nanmedian(jnp.array([4.0, jnp.nan, 3.0]))
    Array(3.5, dtype=float32)
    """
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, ignore_nan=True)
