"""The normal distribution function, its logarithm and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, OptionError
from ...typing import Array, ArrayLike
from ._error import erfcx_above, exp_of_square
from ._shared import single_or_double


@jit(inline=True)
def ndtr(x: ArrayLike) -> Array:
    """The standard normal distribution function, elementwise (as ``scipy.special.ndtr``).

    Args:
      x: array of any shape, float32 or float64; a Python float also.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      DtypeError: `x` is of another dtype.

    >>> ndtr(0.0)
    Array(0.5, dtype=float32)
    """
    return _ndtr(single_or_double("ndtr", x))


def _ndtr(x: Any) -> Any:
    half_root = 0.5 * np.sqrt(np.asarray(2, x.dtype))
    w = x * half_root
    z = jnp.abs(w)
    tail = lax.erfc(z)
    # 1 + erf loses its digits in the left tail, where erfc keeps them. (The three cases are those of Cephes.)
    out = jnp.where(z < half_root, 1 + lax.erf(w), jnp.where(w > 0, 2 - tail, tail))
    return (0.5 * out).astype(x.dtype)


@jit(inline=True, static_argnames="series_order")
@docs_from(ndtr)
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), elementwise, accurate far below 0 too (as ``scipy.special.log_ndtr``).

    Args:
      series_order: a number from 0 to 30, that of the terms of a series in JAX; here all values have all digits.

    Raises:
      ArgumentError: `series_order` is not an integer.
      OptionError: `series_order` is not from 0 to 30.

    >>> round(float(log_ndtr(0.0)), 3)
    -0.693
    """
    if not isinstance(series_order, int):
        raise ArgumentError(f"log_ndtr: series_order={series_order!r} must be an integer")
    if not 0 <= series_order <= 30:
        raise OptionError(f"log_ndtr: series_order={series_order}", instead="0 to 30")
    return _log_ndtr(single_or_double("log_ndtr", x))


@custom_jvp
def _log_ndtr(x: Any) -> Any:
    high, tail = x > 0, _scaled_tail(x)
    # Below 0 the logarithm of exp(-x**2 / 2) is taken apart, as that underflows. Beyond 100 it is 0.
    share = exp_of_square(-0.5, jnp.where(high, jnp.minimum(x, 100), 0)) * tail
    # For x > 0 not log(ndtr(x)), as ndtr rounds to 1.
    return jnp.where(high, jnp.log1p(-share), jnp.log(tail) - (0.5 * x) * x)


def _scaled_tail(x: Any) -> Any:
    """``exp(x**2 / 2) * ndtr(-abs(x))``."""
    # Not by `abs`, whose derivative is 0 at 0.
    return 0.5 * erfcx_above(np.sqrt(0.5).item() * jnp.where(x > 0, x, -x))


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    # Density divided by ndtr. Below 0 their common factor is left out: it underflows, and a difference of their
    # logarithms has the rounding errors of the square.
    factor, tail = jnp.exp(-0.5 * jnp.square(x)), _scaled_tail(x)
    slope = np.sqrt(0.5 / np.pi).item() * jnp.where(x > 0, factor / (1 - factor * tail), 1 / tail)
    return _log_ndtr(x), t * slope


# Coefficients of Cephes: rational approximations for the middle, and for tails with z = sqrt(-2 log p) < 8 and >= 8.
# fmt: off
_P0 = (
    -5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1, 1.39312609387279679503e1,
    -1.23916583867381258016,
)
_Q0 = (
    1.0, 1.95448858338141759834, 4.67627912898881538453, 8.63602421390890590575e1, -2.25462687854119370527e2,
    2.00260212380060660359e2, -8.20372256168333339912e1, 1.59056225126211695515e1, -1.18331621121330003142,
)
_P1 = (
    4.05544892305962419923, 3.15251094599893866154e1, 5.71628192246421288162e1, 4.40805073893200834700e1,
    1.46849561928858024014e1, 2.18663306850790267539, -1.40256079171354495875e-1, -3.50424626827848203418e-2,
    -8.57456785154685413611e-4,
)
_Q1 = (
    1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1, 1.50425385692907503408e1,
    2.50464946208309415979, -1.42182922854787788574e-1, -3.80806407691578277194e-2, -9.33259480895457427372e-4,
)
_P2 = (
    3.23774891776946035970, 6.91522889068984211695, 3.93881025292474443415, 1.33303460815807542389,
    2.01485389549179081538e-1, 1.23716634817820021358e-2, 3.01581553508235416007e-4, 2.65806974686737550832e-6,
    6.23974539184983293730e-9,
)
_Q2 = (
    1.0, 6.02427039364742014255, 3.67983563856160859403, 1.37702099489081330271, 2.16236993594496635890e-1,
    1.34204006088543189037e-2, 3.28014464682127739104e-4, 2.89247864745380683936e-6, 6.79019408009981274425e-9,
)
# fmt: on


@jit(inline=True)
def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`, elementwise (as ``scipy.special.ndtri``).

    Args:
      p: probabilities, an array of any shape, float32 or float64; a Python float also.

    Returns:
      An array of the shape and dtype of `p`: -inf at 0, inf at 1, and nan outside.

    Raises:
      DtypeError: `p` is of another dtype.

    >>> ndtri(0.5)
    Array(0., dtype=float32)
    """
    return _ndtri(single_or_double("ndtri", p))


@custom_jvp
def _ndtri(p: Any) -> Any:
    dtype = p.dtype

    def ratio(x: Any, above: Any, below: Any) -> Any:
        return jnp.polyval(np.asarray(above, dtype), x) / jnp.polyval(np.asarray(below, dtype), x)

    edge = np.exp(-2.0).item()
    # The right tail is the mirror image of the left one, whose probabilities have more digits.
    q = jnp.where(p > -np.expm1(-2.0).item(), 1 - p, p)
    q = jnp.where(q == 0, 0.5, q).astype(dtype)  # results at 0 and 1 are inserted below
    w = q - 0.5
    ww = w * w
    middle = (w + w * ww * ratio(ww, _P0, _Q0)) * -np.sqrt(2 * np.pi).item()
    z = jnp.sqrt(-2 * jnp.log(q))
    first = z - jnp.log(z) / z
    inverse = 1 / z
    tail = jnp.where(z >= 8, first - ratio(inverse, _P2, _Q2) / z, first - ratio(inverse, _P1, _Q1) / z)
    x = jnp.where(q > edge, middle, tail)
    x = jnp.where(p > 1 - edge, x, -x)
    return jnp.where(p == 0, -jnp.inf, jnp.where(p == 1, jnp.inf, x))


# 1 divided by the normal density at the result
_ndtri.defjvps(lambda t, x, p: t * np.sqrt(2 * np.pi).item() * jnp.exp(x * x / 2))
