"""Functions summed as series until the terms no longer count: zeta, and hypergeometric functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.errors import UnsupportedError
from ..._operands.checks import type_of
from ...typing import Array, ArrayLike
from ._gamma import gammaln, gammasgn
from ._shared import at_least_single, real_inexact

# --- zeta -----------------------------------------------------------------------------------------------

#: B(2j) / (2j)!
_EULER_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def _zeta_by_x(x: Any, q: Any) -> Any:
    """The derivative of zeta by its first argument, from the formula of Euler and Maclaurin after 16 terms."""
    count = 16
    total = jnp.zeros_like(x)
    for k in range(count):
        total = total - jnp.log(q + k) * (q + k) ** -x
    end = q + count
    log, power = jnp.log(end), end**-x
    total = total - end ** (1 - x) / (x - 1) * (log + 1 / (x - 1)) - 0.5 * power * log
    # x (x + 1) ... (x + 2j - 2) / end**(2j - 1) and its derivative by x
    factor, slope = x / end, 1 / end
    for j, b in enumerate(_EULER_MACLAURIN, 1):
        total = total + b * power * (slope - log * factor)
        for i in (2 * j - 1, 2 * j):
            factor, slope = factor * (x + i) / end, (slope * (x + i) + factor) / end
    return total


@custom_jvp
def _zeta(x: Any, q: Any) -> Any:
    return lax.zeta(x, q)


@_zeta.defjvp
def _zeta_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x, q), (s, t) = primals, tangents
    out = _zeta(x, q)
    return out, (s * _zeta_by_x(x, q) - t * x * _zeta(x + 1, q)).astype(type_of(out).dtype)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Hurwitz zeta function, the sum of (q + k)**-x over k from 0 on (as ``scipy.special.zeta``).

    Args:
      x: exponent, a real array, above 1; integers are converted to floats.
      q: real array that broadcasts with `x`; it must be given, 1 for Riemann's function.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype: inf where `x` is 1, nan below.

    Raises:
      UnsupportedError: `q` is None.
      DtypeError: an argument is complex.

    >>> round(float(zeta(2.0, 1.0)), 4)
    1.6449
    """
    if q is None:
        raise UnsupportedError("zeta without q, Riemann's function for all numbers, is not there", instead="zeta(x, 1)")
    x, q = real_inexact("zeta", x, q)
    return _zeta(*jnp.broadcast_arrays(x, q))


# --- hypergeometric functions ---------------------------------------------------------------------------


def _sum(term: Callable[[Any, Any], Any], start: Any, most: int) -> Any:
    """The sum of terms, each `term(k, before)`, until none adds to it.

    The state has several arrays: the terms, which are added to as many totals.
    """

    def going_on(state: Any) -> Any:
        k, terms, totals = state
        eps = np.finfo(type_of(terms[0]).dtype).eps / 4
        adds = [jnp.abs(t) > eps * jnp.abs(total) for t, total in zip(terms, totals, strict=True)]
        # A sum that is infinite or nan stays so, hence the loop ends.
        alive = _either(adds) & jnp.isfinite(totals[0])
        return (k < most) & jnp.any(alive)

    def add(state: Any) -> Any:
        k, terms, totals = state
        terms = term(k.astype(type_of(terms[0]).dtype), terms)
        return k + 1, terms, tuple(x + t for x, t in zip(totals, terms, strict=True))

    return lax.while_loop(going_on, add, (jnp.asarray(0, np.int32), start, start))[2]


def _either(masks: list[Any]) -> Any:
    """The union of the masks."""
    out = masks[0]
    for mask in masks[1:]:
        out = out | mask
    return out


