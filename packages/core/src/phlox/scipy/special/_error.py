"""Relatives of the error function: erfcx, Dawson's integral, the Faddeeva function, and Owen's T function."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_inexact
from ...typing import Array, ArrayLike
from ._shared import at_least_single, chebyshev
from ._tables import DAWSON_LARGE, DAWSON_SMALL, ERFCX


@jit(inline=True)
def erfcx(x: ArrayLike) -> Array:
    """exp(x**2) * erfc(x), elementwise, without overflow for large x (as ``scipy.special.erfcx``).

    For real numbers from a Chebyshev series in (x - 3.75) / (x + 3.75) (Shepherd and Laframboise 1981, Chebyshev
    approximation of (1 + 2x) exp(x²) erfc x); for complex ones from `wofz`.

    Args:
      x: real or complex array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and inexact dtype of `x`.

    >>> round(float(erfcx(100.0)), 6)
    0.005642
    """
    (operand,) = promote_inexact(*check("erfcx", x))
    # erfcx(z) = w(i z), w being the Faddeeva function
    if dtypes.kind(type_of(operand).dtype) == "c":
        return _wofz(1j * operand)
    (x,), dtype = at_least_single("erfcx", x)
    above = jnp.abs(x)
    out = erfcx_above(above)
    # erfcx(-x) = 2 exp(x**2) - erfcx(x). For x > 0 the square is not computed: it overflows, and inf in the branch that
    # is not selected makes the derivative nan.
    mirrored = 2 * exp_of_square(1, jnp.where((x < 0) & (x > -1e18), x, 0)) - out
    out = jnp.where(x < 0, jnp.where(x > -1e18, mirrored, jnp.inf), out)
    return jnp.where(x == x, out, jnp.nan).astype(dtype)


def erfcx_above(x: Any) -> Any:
    """`erfcx` of real numbers that are not negative."""
    # At infinity the quotient would be nan.
    t = jnp.where(x > 1e18, 1, (x - 3.75) / (jnp.where(x > 1e18, 0, x) + 3.75))
    return chebyshev(ERFCX, t) / (1 + 2 * x)


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def exp_of_square(factor: float, x: Any) -> Any:
    """exp(factor * x**2) for abs(x) <= 100, where the factor is a power of 2 or its negative."""
    # The square is of two parts, as its rounding error would be multiplied by its size. Multiples of 1 / 16 up to 100
    # have 11 bits, so their squares are exact in float32 too.
    high = jnp.round(x * 16) / 16
    return jnp.exp(factor * high * high) * jnp.exp(factor * (x - high) * (x + high))


@exp_of_square.defjvp
def _exp_of_square_jvp(factor: float, primals: Any, tangents: Any) -> tuple[Any, Any]:
    # That of the product above would be nan where it overflows.
    (x,), (t,) = primals, tangents
    out = exp_of_square(factor, x)
    return out, 2 * factor * x * out * t


@jit(inline=True)
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x (as ``scipy.special.dawsn``).

    Args:
      x: real array of any shape; integers are converted to floats.

    Returns:
      An array of the shape and floating dtype of `x`.

    Raises:
      DtypeError: `x` is complex.

    >>> round(float(dawsn(1.0)), 4)
    0.5381
    """
    (x,), dtype = at_least_single("dawsn", x)
    far = jnp.abs(x) > 5
    near = jnp.where(far, 0, x)
    small = near / (1 + near * near) * chebyshev(DAWSON_SMALL, near * near * (2 / 25) - 1)
    inverse = 1 / jnp.where(far, x, 5)
    large = 0.5 * inverse * chebyshev(DAWSON_LARGE, 50 * inverse * inverse - 1)
    return jnp.where(far, large, small).astype(dtype)


@functools.cache
def _weideman(n: int) -> tuple[float, np.ndarray]:
    """Scale and coefficients of Weideman's rational approximation (1994, Computation of the complex error function)."""
    length = math.sqrt(n / math.sqrt(2))
    # Fourier coefficients of exp(-t**2) (L**2 + t**2), where t = L tan(theta / 2)
    k = np.arange(-2 * n + 1, 2 * n)
    t = length * np.tan(k * math.pi / (4 * n))
    values = np.concatenate([[0.0], np.exp(-t * t) * (length * length + t * t)])
    series = np.real(np.fft.fft(np.fft.fftshift(values))) / (4 * n)
    return length, series[1 : n + 1][::-1]


