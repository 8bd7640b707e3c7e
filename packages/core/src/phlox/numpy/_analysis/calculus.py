"""Calculus of sampled functions: diff, ediff1d, gradient, trapezoid, interp."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, DtypeError, OptionError, ShapeError, UnsupportedError
from ..._operands.checks import canonical_axes, canonical_axis, check, check_one, integer, type_of
from ..._operands.promotion import common_dtype, promote_dtypes, promote_inexact, to_dtype
from ..._operands.short_floats import round_to, widen
from ..._ops.elementwise import arithmetic as e
from ..._ops.structure.slicing import along
from ..._transform.sharding_types import in_device_memory
from ...typing import Array, ArrayLike
from .._creation.from_data import asarray
from .._elementwise.binary import multiply, remainder, subtract
from .._elementwise.choose import clip, where
from .._elementwise.comparisons import not_equal
from .._elementwise.unary import abs, is_kind, isfinite
from .._indexing.reading import take
from .._manipulation.broadcasting import broadcast_to
from .._manipulation.joining import concatenate
from .._manipulation.shapes import moveaxis, ravel, reshape
from .._searches.searching import searchsorted
from .._searches.sorting import argsort
from .._statistics.reductions import sum


@jit(inline=True)
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences between successive elements of the flattened array (as ``numpy.ediff1d``).

    Args:
      ary: array of any shape, not of bools.
      to_end, to_begin: arrays or numbers to append and prepend to the differences, flattened and converted to the dtype
        of `ary`; None adds nothing.

    Returns:
      A vector of the dtype of `ary`: `to_begin`, ``ary.size - 1`` differences, then `to_end`.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    flat = ravel(check_one("ediff1d", ary))
    aval = type_of(flat)
    parts = [e.sub(flat[1:], flat[:-1])]
    ends = [ravel(to_dtype(x, aval.dtype)) for x in check("ediff1d", *(x for x in (to_begin, to_end) if x is not None))]
    if to_begin is not None:
        parts.insert(0, ends[0])
    if to_end is not None:
        parts.append(ends[-1])
    return concatenate(parts)


@functools.partial(jit, inline=True, static_argnames=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Array:
    """The `n`-th differences between successive elements along `axis` (as ``numpy.diff``).

    Args:
      a: array with at least one axis; the difference of two bools is whether they are unequal.
      n: number of times differences are taken; 0 returns `a`.
      axis: axis along which differences are taken.
      prepend, append: values to join to `a` at the start and the end of `axis` before taking differences: an array of
        the shape of `a` along the other axes, or a number.

    Returns:
      An array of the shape of the joined array, but shorter by `n` along `axis`, of the promoted dtype.

    Raises:
      ShapeError: `a` has no axes.
      ArgumentError: `n` is negative.

    >>> jnp.diff(jnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    a, n = check_one("diff", a), integer("diff", "n", n)
    shape = type_of(a).shape
    if n == 0:
        return asarray(a)
    if n < 0:
        raise ArgumentError(f"diff: n={n} times", instead="a number that is not negative")
    if not shape:
        raise ShapeError(f"diff: needs at least 1 axis, got {type_of(a).short}")
    at = canonical_axis(axis, len(shape), "diff")
    parts = []
    for x in (prepend, a, append):
        if x is not None:
            x, _ = promote_dtypes(check_one("diff", x), a)
            one = tuple(1 if i == at else length for i, length in enumerate(shape))
            parts.append(x if type_of(x).shape else broadcast_to(x, one))
    a = concatenate(parts, at) if len(parts) > 1 else asarray(a)
    # The difference of bools is exclusive or, as in NumPy.
    difference = not_equal if is_kind(a, "b") else subtract
    for _ in range(n):
        length = type_of(a).shape[at]
        a = difference(along(a, at, min(1, length), length), along(a, at, 0, max(length - 1, 0)))
    return a


@functools.partial(jit, inline=True, static_argnames="axis")
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of `y` along `axis` by the trapezoidal rule (as ``numpy.trapezoid``).

    Args:
      y: samples, an array with at least one axis; integers become floats.
      x: sample points: a vector, or an array of the shape of `y`; None means samples with spacing `dx`.
      dx: spacing of the samples, used if `x` is None: a number, or an array of spacings.
      axis: axis along which to integrate.

    Returns:
      An array of the shape of `y` without `axis`, of a float or complex dtype.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]))
    Array(4., dtype=float32)
    """
    if x is None:
        (y,) = promote_inexact(*check("trapezoid", y))
        widths = asarray(dx)
        if type_of(widths).ndim:
            rank = type_of(y).ndim
            widths = moveaxis(reshape(widths, (1,) * (rank - type_of(widths).ndim) + type_of(widths).shape), axis, -1)
    else:
        y, x = promote_inexact(*check("trapezoid", y, x))
        at = moveaxis(x, axis, -1) if type_of(x).ndim > 1 else x
        widths = at[..., 1:] - at[..., :-1]
    dtype, _ = common_dtype(y, widths)
    last, widths = widen(moveaxis(asarray(y), axis, -1)), widen(widths)
    if type_of(widths).ndim == 0 or type_of(widths).shape[-1] == 1:  # equal weights, but half at both ends
        width = widths if type_of(widths).ndim == 0 else widths[..., 0]
        integral = width * (sum(last, -1) - 0.5 * (last[..., 0] + last[..., -1]))
    else:
        integral = sum(multiply(last[..., 1:] + last[..., :-1], widths), -1) * 0.5
    return round_to(integral, dtype)


@functools.partial(jit, inline=True, static_argnames=("axis", "edge_order"))
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None
) -> Array | list[Array]:
    """The gradient of samples `f` by second-order central differences (as ``numpy.gradient``).

    Args:
      f: array of samples, at least two along each of the axes; integers become floats.
      *varargs: spacing of the samples: a number for all axes, or for each axis a number or a vector of coordinates; by
        default 1.
      axis: axis or axes along which to differentiate, by default all.
      edge_order: not supported, must be None: differences at the ends are of first order.

    Returns:
      For one axis an array of the shape of `f`, else a list of such, one for each axis.

    Raises:
      ShapeError: an axis has fewer than two samples, or a vector of coordinates does not have the length of its axis.
      ArgumentError: the number of spacings is neither one nor the number of axes.
      UnsupportedError: `edge_order` is not None.

    >>> jnp.gradient(jnp.array([0.0, 1.0, 4.0, 9.0]))
    Array([1., 2., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise UnsupportedError(
            "gradient: edge_order is not supported", instead="differences of first order at the ends"
        )
    spacing: list[Any]
    f, *spacing = promote_inexact(*check("gradient", f, *varargs))
    f = asarray(f)
    axes = canonical_axes(axis, type_of(f).ndim, "gradient")
    if not axes:
        return []
    if any(type_of(f).shape[i] < 2 for i in axes):
        raise ShapeError(f"gradient: needs at least 2 samples along each axis, got {type_of(f).short}")
    spacing = spacing or [1.0]
    steps = spacing * len(axes) if len(spacing) == 1 else spacing
    if len(steps) != len(axes):
        raise ArgumentError(f"gradient: {len(steps)} distances for {len(axes)} axes")
    gradients = [_gradient_along(f, h, i) for i, h in zip(axes, steps, strict=True)]
    return gradients[0] if len(axes) == 1 else gradients


def _gradient_along(f: Any, h: Any, axis: int) -> Any:
    n = type_of(f).shape[axis]
    if type_of(h).ndim > 1:
        raise ShapeError(f"gradient: distances are numbers or vectors, got {type_of(h).short}")
    if not type_of(h).ndim:
        first = (along(f, axis, 1, 2) - along(f, axis, 0, 1)) / h
        inside = (along(f, axis, 2, n) - along(f, axis, 0, n - 2)) * 0.5 / h
        last = (along(f, axis, n - 1, n) - along(f, axis, n - 2, n - 1)) / h
        return concatenate([first, inside, last], axis)
    if type_of(h).shape[0] != n:
        raise ShapeError(f"gradient: {type_of(h).shape[0]} places for {n} samples")
    coordinates = reshape(h, tuple(n if i == axis else 1 for i in range(type_of(f).ndim)))
    widths = along(coordinates, axis, 1, n) - along(coordinates, axis, 0, n - 1)
    slopes = (along(f, axis, 1, n) - along(f, axis, 0, n - 1)) / widths
    left, right = along(widths, axis, 0, n - 2), along(widths, axis, 1, n - 1)
    # The derivative of the parabola through three samples: each slope is weighted by the width of the other interval.
    before, after = right / (left + right), left / (left + right)
    inside = before * along(slopes, axis, 0, n - 2) + after * along(slopes, axis, 1, n - 1)
    return concatenate([along(slopes, axis, 0, 1), inside, along(slopes, axis, n - 2, n - 1)], axis)


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Linear interpolation at `x` of the data points (xp, fp), `xp` ascending (as ``numpy.interp``).

    Args:
      x: real array of any shape: points at which to interpolate.
      xp, fp: vectors of one length: coordinates of the data points, in ascending order, and the values there.
      left, right: values to return for `x` before the first and after the last data point, by default the values of
        these points; "extrapolate" extends the line.
      period: period of the coordinates, a number; if it is given, `xp` need not ascend, and `left` and `right` have no
        effect.

    Returns:
      An array of the shape of `x`, of the float or complex dtype to which `x`, `xp` and `fp` promote.

    Raises:
      ShapeError: `xp` and `fp` are not vectors of one length, or `period` has axes.
      OptionError: `left` or `right` is a string other than "extrapolate".
      DtypeError: `x` or `xp` is complex.

    >>> jnp.interp(2.5, jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 10.0, 20.0]))
    Array(15., dtype=float32)
    """
    x, xp, fp = check("interp", x, xp, fp)
    if type_of(xp).ndim != 1 or type_of(xp).shape != type_of(fp).shape:
        raise ShapeError(
            "interp: xp and fp must be one-dimensional arrays of equal size, "
            f"got {type_of(xp).short} and {type_of(fp).short}"
        )
    for side in (left, right):
        if isinstance(side, str) and side != "extrapolate":
            raise OptionError(f"interp: {side!r}", instead="'extrapolate', or a number")
    beyond = isinstance(left, str), isinstance(right, str)
    return _interp(x, xp, fp, None if beyond[0] else left, None if beyond[1] else right, period, beyond=beyond)


@jit(inline=True, static_argnames="beyond")
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, beyond: tuple[bool, bool]) -> Any:
    """`interp`; `beyond`: whether to extrapolate linearly beyond the left and the right end."""
    x, xp = (asarray(v) for v in promote_inexact(x, xp))
    fp = asarray(promote_inexact(fp)[0])
    if not type_of(x).ndim:
        xp, fp = in_device_memory(xp), in_device_memory(fp)
    if is_kind(x, "c"):
        raise DtypeError("interp: complex places have no order", instead="real numbers")
    if period is not None:
        if type_of(*check("interp", period)).ndim:
            raise ShapeError("interp: the period must be a number")
        period = abs(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order, 0), take(fp, order, 0)
        # A point of the neighbouring period at each end closes the gap between the last and the first.
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    n = type_of(xp).shape[0]
    # Beyond the ends the first or the last segment goes on, for the option "extrapolate".
    segment = clip(searchsorted(xp, x, side="right"), 1, n - 1)
    start, width = xp[segment - 1], xp[segment] - xp[segment - 1]
    # Points at the same place would give 0 / 0. JAX takes all that are closer than 1e-14 for one place.
    narrow = width == 0
    part = (x - start) / where(narrow, 1, width)
    low, high = fp[segment - 1], fp[segment]
    out = where(narrow, low, low + part * (high - low))
    # Beside infinite and unknown values: a point of the table has its value, where 0 times the rise would be nan.
    inside = where(part == 0, low, where(part == 1, high, low * (1 - part) + high * part))
    out = where(isfinite(high - low), out, inside)
    if period is None and not beyond[0]:
        out = where(x < xp[0], fp[0] if left is None else left, out)
    if period is None and not beyond[1]:
        out = where(x > xp[-1], fp[-1] if right is None else right, out)
    return out
