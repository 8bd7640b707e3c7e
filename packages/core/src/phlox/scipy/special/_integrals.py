"""Exponential, sine, cosine and Fresnel integrals, and the dilogarithm."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import check_one, type_of
from ...numpy._elementwise.angles import sine_quotient
from ...typing import Array, ArrayLike
from ._shared import at_least_single, chebyshev, single_or_double
from ._tables import (
    CI_MIDDLE,
    CI_ROOT,
    CI_ROOT_LOW,
    CI_ROOTS,
    CI_SMALL,
    E1_LARGE,
    E1_MIDDLE,
    EI_6,
    EI_12,
    EI_24,
    EI_48,
    EI_ROOT,
    EI_ROOT_LOW,
    EI_SMALL,
    FRESNEL_C,
    FRESNEL_F,
    FRESNEL_G,
    FRESNEL_S,
    SI_SMALL,
    SICI_F,
    SICI_G,
)


def _inverse(x: Any, edge: float) -> Any:
    """edge / x where x is above the edge, else 1: the argument of series for large x."""
    return jnp.where(x > edge, edge / jnp.where(x > edge, x, 1), 1)


def _from_root(x: Any, slope: Any, root: float, rest: float) -> Any:
    """log(x / r) + (x - r) * slope for r = root + rest, which is no float of the dtype; accurate near r too."""
    high = float(np.asarray(root, type_of(x).dtype))
    # x - high is exact close to the root; the part of the root beyond `high` enters to first order.
    distance = x - high
    close = jnp.abs(distance) < 0.2
    log = jnp.where(close, jnp.log1p(jnp.where(close, distance, 0) / high), jnp.log(x / high))
    return log + distance * slope - (root - high + rest) * (1 / high + slope)


# --- exponential integrals ------------------------------------------------------------------------------

#: of E1(x) + log(x) + gamma = sum of (-1)**(k + 1) x**k / (k k!), highest power first
_E1_SERIES = np.array([-((-1.0) ** k) / (k * math.factorial(k)) for k in range(20, 0, -1)] + [-np.euler_gamma])


@custom_jvp
def _exp1(x: Any) -> Any:
    first = jnp.where((x > 0) & (x <= 1), x, 1)
    small = jnp.polyval(_E1_SERIES.astype(type_of(x).dtype), first) - jnp.log(first)
    middle = chebyshev(E1_MIDDLE, (jnp.clip(x, 1, 4) - 2.5) / 1.5)
    large = chebyshev(E1_LARGE, 2 * _inverse(x, 4) - 1)
    above = jnp.where(x > 1, x, 1)
    out = jnp.where(x <= 1, small, jnp.exp(-above) / above * jnp.where(x <= 4, middle, large))
    return jnp.where(x > 0, out, jnp.where(x == 0, jnp.inf, jnp.nan))


# Derivatives are the integrands: more accurate and cheaper than derivatives of the series.
_exp1.defjvps(lambda t, out, x: -t * jnp.exp(-x) / x)


@custom_jvp
def _expi(x: Any) -> Any:
    y = jnp.where((x > 0) & (x <= 6), x, 1)
    small = _from_root(y, chebyshev(EI_SMALL, y / 3 - 1), EI_ROOT, EI_ROOT_LOW)
    inverse = 1 / jnp.maximum(x, 6)
    large = chebyshev(EI_48, 96 * jnp.minimum(inverse, 1 / 48) - 1)
    for edge, table in ((24, EI_24), (12, EI_12), (6, EI_6)):
        # from 1 / (2 edge) to 1 / edge
        part = chebyshev(table, 4 * edge * jnp.clip(inverse, 0.5 / edge, 1 / edge) - 3)
        large = jnp.where(x <= 2 * edge, part, large)
    # The exponential is of two factors, as it overflows before the result does.
    half = jnp.exp(0.5 * jnp.where(x > 6, x, 6))
    large = jnp.where(x == jnp.inf, jnp.inf, half * (half * inverse * large))
    # Ei(x) = -E1(-x) for x < 0
    out = jnp.where(x > 0, jnp.where(x <= 6, small, large), -_exp1(jnp.where(x < 0, -x, 1)))
    return jnp.where(x == 0, -jnp.inf, jnp.where(x == x, out, jnp.nan))


_expi.defjvps(lambda t, out, x: t * jnp.exp(x) / x)


@jit(inline=True)
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E1, of exp(-t) / t from x to infinity (as ``scipy.special.exp1``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`: inf at 0, nan below.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(exp1(1.0)), 4)
    0.2194
    """
    (x,), dtype = at_least_single("exp1", x)
    return _exp1(x).astype(dtype)


