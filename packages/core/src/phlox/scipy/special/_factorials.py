"""gamma, factorial, comb, poch and beta: products of gamma functions, accurate to a few units in the last place.

The exponential of a logarithm, as in JAX, multiplies the rounding error of the logarithm by its size: 180 units at 30!
in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.derivatives.differentiate import jvp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_inexact, to_dtype
from ...typing import Array, ArrayLike
from ._gamma import STIRLING, betaln, complex_loggamma, gammasgn, log_beta, poles_cancel
from ._shared import polynomial, real_inexact

# gamma(2 + t) for t from 0 to 1 as a quotient of polynomials, highest power first, of Cephes (gamma.c)
_NUMERATOR = [
    1.60119522476751861407e-4,
    1.19135147006586384913e-3,
    1.04213797561761569935e-2,
    4.76367800457137231464e-2,
    2.07448227648435975150e-1,
    4.94214826801497100753e-1,
    1.0,
]
_DENOMINATOR = [
    -2.31581873324120129819e-5,
    5.39605580493303397842e-4,
    -4.45641913851797240494e-3,
    1.18139785222060435552e-2,
    3.58236398605498653373e-2,
    -2.34591795718243348568e-1,
    7.14304917030273074085e-2,
    1.0,
]


def _rounded_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of operands of one dtype, computed in float32 where that is narrower."""

    def computed(*operands: Any) -> Any:
        dtype = type_of(operands[0]).dtype
        if dtype.itemsize >= 4:
            return function(*operands)
        return to_dtype(function(*(to_dtype(x, dtypes.float32) for x in operands)), dtype)

    return computed


def _is_double(x: Any) -> bool:
    return bool(type_of(x).dtype == dtypes.float64)


def _stirling_series(x: Any) -> Any:
    """log(gamma(x)) less Stirling's formula, for x from 8 (4 in float32) on"""
    inverse = 1 / x
    return polynomial(inverse * inverse, STIRLING if _is_double(x) else STIRLING[-4:]) * inverse


def _positive_gamma(x: Any) -> Any:
    """gamma(x) for float32 or float64 of 0 and more"""
    edge, end = 8, 200 if _is_double(x) else 40
    small = jnp.where(x < edge, x, 2.0)
    share = small - jnp.floor(small)
    out = polynomial(share, _NUMERATOR) / polynomial(share, _DENOMINATOR)
    for k in range(1, edge - 2):
        # Down to the factor x - floor(x) + 2; the quotient is gamma there.
        out = out * jnp.where(small - k >= 2, small - k, 1.0)
    # gamma(x) = gamma(x + 2) / (x (x + 1)) = gamma(x + 1) / x
    out = out / (jnp.where(small < 2, small, 1.0) * jnp.where(small < 1, small + 1, 1.0))
    large = jnp.minimum(jnp.where(x < edge, 30.0, x), end)
    # Half of the power, as all of it overflows before gamma does. The difference from x / 2 is exact.
    power = lax.pow(large, large * 0.5 - 0.25)
    series = np.sqrt(2 * np.pi).item() * lax.exp(_stirling_series(large))
    return jnp.where(x < edge, out, power * (power * lax.exp(-large)) * series)


def _at_whole_numbers(x: Any, value: Any) -> Any:
    """The rounded factorial of x - 1 where `x` is a positive whole number, else `value`."""
    table = np.asarray([float(math.factorial(n)) for n in range(170 if _is_double(x) else 34)], type_of(x).dtype)
    is_whole = (x == jnp.floor(x)) & (x >= 1) & (x <= len(table))
    index = jnp.where(is_whole, x, 1).astype(np.int32) - 1
    return jnp.where(is_whole, jnp.take(table, index, mode="clip"), value)


