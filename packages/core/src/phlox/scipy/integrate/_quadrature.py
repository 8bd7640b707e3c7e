"""Integrals of functions by adaptive quadrature, and running integrals of samples.

`quad` first looks for a division of the interval, in a loop without derivatives, and then adds the rule of all parts,
which has the derivatives and the batches of the function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.batching.vmap import vmap
from ..._base.errors import DtypeError, OptionError, ShapeError
from ..._base.strictness import lenient, users
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import common_dtype, promote_inexact
from ..._operands.short_floats import round_to, widen
from ...typing import Array, ArrayLike

# fmt: off
#: The nodes of Kronrod's rule of 21 points that are not negative, its weights, and those of Gauss's rule of ten of them
_NODES = (
    0.9956571630258081, 0.9739065285171717, 0.9301574913557082, 0.8650633666889845, 0.7808177265864169,
    0.6794095682990244, 0.5627571346686047, 0.4333953941292472, 0.2943928627014602, 0.1488743389816312, 0.0,
)
_KRONROD = (
    0.011694638867371874, 0.032558162307964725, 0.054755896574351995, 0.07503967481091996, 0.0931254545836976,
    0.10938715880229764, 0.12349197626206584, 0.13470921731147334, 0.14277593857706009, 0.14773910490133849,
    0.1494455540029169,
)
_GAUSS = (0.06667134430868814, 0.1494513491505806, 0.21908636251598204, 0.26926671930999635, 0.29552422471475287)
# fmt: on


def _both_sides(half: tuple[float, ...], sign: int) -> np.ndarray:
    x = np.asarray(half)
    return np.concatenate([sign * x, x[-2::-1]])


_POINTS = _both_sides(_NODES, -1)
_WEIGHTS = _both_sides(_KRONROD, 1)
# Gauss's rule uses every second point of Kronrod's, so the estimate of the error costs no further evaluations.
_DIFFERENCE = _WEIGHTS.copy()
_DIFFERENCE[1::2] -= np.concatenate([_GAUSS, _GAUSS[::-1]])


def _of_unit(u: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The place in the interval that stands for `u` from 0 to 1, and its derivative; infinite ends are mapped."""
    low, high = jnp.isinf(a), jnp.isinf(b)
    start, end = jnp.where(low, 0, a), jnp.where(high, 0, b)
    rest = 1 - u
    finite = start + (end - start) * u
    # t / (1 - t**2) maps (-1, 1) to all real numbers; `gap` is 1 - t**2, without its cancellation at the ends.
    t = 2 * u - 1
    gap = 4 * u * rest
    # [a, inf) is start + u / (1 - u); (-inf, b] is its mirror image. Exchanged ends change the sign.
    sign = jnp.where(b > a, 1, -1)
    everywhere = sign * (a != b) * 2 * (1 + t * t) / (gap * gap)
    cases = [low & high, high, low]
    place = jnp.select(cases, [sign * t / gap, start + sign * u / rest, end - sign * rest / u], finite)
    slope = jnp.select(cases, [everywhere, sign / (rest * rest), sign / (u * u)], end - start)
    return place, slope