def _series(above: tuple[Any, ...], below: tuple[Any, ...], x: Any) -> tuple[Any, ...]:
    """The generalized hypergeometric series, and its derivatives by the parameters `above` and `below`.

    A term t(k) grows by the product of (p + k) / (b + k) x / (k + 1). Its derivative by a parameter is t(k) times a sum
    of 1 / (p + i), and is carried along so that it is right where p + i is 0 too.
    """

    def term(k: Any, terms: Any) -> Any:
        value, slopes = terms[0], terms[1:]
        step = x / (k + 1)
        for p in above:
            step = step * (p + k)
        for b in below:
            step = step / (b + k)
        rest = []
        for i in range(len(above)):
            # The product without this factor, not the quotient by it: p + k is 0 where the series ends.
            others = x / (k + 1)
            for j, other in enumerate(above):
                others = others * (other + k if j != i else 1)
            for b in below:
                others = others / (b + k)
            rest.append(slopes[i] * step + value * others)
        for j, b in enumerate(below):
            rest.append(slopes[len(above) + j] * step - value * step / (b + k))
        return (value * step, *rest)

    one, zero = jnp.ones_like(x), jnp.zeros_like(x)
    return _sum(term, (one, *[zero] * (len(above) + len(below))), 20000)


def _gamma_ratio(above: tuple[Any, ...], below: tuple[Any, ...]) -> Any:
    """The product of gamma functions divided by another; 0 where gamma is infinite below."""
    sign, log = jnp.ones_like(above[0]), jnp.zeros_like(above[0])
    for p in above:
        sign, log = sign * gammasgn(p), log + gammaln(p)
    pole = jnp.zeros_like(sign, dtype=bool)
    # 1 / gamma is 0 at its poles.
    for b in below:
        at_pole = _ends(b)
        pole, safe = pole | at_pole, jnp.where(at_pole, 1, b)
        sign, log = sign * gammasgn(safe), log - gammaln(safe)
    return jnp.where(pole, 0, sign * jnp.exp(log))


def _confluent(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    """1F1 and its derivatives by a and b, for abs(x) not too large."""
    # Kummer's transformation, where the terms would alternate, unless they end.
    # With p = b - a the derivative by a is -by_p, and that by b has by_p as a second part.
    turned = ~_ends(a) & (_ends(b - a) | (x < 0))
    f, by_p, by_b = _series((jnp.where(turned, b - a, a),), (b,), jnp.where(turned, -x, x))
    scale = jnp.exp(jnp.where(turned, x, 0))
    return f * scale, jnp.where(turned, -by_p, by_p) * scale, jnp.where(turned, by_p + by_b, by_b) * scale


def _ends(p: Any) -> Any:
    """Whether a series with this parameter has an end."""
    return (p <= 0) & (p == jnp.floor(p))


def _asymptotic(p: Any, r: Any, x: Any) -> Any:
    """The sum of (p)_k (r)_k / k! x**-k, up to its smallest term."""

    def add(k: Any, state: Any) -> Any:
        total, term, going = state
        k = k.astype(type_of(x).dtype)
        after = term * (p + k) * (r + k) / ((k + 1) * x)
        going = going & (jnp.abs(after) < jnp.abs(term))
        return total + jnp.where(going, after, 0), after, going

    one = jnp.ones_like(x)
    return lax.fori_loop(0, 40, add, (one, one, one > 0))[0]


@custom_jvp
def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    far = (jnp.abs(x) > 100) & ~_ends(a) & ~_ends(b - a)
    near = _confluent(a, b, jnp.where(far, 1, x))[0]
    up, down = jnp.where(x > 100, x, 101), jnp.where(x < -100, -x, 101)
    # One exponential, as exp(x) overflows before its product with the power does.
    high = _gamma_ratio((b,), (a,)) * jnp.exp(up + (a - b) * jnp.log(up)) * _asymptotic(b - a, 1 - a, up)
    low = _gamma_ratio((b,), (b - a,)) * down**-a * _asymptotic(a, a - b + 1, down)
    out = jnp.where(far, jnp.where(x > 0, high, low), near)
    known = (a == a) & (b == b) & (x == x)
    out = jnp.where(_ends(b), jnp.inf, out)
    return jnp.where(known, jnp.where((a == 0) | (x == 0), 1, out), jnp.nan)


@_hyp1f1.defjvp
def _hyp1f1_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (a, b, x), (r, s, t) = primals, tangents
    _, by_a, by_b = _confluent(a, b, x)
    return _hyp1f1(a, b, x), r * by_a + s * by_b + t * a / b * _hyp1f1(a + 1, b + 1, x)


@jit(inline=True)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The confluent hypergeometric function 1F1 (as ``scipy.special.hyp1f1``).

    The sum of (a)_k / (b)_k x**k / k!, and for abs(x) > 100 of the asymptotic series (NIST Digital Library of
    Mathematical Functions, 13.7). Derivatives by `a` and `b` are of the first sum alone.

    Args:
      a, b, x: real arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(hyp1f1(1.0, 2.0, 1.0)), 4)
    1.7183
    """
    args, dtype = at_least_single("hyp1f1", a, b, x)
    return _hyp1f1(*jnp.broadcast_arrays(*args)).astype(dtype)


def _gauss(a: Any, b: Any, c: Any, x: Any) -> tuple[Any, ...]:
    """2F1 and its derivatives by a, b and c, for x < 1; below 0 by Pfaff's transformation to x / (x - 1)."""
    negative = (x < 0) & ~_ends(a) & ~_ends(b)
    y = jnp.where(negative, x / jnp.where(negative, x - 1, 1), x)
    f, by_a, by_b, by_c = _series((a, jnp.where(negative, c - b, b)), (c,), y)
    log = jnp.where(negative, jnp.log1p(-jnp.where(negative, x, 0)), 0)
    scale = jnp.exp(-a * log)
    # The factor (1 - x)**-a adds to the derivative by a. Below 0 the second parameter is c - b, so that the derivative
    # by c has two parts.
    by_a, by_c = by_a - log * f, jnp.where(negative, by_c + by_b, by_c)
    return tuple(scale * y for y in (f, by_a, jnp.where(negative, -by_b, by_b), by_c))