@jit(inline=True)
@docs_from(exp1)
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei, the principal value of the integral of exp(t) / t from -infinity to x (as
    ``scipy.special.expi``).

    Returns:
      An array of the shape and floating dtype of `x`: -inf at 0.

    >>> round(float(expi(1.0)), 4)
    1.8951
    """
    (x,), dtype = at_least_single("expi", x)
    return _expi(x).astype(dtype)


def _expn_series(n: Any, x: Any) -> Any:
    """The power series, for x <= 1."""
    # En(x) = (-x)**(n - 1) / (n - 1)! (digamma(n) - log(x)) - sum of (-x)**m / ((m + 1 - n) m!) over m != n - 1
    one = jnp.ones_like(x)
    start = jnp.zeros_like(x), one, jnp.full_like(x, -np.euler_gamma), one

    def add(k: Any, state: Any) -> Any:
        total, power, digamma, factor = state
        m = k.astype(type_of(x).dtype)
        skipped = m == n - 1
        total = total - jnp.where(skipped, 0, power / jnp.where(skipped, 1, m + 1 - n))
        # (-x)**m / m! and digamma(m + 1) go along until m is n - 1.
        power = power * (-x) / (m + 1)
        go_on = m < n - 1
        digamma = jnp.where(go_on, digamma + 1 / (m + 1), digamma)
        factor = jnp.where(go_on, factor * (-x) / (m + 1), factor)
        return total, power, digamma, factor

    total, _, digamma, factor = lax.fori_loop(0, 30, add, start)
    # Beyond the loop the term with the logarithm is less than the rounding error.
    return total + jnp.where(n > 30, 0, factor * (digamma - jnp.log(x)))


def _expn_fraction(n: Any, x: Any) -> Any:
    """exp(-x) / (x + n - 1 n / (x + n + 2 - 2 (n + 1) / ...)), for x > 1, from its end."""
    terms = 90

    def step(i: Any, tail: Any) -> Any:
        k = (terms - i).astype(type_of(x).dtype)
        return x + n + 2 * (k - 1) - k * (n + k - 1) / tail

    tail = lax.fori_loop(0, terms, step, x + n + 2 * terms)
    return jnp.exp(-x) / tail


@functools.partial(custom_jvp, nondiff_argnums=(0,))
@jit(inline=True)
def _expn(n: Any, x: Any) -> Any:
    small = _expn_series(n, jnp.where((x > 0) & (x <= 1), x, 1))
    large = _expn_fraction(jnp.maximum(n, 1), jnp.where((x > 1) & (x < jnp.inf), x, 1))
    out = jnp.where(x <= 1, small, jnp.where(x == jnp.inf, 0, large))
    # En(0) = 1 / (n - 1), and E0(x) = exp(-x) / x.
    out = jnp.where(x == 0, jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), jnp.inf), out)
    out = jnp.where(n == 0, jnp.exp(-x) / x, out)
    return jnp.where((n >= 0) & (n == jnp.floor(n)) & (x >= 0), out, jnp.nan)


@_expn.defjvp
def _expn_jvp(n: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    # E(-1) is the derivative of E0.
    below = jnp.where(n == 0, jnp.exp(-x) * (1 + x) / (x * x), _expn(jnp.maximum(n - 1, 0), x))
    return _expn(n, x), -t * below


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The generalized exponential integral En, of exp(-x t) / t**n from 1 to infinity (as ``scipy.special.expn``).

    Args:
      n: order, not negative; whole numbers, which have no derivative.
      x: real array that broadcasts with `n`; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where an argument is
      negative, or `n` is not whole.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(expn(2, 1.0)), 4)
    0.1485
    """
    (n, x), dtype = at_least_single("expn", n, x)
    n, x = jnp.broadcast_arrays(lax.stop_gradient(n), x)
    return _expn(n, x).astype(dtype)


