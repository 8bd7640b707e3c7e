"""Gamma, beta and zeta functions, and functions computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import DtypeError, OptionError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, integer, type_of
from ..._operands.promotion import promote_inexact
from ...typing import Array, ArrayLike
from ._shared import polynomial, real_inexact


@jit(inline=True)
def gammaln(x: ArrayLike) -> Array:
    """log(abs(gamma(x))), elementwise (as ``scipy.special.gammaln``), accurate near 1 and 2 too.

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`; inf at 0 and the negative integers.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(gammaln(1.0)), 3)
    0.0
    """
    return lax.lgamma(*real_inexact("gammaln", x))


@jit(inline=True)
@docs_from(gammaln)
def gammasgn(x: ArrayLike) -> Array:
    """The sign of gamma(x), elementwise, nan at negative integers (as ``scipy.special.gammasgn``).

    Returns:
      An array of 1, -1 and nan of the shape and floating dtype of `x`; at 0 the sign of the zero.

    >>> gammasgn(-0.5)
    Array(-1., dtype=float32)
    """
    (x,) = real_inexact("gammasgn", x)
    floor = jnp.floor(x)
    negative = x < 0
    pole = (negative & (x == floor)) | jnp.isnan(x)
    # gamma(-0.0) is -inf: the sign of 0 counts.
    minus = (negative & (floor % 2 != 0)) | ((x == 0) & jnp.signbit(x))
    dtype = type_of(x).dtype
    return jnp.select([pole, minus], [np.asarray(np.nan, dtype), np.asarray(-1, dtype)], np.asarray(1, dtype))


#: B(2k) / (2k (2k - 1)), highest power first
STIRLING = [
    -174611 / 125400,
    43867 / 244188,
    -3617 / 122400,
    1 / 156,
    -691 / 360360,
    1 / 1188,
    -1 / 1680,
    1 / 1260,
    -1 / 360,
    1 / 12,
]


def complex_loggamma(z: Any) -> Any:
    """The branch that is real for positive numbers, with a cut along the negative ones; nan at the poles."""
    dtype = type_of(z).dtype
    x, y = jnp.real(z), jnp.imag(z)
    missing = ((y == 0) & (x <= 0) & (x == jnp.floor(x))) | jnp.isnan(z)
    z = jnp.where(missing, 1, z)
    # signbit, because -0.0 is below the cut along the negative axis and y < 0 does not see it.
    below, left = jnp.signbit(y), x < 0.5
    # For numbers above the real axis; those below it are their conjugates.
    upper = jnp.where(below, jnp.conj(z), z)
    right = jnp.where(left, 1 - upper, upper)
    # Stirling's series, eight places further for small numbers.
    near = jnp.abs(right) < 8
    far = jnp.where(near, right + 8, right)
    inverse = 1 / far
    series = polynomial(inverse * inverse, STIRLING) * inverse
    value = (far - 0.5) * jnp.log(far) - far + 0.5 * np.log(2 * np.pi).item() + series
    small = jnp.where(near, right, 1)
    # Logarithms of pairs of factors: each factor has an argument below pi / 2, so a pair stays on the principal branch,
    # and the product of all eight would not.
    shift = sum((jnp.log((small + k) * (small + k + 1)) for k in (2, 4, 6)), jnp.log(small * (small + 1)))
    value = jnp.where(near, value - shift, value)
    # gamma(z) gamma(1 - z) = pi / sin(pi z), and sin(pi z) = (1 - exp(2 pi i z)) exp(pi i (1 / 2 - z)) / 2
    across = jnp.where(left, upper, 0.25 + 1j)
    # exp(2 pi i z) has period 1: the whole part is removed before the multiplication by pi, which would round it. Close
    # to a pole 1 - exp(…) cancels, hence expm1.
    turn = lax.complex(jnp.real(across) - jnp.round(jnp.real(across)), jnp.abs(jnp.imag(across)))
    phase = lax.complex(-jnp.imag(across), jnp.real(across) - 0.5) * np.pi
    reflected = np.log(2 * np.pi).item() + phase - jnp.log(-jnp.expm1(2j * np.pi * turn)) - value
    value = jnp.where(left, reflected, value)
    value = jnp.where(below, jnp.conj(value), value)
    return jnp.where(missing, complex(np.nan, np.nan), value).astype(dtype)


@jit(inline=True)
def loggamma(x: ArrayLike) -> Array:
    """log(gamma(x)), elementwise (as ``scipy.special.loggamma``).

    Args:
      x: array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`; nan where a real number is negative, and at the poles of complex
      ones, whose cut is along the negative numbers.

    >>> round(float(loggamma(1.0)), 3)
    0.0
    """
    (x,) = promote_inexact(*check("loggamma", x))
    if dtypes.kind(type_of(x).dtype) == "c":
        return complex_loggamma(x)
    return jnp.where(x >= 0, gammaln(x), jnp.nan)


# --- incomplete functions, derivatives ------------------------------------------------------------------


@jit(inline=True)
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log(abs(beta(a, b))), elementwise (as ``scipy.special.betaln``).

    Args:
      a, b: real arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(betaln(1.0, 1.0)), 3)
    0.0
    """
    return log_beta(*real_inexact("betaln", a, b))


