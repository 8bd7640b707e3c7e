"""Gamma, beta and zeta functions, and functions computed from them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.errors import DtypeError, OptionError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, integer, type_of
from ..._operands.promotion import promote_inexact, promoted_inexact
from ._elementary import real_inexact

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike


def gammaln(x: ArrayLike) -> Array:
    """log(abs(gamma(x))), elementwise (as ``scipy.special.gammaln``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`; inf at 0 and the negative integers.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(gammaln(1.0)), 3)
    0.0
    """
    return lax.lgamma(*promote_inexact(*check("gammaln", x)))


@jit(inline=True)
def gammasgn(x: ArrayLike) -> Array:
    """The sign of gamma(x), elementwise, nan at negative integers (as ``scipy.special.gammasgn``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of 1, -1 and nan of the shape and floating dtype of `x`; at 0 the sign of the zero.

    Raises:
      DtypeError: `x` is complex.

    >>> gammasgn(-0.5)
    Array(-1., dtype=float32)
    """
    (x,) = real_inexact("gammasgn", x)
    floor = jnp.floor(x)
    negative = x < 0
    pole = (negative & (x == floor)) | jnp.isnan(x)
    minus = (negative & (floor % 2 != 0)) | ((x == 0) & jnp.signbit(x))
    dtype = type_of(x).dtype
    return jnp.select([pole, minus], [np.asarray(np.nan, dtype), np.asarray(-1, dtype)], np.asarray(1, dtype))


def _real_alone(function: str, x: Any) -> Any:
    (x,) = promote_inexact(*check(function, x))
    if dtypes.kind(type_of(x).dtype) == "c":
        raise UnsupportedError(f"{function} of complex numbers is not there, got {type_of(x).short}")
    return x


@jit(inline=True)
def loggamma(x: ArrayLike) -> Array:
    """log(gamma(x)), elementwise, of real numbers (as ``scipy.special.loggamma``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`; nan where `x` is not positive.

    Raises:
      UnsupportedError: `x` is complex.

    >>> round(float(loggamma(1.0)), 3)
    0.0
    """
    x = _real_alone("loggamma", x)
    return jnp.where(x > 0, lax.lgamma(x), jnp.nan)  # type: ignore[operator]


@jit(inline=True)
def gamma(x: ArrayLike) -> Array:
    """The gamma function of real numbers, elementwise (as ``scipy.special.gamma``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`; nan at the negative integers.

    Raises:
      UnsupportedError: `x` is complex.

    >>> round(float(gamma(4.0)), 3)
    6.0
    """
    x = _real_alone("gamma", x)
    return gammasgn(x) * lax.exp(lax.lgamma(x))


@jit(inline=True, static_argnames="exact")
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = gamma(n + 1), elementwise, and 0 below 0 (as ``scipy.special.factorial``).

    Args:
      n: real array of any shape; integers are converted to floats.
      exact: True, which asks for exact integers, is not supported.

    Returns:
      An array of the shape and floating dtype of `n`.

    Raises:
      UnsupportedError: `exact` is True.
      DtypeError: `n` is complex.

    >>> round(float(factorial(3)), 3)
    6.0
    """
    if exact:
        raise UnsupportedError("factorial with exact=True", instead="math.factorial")
    (n,) = promote_inexact(*check("factorial", n))
    return jnp.where(n < 0, 0, lax.exp(lax.lgamma(n + 1)))


@jit(inline=True, static_argnames="repetition")
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things, elementwise (as ``scipy.special.comb``).

    Args:
      N, k: real arrays that broadcast with each other; integers are converted to floats.
      repetition: whether a thing may be chosen several times.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; 0 where there is no such choice.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(comb(4, 2)), 3)
    6.0
    """
    N, k = promoted_inexact("comb", N, k)
    if repetition:
        return jnp.where((k == 0) & (N >= 0), 1.0, comb(N + k - 1, k))
    there = (k <= N) & (N >= 0) & (k >= 0)
    n, m = jnp.where(there, N, 0.0), jnp.where(there, k, 0.0)
    return jnp.where(there, lax.exp(gammaln(n + 1) - gammaln(m + 1) - gammaln(n + 1 - m)), 0.0)


@jit(inline=True)
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """gamma(z + m) / gamma(z), elementwise (as ``scipy.special.poch``).

    Args:
      z, m: real arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: an argument is complex.

    >>> poch(2.0, 0.0)
    Array(1., dtype=float32)
    """
    return _poch(*real_inexact("poch", z, m))


@custom_jvp
def _poch(z: Any, m: Any) -> Any:
    return jnp.where(m == 0.0, jnp.asarray(1, type_of(z).dtype), gamma(z + m) / gamma(z))


@_poch.defjvp
def _poch_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (z, m), (s, t) = primals, tangents
    out = _poch(z, m)
    high = digamma(z + m)
    return out, (high - digamma(z)) * out * s + high * out * t


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
    a, b = promoted_inexact("betaln", a, b)
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    small = lax.lgamma(a) + (lax.lgamma(b) - lax.lgamma(a + b))
    return jnp.where(b < 8, small, lax.lgamma(a) + _log_ratio(a, b))  # type: ignore[operator]


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
    t = (1.0 / b) ** 2
    w = _SERIES[5] * sums[5] * t + _SERIES[4] * sums[4]
    for c, s in zip(_SERIES[3::-1], sums[3::-1], strict=True):
        w = w * t + c * s
    w = w * (share / b)
    u, v = (b + (a - 0.5)) * lax.log1p(h), a * (lax.log(b) - 1.0)
    return jnp.where(u <= v, (w - v) - u, (w - u) - v)


@jit(inline=True)
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """gamma(a) * gamma(b) / gamma(a + b), elementwise (as ``scipy.special.beta``).

    Args:
      a, b: real arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(beta(1.0, 1.0)), 3)
    1.0
    """
    a, b = real_inexact("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * lax.exp(betaln(a, b))


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
    return lax.betainc(*promoted_inexact("betainc", a, b, x))


def digamma(x: ArrayLike) -> Array:
    """The derivative of `gammaln`, elementwise (as ``scipy.special.digamma``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`; nan at 0 and the negative integers.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(digamma(1.0)), 3)
    -0.577
    """
    return lax.digamma(*promote_inexact(*check("digamma", x)))


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
    return lax.igamma(*promoted_inexact("gammainc", a, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """1 - gammainc(a, x), elementwise (as ``scipy.special.gammaincc``), the upper incomplete gamma function.

    Args:
      a: shape parameter, a positive real array; integers are converted to floats.
      x: lower limit of the integral, not negative; an array that broadcasts with `a`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where an argument is negative.

    Raises:
      DtypeError: an argument is complex.

    >>> gammaincc(1.0, 0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return lax.igammac(*promoted_inexact("gammaincc", a, x))


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
    a, d = promote_inexact(*check("multigammaln", a, d))
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
    count = operator.index(n)
    if count < 0:
        raise OptionError(f"bernoulli: n={count}")
    first = jnp.array([1, -1 / 2, 1 / 6])
    if count < 3:
        return first[: count + 1]
    # Euler's formula: B_m from the zeta function at even m; 50 terms of the sum suffice.
    out = jnp.zeros(count + 1).at[:3].set(first)
    m = jnp.arange(4, count + 1, 2, dtype=out.dtype)
    factor = (1.0 / np.pi**2) * jnp.cumprod(-(m - 1) * m / 4 / np.pi**2)
    k = jnp.arange(2, 50, dtype=out.dtype)
    return out.at[4::2].set(factor * (1 + jnp.sum(k[:, None] ** -m[None, :], axis=0)))