@custom_jvp
def _wofz(z: Any) -> Any:
    dtype = type_of(z).dtype
    length, coefficients = _weideman(24 if dtype == np.complex64 else 52)
    # The rational approximation holds in the upper half plane; below, w(z) = 2 exp(-z**2) - w(-z).
    upper = jnp.where(jnp.imag(z) < 0, -z, z)
    # Beyond 1e4 two terms of the asymptotic series suffice: the third is 0.75 / z**4.
    far = jnp.abs(upper) > 1e4
    y = jnp.where(far, 1j, upper)
    below = length - 1j * y
    ratio = (length + 1j * y) / below
    near = 2 * jnp.polyval(coefficients.astype(dtype), ratio) / (below * below) + (1 / math.sqrt(math.pi)) / below
    distant = jnp.where(far, upper, 1)
    # Two divisions, as the square of a large number overflows.
    out = jnp.where(far, (1j / math.sqrt(math.pi)) / distant * (1 + 0.5 / distant / distant), near)
    lower = jnp.imag(z) < 0
    square = jnp.where(lower, z, 0)
    return jnp.where(lower, 2 * jnp.exp(-square * square) - out, out).astype(dtype)


_wofz.defjvps(lambda t, w, z: t * (2j / math.sqrt(math.pi) - 2 * z * w).astype(type_of(w).dtype))


@jit(inline=True)
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function exp(-z**2) * erfc(-1j * z), elementwise (as ``scipy.special.wofz``).

    By the rational approximation of Weideman (1994, Computation of the complex error function).

    Args:
      z: real or complex array of any shape.

    Returns:
      An array of the shape of `z`, complex.

    >>> round(float(wofz(0.0).real), 4)
    1.0
    """
    (z,) = promote_inexact(*check("wofz", z))
    return _wofz(jnp.asarray(z, dtypes.to_complex(type_of(z).dtype)))


# --- Owen's T function ----------------------------------------------------------------------------------


@custom_jvp
def _owens_t(h: Any, a: Any) -> Any:
    dtype = type_of(h).dtype
    h, size = jnp.abs(h), jnp.abs(a)
    # T(h, a) for a > 1 from T(a h, 1 / a), in which the integral is over a part of [0, 1].
    over = size > 1
    slope = jnp.where(over, 1 / jnp.where(over, size, 1), size)
    # 0 * inf would be nan.
    height = jnp.where(over, jnp.where(h == 0, 0, h * size), h)
    # Beyond 40 / h the integrand is less than the smallest number.
    end = jnp.minimum(slope, 40 / jnp.maximum(height, 1))
    # T(h, a) = exp(-h**2 / 2) / (2 pi) times the integral of exp(-(h u)**2 / 2) / (1 + u**2) over u from 0 to a, here
    # by Gauss's rule.
    nodes, weights = np.polynomial.legendre.leggauss(20 if dtype == np.float32 else 40)
    u = jnp.expand_dims(end, -1) * (0.5 * (nodes + 1)).astype(dtype)
    # Limited, as the square of a large height is inf, and inf * 0 is nan.
    squares = jnp.square(jnp.minimum(jnp.expand_dims(height, -1), 1e4))
    inside = jnp.exp(-0.5 * squares * u * u) / (1 + u * u)
    outside = exp_of_square(-0.5, jnp.minimum(height, 100))
    part = end * outside * jnp.sum(inside * (weights / (4 * math.pi)).astype(dtype), axis=-1)
    tail, beyond = 0.5 * lax.erfc(h * math.sqrt(0.5)), 0.5 * lax.erfc(height * math.sqrt(0.5))
    out = jnp.where(over, 0.5 * (tail + beyond) - tail * beyond - part, part)
    # T(inf, a) = 0, and T(h, inf) is half of the upper tail at h.
    out = jnp.where((h == jnp.inf) & (a == a), 0, jnp.where(size == jnp.inf, 0.5 * tail, out))
    return jnp.where((h == h) & (a == a), jnp.sign(a) * out, jnp.nan).astype(dtype)


@_owens_t.defjvp
def _owens_t_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (h, a), (s, t) = primals, tangents
    density = jnp.exp(-0.5 * h * h)
    by_h = -0.5 / math.sqrt(2 * math.pi) * density * lax.erf(a * h * math.sqrt(0.5))
    by_a = density * jnp.exp(-0.5 * h * h * a * a) / (2 * math.pi * (1 + a * a))
    out = _owens_t(h, a)
    return out, (s * by_h + t * by_a).astype(type_of(out).dtype)


@jit(inline=True)
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function, elementwise (as ``scipy.special.owens_t``).

    The probability that X > h and 0 < Y < a X for independent standard normal X and Y.

    Args:
      h, a: real arrays that broadcast with each other; integers are converted to floats.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: an argument is complex.

    >>> round(float(owens_t(0.0, 1.0)), 4)
    0.125
    """
    (h, a), dtype = at_least_single("owens_t", h, a)
    return _owens_t(*jnp.broadcast_arrays(h, a)).astype(dtype)