@custom_jvp
def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    ends = _ends(a) | _ends(b)
    inside = (x < 1) | ends
    y = jnp.where(inside, x, 0)
    # Euler's transformation, where the series would grow near 1.
    rest = c - a - b
    turned = (rest < 0) & (y > 0) & ~ends
    f = _gauss(jnp.where(turned, c - a, a), jnp.where(turned, c - b, b), c, y)[0]
    f = f * jnp.where(turned, jnp.exp(rest * jnp.log1p(-y)), 1)
    # Gauss's theorem: F(1) = gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b)) if c > a + b.
    at_one = jnp.where(rest > 0, _gamma_ratio((c, jnp.where(rest > 0, rest, 1)), (c - a, c - b)), jnp.inf)
    out = jnp.where(inside, f, jnp.where(x == 1, at_one, jnp.inf))
    out = jnp.where(_ends(c) & ~ends, jnp.inf, out)
    known = (a == a) & (b == b) & (c == c) & (x == x)
    return jnp.where(known, jnp.where((x == 0) | (a == 0) | (b == 0), 1, out), jnp.nan)


@_hyp2f1.defjvp
def _hyp2f1_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (a, b, c, x), (q, r, s, t) = primals, tangents
    _, by_a, by_b, by_c = _gauss(a, b, c, x)
    by_x = a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x)
    return _hyp2f1(a, b, c, x), q * by_a + r * by_b + s * by_c + t * by_x


@jit(inline=True)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function 2F1 (as ``scipy.special.hyp2f1``).

    The sum of (a)_k (b)_k / (c)_k x**k / k!, after the transformations of Pfaff and Euler (NIST Digital Library of
    Mathematical Functions, 15.8). Close to 1 it has many terms, of which 20000 are added at most.

    Args:
      a, b, c: parameters, real arrays that broadcast with each other; integers are converted to floats.
      x: real array, at most 1 unless `a` or `b` is a whole number that is not positive.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; inf where `x` is above 1 otherwise.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863
    """
    args, dtype = at_least_single("hyp2f1", a, b, c, x)
    return _hyp2f1(*jnp.broadcast_arrays(*args)).astype(dtype)