@lenient
def quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: Any = (),
    *,
    epsabs: float | None = None,
    epsrel: float | None = None,
    limit: int = 50,
) -> tuple[Array, Array]:
    """The integral of a function of a number from `a` to `b` (as ``scipy.integrate.quad``).

    By Kronrod's rule of 21 points on parts of the interval, of which that with the largest estimated error is divided
    again and again. `func` is evaluated at 42 points a step, and at the end at 21 of each of `limit` parts.

    Args:
      func: function ``func(x, *args)`` of a number, with a real number as result.
      a, b: the limits, numbers or infinities; they may be traced.
      args: further arguments of `func`, a tuple; or the only one.
      epsabs: the absolute error to reach; None are 1.5e-8, and of float32 1e-6.
      epsrel: the relative error to reach; None are as for `epsabs`.
      limit: the largest number of parts.

    Returns:
      ``(y, abserr)``: the integral, which has derivatives by the limits, by `args` and by what `func` closes over, and
      an estimate of its error, which has none.

    Raises:
      OptionError: `limit` is not positive.
      DtypeError: `func` has a complex result.

    Source:
      Piessens and others 1983, QUADPACK, routine QAG.

    >>> y, abserr = quad(lambda x: jnp.exp(-x), 0.0, jnp.inf)
    >>> round(float(y), 5)
    1.0
    """
    if limit < 1:
        raise OptionError(f"quad: limit={limit}", instead="a positive number of parts")
    a, b = (jnp.asarray(x, jnp.result_type(x, float)) for x in promote_inexact(*check("quad", a, b)))
    dtype = type_of(a).dtype
    # SciPy's default of 1.5e-8 is below the rounding of float32.
    least = 1e-6 if dtype == np.float32 else 1.5e-8
    tolerances = [least if x is None else x for x in (epsabs, epsrel)]
    points, weights, difference = ((v / s).astype(dtype) for v, s in ((_POINTS, 1), (_WEIGHTS, 2), (_DIFFERENCE, 2)))
    args = args if isinstance(args, tuple) else (args,)
    called = vmap(lambda x: users(func)(x, *args))

    def values(low: Any, high: Any) -> Any:
        """The integrand at the points of a part of [0, 1], times the length of the part."""
        u = 0.5 * (low + high)[..., None] + 0.5 * (high - low)[..., None] * points
        place, slope = _of_unit(u, a, b)
        heights = called(jnp.ravel(place))
        if dtypes.kind(type_of(heights).dtype) == "c":
            raise DtypeError("quad: func has a complex result", instead="an integral of each of the two parts")
        return (high - low)[..., None] * slope * jnp.reshape(heights, type_of(place).shape).astype(dtype)

    def estimates(low: Any, high: Any) -> tuple[Any, Any]:
        # The loop only chooses the parts; derivatives are those of the sum after it.
        samples = lax.stop_gradient(values(lax.stop_gradient(low), lax.stop_gradient(high)))
        return samples @ weights, jnp.abs(samples @ difference)

    def going_on(state: Any) -> Any:
        count, _, _, sums, errors = state
        return (count < limit) & (errors.sum() > jnp.maximum(tolerances[0], tolerances[1] * jnp.abs(sums.sum())))

    def divide(state: Any) -> Any:
        count, low, high, sums, errors = state
        worst = jnp.argmax(errors)
        middle = 0.5 * (low[worst] + high[worst])
        lows, highs = jnp.stack([low[worst], middle]), jnp.stack([middle, high[worst]])
        at = jnp.stack([worst.astype(count.dtype), count])
        s, e = estimates(lows, highs)
        return count + 1, low.at[at].set(lows), high.at[at].set(highs), sums.at[at].set(s), errors.at[at].set(e)

    zero = jnp.zeros(limit, dtype)
    one = zero.at[0].set(1)
    s, e = estimates(zero[:1], one[:1])
    start = jnp.asarray(1, np.int32), zero, one, zero.at[0].set(s[0]), zero.at[0].set(e[0])
    _, low, high, _, errors = lax.while_loop(going_on, divide, start)
    # Unused parts have no length. Their points are put into the middle of the interval, where the integrand is finite.
    is_part = high > low
    low, high = jnp.where(is_part, low, 0.25), jnp.where(is_part, high, 0.75)
    total = jnp.where(is_part, values(low, high) @ weights, 0).sum()
    return total, errors.sum()


@lenient
def cumulative_trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1, initial: ArrayLike | None = None
) -> Array:
    """The running integral of samples by the trapezoidal rule (as ``scipy.integrate.cumulative_trapezoid``).

    Args:
      y: samples, an array with at least one axis; integers become floats.
      x: sample points: a vector, or an array of the shape of `y`; None means samples with spacing `dx`.
      dx: spacing of the samples, used if `x` is None.
      axis: axis along which to integrate.
      initial: a number to put before the result, 0 in general; None puts none.

    Returns:
      An array of the shape of `y`, of one element less along `axis` if `initial` is None.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: `x` does not fit `y`.

    >>> cumulative_trapezoid(jnp.array([1.0, 2.0, 3.0]), initial=0)
    Array([0. , 1.5, 4. ], dtype=float32)
    """
    (y,) = promote_inexact(*check("cumulative_trapezoid", y))
    last = jnp.moveaxis(jnp.asarray(y), axis, -1)
    if x is None:
        widths: Any = dx
    else:
        (at,) = map(jnp.asarray, check("cumulative_trapezoid", x))
        at = jnp.moveaxis(at, axis, -1) if type_of(at).ndim > 1 else at
        if type_of(at).ndim not in (1, type_of(last).ndim) or type_of(at).shape[-1] != type_of(last).shape[-1]:
            raise ShapeError(
                f"cumulative_trapezoid: x is {type_of(at).short} for y of type {type_of(last).short}",
                instead="a vector with a point for each sample, or an array of the shape of y",
                shapes=[type_of(at).shape, type_of(last).shape],
            )
        widths = jnp.diff(at)
    dtype, _ = common_dtype(last, widths)
    last, widths = widen(last), widen(widths)
    integral = round_to(jnp.cumsum(0.5 * widths * (last[..., 1:] + last[..., :-1]), axis=-1), dtype)
    if initial is not None:
        first = jnp.full_like(integral, initial, shape=(*type_of(integral).shape[:-1], 1))
        integral = jnp.concatenate([first, integral], axis=-1)
    return jnp.moveaxis(integral, -1, axis)