@custom_jvp
@_rounded_once
def _gamma(x: Any) -> Any:
    size = jnp.abs(x)
    positive = _at_whole_numbers(size, _positive_gamma(size))
    # gamma(x) gamma(1 - x) = pi / sin(pi x), by abs(x), which is exact where 1 - x is rounded
    negative = -1 / ((x * positive) * (x * jnp.sinc(x)))
    out = jnp.where(x == 0, 1 / x, jnp.where(x < 0, negative, positive))
    return jnp.where((x < 0) & (x == jnp.floor(x)), np.nan, out)


_gamma.defjvps(lambda t, out, x: t * (out * lax.digamma(x)))


@jit(inline=True)
def gamma(x: ArrayLike) -> Array:
    """The gamma function, elementwise (as ``scipy.special.gamma``).

    Args:
      x: array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`; nan at the negative integers, and at complex zero.

    >>> round(float(gamma(4.0)), 3)
    6.0
    """
    (x,) = promote_inexact(*check("gamma", x))
    if dtypes.kind(type_of(x).dtype) == "c":
        return jnp.exp(complex_loggamma(x))
    return _gamma(x)


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
    (n,) = real_inexact("factorial", n)
    out = jnp.where(n < 0, 0, _factorial(jnp.where(n < 0, 0, n)))
    return to_dtype(out, type_of(n).dtype, type_of(n).weak_type)


def _factorial(n: Any) -> Any:
    # n gamma(n), as n + 1 may be rounded, but not near 0
    near = n < 1
    out = _gamma(jnp.where(near, n + 1, n))
    return jnp.where(near, out, n * out)


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
    N, k = real_inexact("comb", N, k)
    if repetition:
        return jnp.where((k == 0) & (N >= 0), 1.0, comb(N + k - 1, k))
    is_inside = (k <= N) & (N >= 0) & (k >= 0)
    # Outside of the triangle the gamma functions have poles; 0 takes their place, so that derivatives are finite.
    out = jnp.where(is_inside, _comb(jnp.where(is_inside, N, 0.0), jnp.where(is_inside, k, 0.0)), 0.0)
    return to_dtype(out, type_of(N).dtype, type_of(N).weak_type)


@custom_jvp
@_rounded_once
def _comb(n: Any, k: Any) -> Any:
    least = jnp.minimum(k, n - k)
    out = _poch(n - least + 1, least) / _factorial(least)
    # Stirling's formulas where factors overflow
    out = jnp.where((out > 0) & (out < np.inf), out, _large_comb(n, least))
    # The error of a few units is less than 1/2 up to here.
    is_whole = (n == jnp.floor(n)) & (k == jnp.floor(k)) & (out < (2.0**48 if _is_double(n) else 2.0**20))
    return jnp.where(is_whole, jnp.round(out), out)


def _large_comb(n: Any, k: Any) -> Any:
    k = jnp.maximum(k, 8)
    n = jnp.maximum(n, 2 * k)
    rest = n - k
    corrections = _stirling_series(n) - _stirling_series(k) - _stirling_series(rest)
    powers = lax.pow(n / k, k) * lax.pow(n / rest, rest)
    # Two roots, as XLA divides by the product of two divisors, which may overflow.
    return powers * lax.exp(corrections) * (lax.sqrt(n / rest) / lax.sqrt(2 * np.pi * k))


def digamma_change(z: Any, m: Any) -> Any:
    """``digamma(z + m) - digamma(z)`` for z > 0 and m >= 0, without their cancellation."""
    _, slope = jvp(lambda z: log_beta(z, jnp.where(m == 0, 1, m)), (z,), (jnp.ones_like(z),))
    return jnp.where(m == 0, 0, -slope)


_comb.defjvps(
    lambda t, out, n, k: digamma_change(n - k + 1, k) * out * t,
    lambda t, out, n, k: (lax.digamma(n - k + 1) - lax.digamma(k + 1)) * out * t,
)


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


def _is_turned(z: Any, m: Any) -> Any:
    """Whether (z)_m = (-1)**m (1 - z - m)_m, for whole m, has positive arguments where (z)_m has those beside poles."""
    return (m == jnp.floor(m)) & (z < 1) & (z + m < 1)