def log_beta(a: Any, b: Any) -> Any:
    # Not by `minimum`, whose derivative multiplies an infinite one by 0.
    a, b = jnp.where(a <= b, a, b), jnp.where(a <= b, b, a)
    # Where a is a negative whole number, and b one up to -a, the poles of the gamma functions cancel.
    finite = poles_cancel(a, b)
    first, last = jnp.where(finite, 1 - a - b, a), jnp.where(finite, 1 - a, a + b)
    # Stirling's formula needs both b and a + b far from 0. Of nan neither holds, so that `small` carries it on.
    near = ~((b >= 8) & (a + b >= 8)) | finite
    small = gammaln(first) + (gammaln(b) - gammaln(last))
    # Not at small or infinite numbers, whose powers overflow.
    far = ~near & (b < np.inf)
    large = gammaln(a) + _log_ratio(jnp.where(far, a, 1), jnp.where(far, b, 8))
    out = jnp.where(near, small, large)
    out = jnp.where((b == np.inf) & (a > 0), -np.inf, out)
    return jnp.where((a == 0) & (b >= 0), np.inf, out)


def poles_cancel(a: Any, b: Any) -> Any:
    return (a < 0) & (a == jnp.floor(a)) & (b > 0) & (b == jnp.floor(b)) & (a + b <= 0)


#: coefficients of the asymptotic series of lgamma, as in cdflib's algdiv
_SERIES = (
    0.833333333333333e-01,
    -0.277777777760991e-02,
    0.793650666825390e-03,
    -0.595202931351870e-03,
    0.837308034031215e-03,
    -0.165322962780713e-02,
)


def _log_ratio(a: Any, b: Any) -> Any:
    """log(gamma(b) / gamma(a + b)) for b >= 8 and a <= b, without cancellation of large numbers."""
    h = a / b
    x, share = 1 / (1 + h), h / (1 + h)
    # (1 - x**n) / (1 - x) for n = 1, 3, … 11
    sums: list[Any] = [1.0]
    for _ in range(5):
        sums.append(1.0 + (x + x * x * sums[-1]))
    # w is the difference of the corrections to Stirling's formula at b and a + b, by Horner's rule in 1 / b**2.
    t = (1.0 / b) ** 2
    w = _SERIES[5] * sums[5] * t + _SERIES[4] * sums[4]
    for c, s in zip(_SERIES[3::-1], sums[3::-1], strict=True):
        w = w * t + c * s
    w = w * (share / b)
    # The ratio of a small and the largest numbers is subnormal: a zero to processors.
    u = jnp.where(jnp.abs(h) < jnp.finfo(type_of(h).dtype).tiny, a, (b + (a - 0.5)) * lax.log1p(h))
    v = a * (lax.log(b) - 1.0)
    # As in algdiv, the larger of u and v is subtracted first.
    return jnp.where(u <= v, (w - v) - u, (w - u) - v)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, elementwise (as ``scipy.special.betainc``).

    Args:
      a, b: positive real arrays; integers are converted to floats.
      x: upper limit of the integral, between 0 and 1; all three broadcast with each other.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `x` is not between 0 and 1.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(betainc(1.0, 1.0, 0.5)), 3)
    0.5
    """
    return lax.betainc(*real_inexact("betainc", a, b, x))


@docs_from(gammaln)
def digamma(x: ArrayLike) -> Array:
    """The derivative of `gammaln`, elementwise (as ``scipy.special.digamma``).

    Returns:
      An array of the shape and floating dtype of `x`; nan at 0 and the negative integers.

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    return lax.digamma(*real_inexact("digamma", x))