# --- sine and cosine integrals --------------------------------------------------------------------------


@custom_jvp
def _sici(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    near = jnp.where(size <= 8, size, 1)
    t = near * near / 32 - 1
    si = near * chebyshev(SI_SMALL, t)
    slope = (near + CI_ROOT) * chebyshev(CI_SMALL, t)
    ci = _from_root(near, slope, CI_ROOT, CI_ROOT_LOW)
    middle = jnp.clip(size, 2.5, 8)
    product = chebyshev(CI_MIDDLE, (middle - 5.25) / 2.75)
    # The zeros are factors, so that values close to them are relatively accurate.
    for root, rest in CI_ROOTS:
        high = float(np.asarray(root, type_of(x).dtype))
        # XLA would add constants that are subtracted one after another.
        product = product * (middle - high) - product * (root - high + rest)
    ci = jnp.where(size > 2.5, product, ci)
    inverse = _inverse(size, 8)
    far = jnp.where((size > 8) & (size < jnp.inf), size, 8)
    # f and g are the auxiliary functions of DLMF 6.2(iii): smooth in 1 / x**2, while sine and cosine oscillate.
    f = chebyshev(SICI_F, 2 * inverse * inverse - 1) / far
    g = chebyshev(SICI_G, 2 * inverse * inverse - 1) / (far * far)
    sin, cos = jnp.sin(far), jnp.cos(far)
    si = jnp.where(size <= 8, si, jnp.where(size == jnp.inf, np.pi / 2, np.pi / 2 - f * cos - g * sin))
    ci = jnp.where(size <= 8, ci, jnp.where(size == jnp.inf, 0, f * sin - g * cos))
    # SciPy has nan for ci(-inf).
    ci = jnp.where(x == 0, -jnp.inf, jnp.where(x == -jnp.inf, jnp.nan, ci))
    known = x == x
    return jnp.where(known, jnp.sign(x) * si, jnp.nan), jnp.where(known, ci, jnp.nan)


_sici.defjvps(lambda t, out, x: (t * sine_quotient(x), t * jnp.cos(x) / x))


@jit(inline=True)
@docs_from(exp1)
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals (as ``scipy.special.sici``).

    Returns:
      ``(si, ci)``: the integral of sin(t) / t from 0 to x, and the negative of that of cos(t) / t from abs(x) to
      infinity; of the shape and floating dtype of `x`.

    >>> [round(float(y), 4) for y in sici(1.0)]
    [0.9461, 0.3374]
    """
    (x,), dtype = at_least_single("sici", x)
    si, ci = _sici(x)
    return si.astype(dtype), ci.astype(dtype)


@custom_jvp
def _fresnel(x: Any) -> tuple[Any, Any]:
    edge = 2.4
    size = jnp.abs(x)
    near = jnp.where(size <= edge, size, 1)
    fourth = jnp.square(near * near)
    t = fourth * (2 / edge**4) - 1
    s, c = near**3 * chebyshev(FRESNEL_S, t), near * chebyshev(FRESNEL_C, t)
    # Beyond 1e15 the oscillation is less than 4e-16.
    far = jnp.where((size > edge) & (size < 1e15), size, edge)
    inverse = jnp.square(jnp.square(_inverse(size, edge)))
    f = chebyshev(FRESNEL_F, 2 * inverse - 1) / (np.pi * far)
    g = chebyshev(FRESNEL_G, 2 * inverse - 1) / (np.pi**2 * far**3)
    sin, cos = _of_half_square(far)
    s = jnp.where(size <= edge, s, jnp.where(size >= 1e15, 0.5, 0.5 - f * cos - g * sin))
    c = jnp.where(size <= edge, c, jnp.where(size >= 1e15, 0.5, 0.5 + f * sin - g * cos))
    sign = jnp.where(x == x, jnp.sign(x), jnp.nan)
    return sign * s, sign * c


def _of_half_square(x: Any) -> tuple[Any, Any]:
    """Sine and cosine of pi x**2 / 2; whole periods are taken from the square before it is rounded."""
    x = jnp.abs(x)
    whole = jnp.floor(x)
    part = x - whole
    # x**2 = whole**2 + 2 whole part + part**2; the first is 0 or 1 modulo 4, the others are reduced by themselves.
    first = jnp.where(whole % 2 == 0, 0, 1)
    angle = (np.pi / 2) * ((first + (2 * whole * part) % 4 + part * part) % 4)
    return jnp.sin(angle), jnp.cos(angle)


_fresnel.defjvps(lambda t, out, x: tuple(t * part for part in _of_half_square(x)))


@jit(inline=True)
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals (as ``scipy.special.fresnel``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      ``(s, c)``: the integrals of sin(pi t**2 / 2) and of cos(pi t**2 / 2) from 0 to x, of the shape and floating dtype
      of `x`.

    Raises:
      UnsupportedError: `x` is complex.

    >>> [round(float(y), 4) for y in fresnel(1.0)]
    [0.4383, 0.7799]
    """
    x = check_one("fresnel", x)
    if dtypes.kind(type_of(x).dtype) == "c":
        raise UnsupportedError(f"fresnel of complex numbers is not there, got {type_of(x).short}")
    (x,), dtype = at_least_single("fresnel", x)
    s, c = _fresnel(x)
    return s.astype(dtype), c.astype(dtype)


# --- the dilogarithm ------------------------------------------------------------------------------------

#: B(2n) / (2n + 1)!, highest power first
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_DILOGARITHM = np.array([*[b / math.factorial(2 * n + 3) for n, b in enumerate(_BERNOULLI)][::-1], 1.0])


@custom_jvp
def _spence(z: Any) -> Any:
    """The integral of log(t) / (1 - t) from 1 to z: with u = -log(z) it is
    u - u**2 / 4 + the sum of B(2n) u**(2n + 1) / (2n + 1)!."""

    def series(u: Any) -> Any:
        square = u * u
        return u * jnp.polyval(_DILOGARITHM.astype(type_of(u).dtype), square) - 0.25 * square

    # The series in log(z) converges fast close to 1, so two reflections move z into [1 / 3, 3]: Li(z) + Li(1 - z) =
    # pi**2 / 6 - log(z) log(1 - z), and Li(z) + Li(1 / z) = -log(z)**2 / 2, with Li(z) = spence(z).
    large, small = z > 3, z < 1 / 3
    y = jnp.where(large, 1 / jnp.where(large, z, 1), z)
    reflected = large | small
    inside = jnp.where(reflected & (y > 0), y, 0.25)
    log = jnp.log(inside)
    low = np.pi**2 / 6 - log * jnp.log1p(-inside) - series(-jnp.log1p(-inside))
    low = jnp.where(y == 0, np.pi**2 / 6, low)
    out = jnp.where(reflected, low, series(-jnp.log(jnp.where(reflected, 1, z))))
    log_large = jnp.log(jnp.where(large, z, 1))
    out = jnp.where(large, -0.5 * log_large * log_large - out, out)
    return jnp.where(z >= 0, out, jnp.nan)


@_spence.defjvp
def _spence_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (z,), (t,) = primals, tangents
    distance = z - 1
    # The quotient is 0 / 0 at 1; the series of log(z) / (1 - z) replaces it there.
    close = jnp.abs(distance) < 1e-3
    near = -1 + distance * (0.5 - distance * (1 / 3 - distance * (0.25 - distance * 0.2)))
    slope = jnp.where(close, near, jnp.log(jnp.where(close, 2, z)) / jnp.where(close, 1, -distance))
    return _spence(z), t * slope


@jit(inline=True)
def spence(x: ArrayLike) -> Array:
    """Spence's function, the integral of log(t) / (1 - t) from 1 to x (as ``scipy.special.spence``).

    It is the dilogarithm of 1 - x.

    Args:
      x: array of any shape, float32 or float64; a Python float also.

    Returns:
      An array of the shape and dtype of `x`; nan where `x` is negative.

    Raises:
      DtypeError: `x` is of another dtype.

    >>> round(float(spence(2.0)), 4)
    -0.8225
    """
    return _spence(single_or_double("spence", x))