def _is_zero_of_poch(z: Any, m: Any) -> Any:
    """Whether gamma(z) is infinite and gamma(z + m) is not."""
    return (z <= 0) & (z == jnp.floor(z)) & ~_is_turned(z, m) & (m == m)


@custom_jvp
@_rounded_once
def _poch(z: Any, m: Any) -> Any:
    turned, zero = _is_turned(z, m), _is_zero_of_poch(z, m)
    odd = turned & (m % 2 != 0)
    z = jnp.where(turned, 1 - z - m, jnp.where(zero, 1, z))
    total = z + m
    # gamma multiplies the rounding error of the sum by its logarithmic derivative, roughly log(total).
    rounded = total - z
    rest = (z - (total - rounded)) + (m - rounded)
    change = jnp.where((rest == 0) | (total < 1) | (total == np.inf), 0.0, rest * lax.log(jnp.abs(total)))
    out = _gamma(total) * (1 + change) / _gamma(z)
    # The quotient of Stirling's formulas, where the gamma functions overflow
    start, end = (8, 170) if _is_double(z) else (4, 34)
    is_large = (jnp.minimum(z, total) >= start) & (jnp.maximum(z, total) > end) & jnp.isfinite(total)
    base, more = jnp.where(is_large, z, 100.0), jnp.where(is_large, m, 0.0)
    sum_ = base + more
    exponent = (sum_ - 0.5) * lax.log1p(more / base) - more + (_stirling_series(sum_) - _stirling_series(base))
    out = jnp.where(is_large, lax.pow(base, more) * lax.exp(exponent), out)
    # 1 also where gamma(z) overflows, and the quotient would be nan
    out = jnp.where(m == 0.0, jnp.asarray(1, type_of(z).dtype), out)
    return jnp.where(zero, 0, jnp.where(odd, -out, out))


def _slope_by_z(t: Any, out: Any, z: Any, m: Any) -> Any:
    turned, zero = _is_turned(z, m), _is_zero_of_poch(z, m)
    start = jnp.where(turned, 1 - z, jnp.where(zero, 1, z))
    end = jnp.where(turned, 1 - z - m, z + m)
    # 1 / gamma has the slope (-1)**n n! at -n.
    at_zero = (1 - 2 * (z % 2)) * _gamma(1 - jnp.where(zero, z, 0)) * _gamma(jnp.where(zero, z + m, 1))
    least = jnp.minimum(start, end)
    change = jnp.sign(jnp.where(turned, -m, m)) * digamma_change(jnp.where(least > 0, least, 1), jnp.abs(m))
    change = jnp.where(least > 0, change, lax.digamma(end) - lax.digamma(start))
    return jnp.where(zero, at_zero, change * out) * t


_poch.defjvps(_slope_by_z, lambda t, out, z, m: lax.digamma(z + m) * out * t)


@jit(inline=True)
@docs_from(betaln)
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """gamma(a) * gamma(b) / gamma(a + b), elementwise (as ``scipy.special.beta``).

    >>> round(float(beta(1.0, 1.0)), 3)
    1.0
    """
    a, b = real_inexact("beta", a, b)
    return _beta(a, b)


@custom_jvp
@_rounded_once
def _beta(a: Any, b: Any) -> Any:
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    out = _gamma(low) / _poch(high, low)
    # At a pole of gamma(a + b) alone the result is 0: its sign does not matter.
    is_pole = (a + b < 0) & (a + b == jnp.floor(a + b))
    sign = gammasgn(a) * gammasgn(b) * jnp.where(is_pole, 1, gammasgn(a + b))
    # Where the poles cancel, beta(a, b) has the sign (-1)**b.
    sign = jnp.where(poles_cancel(low, high), 1 - 2 * (high % 2), sign)
    # Limits, and factors that overflow, are left to the logarithm.
    return jnp.where((out != 0) & jnp.isfinite(out), out, sign * lax.exp(log_beta(a, b)))


@_beta.defjvp
def _beta_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    out = _beta(*primals)
    return out, out * jvp(log_beta, primals, tangents)[1]