@jit(inline=True)
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order `n` of `digamma`, elementwise (as ``scipy.special.polygamma``).

    Args:
      n: order, a non-negative integer or an array of integers that broadcasts with `x`; 0 gives `digamma` itself.
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: `n` is not an integer dtype, or `x` is complex.

    >>> round(float(polygamma(1, 1.0)), 3)
    1.645
    """
    n = check_one("polygamma", n)
    if dtypes.kind(type_of(n).dtype) not in "iu":
        raise DtypeError(f"polygamma: n must be whole numbers, got {type_of(n).short}")
    return lax.polygamma(*real_inexact("polygamma", n, x))


@jit(inline=True)
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, elementwise (as ``scipy.special.gammainc``).

    Args:
      a: shape parameter, a positive real array; integers are converted to floats.
      x: upper limit of the integral, not negative; an array that broadcasts with `a`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where an argument is negative.

    Raises:
      DtypeError: an argument is complex.

    >>> gammainc(1.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    a, x = real_inexact("gammainc", a, x)
    return _at_limits(lax.igamma(a, x), a, x, 0)


@jit(inline=True)
@docs_from(gammainc)
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """1 - gammainc(a, x), elementwise (as ``scipy.special.gammaincc``), the upper incomplete gamma function.

    Args:
      x: lower limit of the integral, not negative; an array that broadcasts with `a`.

    >>> gammaincc(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    a, x = real_inexact("gammaincc", a, x)
    return _at_limits(lax.igammac(a, x), a, x, 1)


def _at_limits(value: Any, a: Any, x: Any, limit: int) -> Any:
    """The values for `a` = inf, which is `limit`, and for 0, where lax (as jax) has nan; nan where both are inf."""
    value = jnp.where((a == np.inf) & (x >= 0), jnp.where(x == np.inf, np.nan, limit), value)
    return jnp.where((a == 0) & (x > 0), 1 - limit, value)


@jit(inline=True, static_argnames="d")
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function, elementwise (as ``scipy.special.multigammaln``).

    Args:
      a: real array of any shape, above (d - 1) / 2; integers are converted to floats.
      d: dimension, an integer known while tracing.

    Returns:
      An array of the shape and floating dtype of `a`.

    Raises:
      ArgumentError: `d` is not an integer.
      DtypeError: `a` is complex.

    >>> round(float(multigammaln(1.0, 1)), 3)
    0.0
    """
    size = integer("multigammaln", "d", d)
    a, d = real_inexact("multigammaln", a, d)
    halves = np.arange(size) / 2
    terms = gammaln(jnp.expand_dims(a, -1) - halves.astype(type_of(a).dtype))
    return jnp.sum(terms, axis=-1) + 0.25 * d * (d - 1) * np.log(np.pi).item()


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B0 to Bn (as ``scipy.special.bernoulli``).

    Args:
      n: index of the last number, a non-negative Python integer.

    Returns:
      A vector of n + 1 numbers, float32 (float64 in x64 mode).

    Raises:
      OptionError: `n` is negative.

    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    count = integer("bernoulli", "n", n)
    if count < 0:
        raise OptionError(f"bernoulli: n={count}")
    first = jnp.array([1, -1 / 2, 1 / 6])
    if count < 3:
        return first[: count + 1]
    # Euler's formula: B_m from the zeta function at even m
    out = jnp.zeros(count + 1).at[:3].set(first)
    m = jnp.arange(4, count + 1, 2, dtype=out.dtype)
    factor = (1.0 / np.pi**2) * jnp.cumprod(-(m - 1) * m / 4 / np.pi**2)
    return out.at[4::2].set(factor * lax.zeta(m, jnp.ones_like(m)))
