"""``phlox.scipy.stats.truncnorm``: the truncated normal distribution."""

from __future__ import annotations

import math
from typing import Any

from ... import lax, numpy as jnp
from ..._base.public_names import publish
from ...nn._activations import log1mexp
from ...typing import ArrayLike
from ..special import log_ndtr, ndtr
from ._distribution import distribution
from ._logarithms import log_share
from .norm import logpdf as normal_logpdf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@distribution(example="0.5, -1.0, 2.0")
def truncnorm(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The truncated normal distribution.

    Args:
      a, b: lower and upper bound, in multiples of `scale` from `loc`; they broadcast with `x`.
    """


def _where_valid(z: Any, a: Any, b: Any, out: Any) -> Any:
    return jnp.where((a < b) & (z == z), out, jnp.nan)


def _inside(z: Any, a: Any, b: Any) -> Any:
    """`z` where it is between the bounds, and elsewhere a number by which no derivative becomes nan."""
    return jnp.where((z > a) & (z < b), z, jnp.where(jnp.isfinite(a), a, jnp.where(jnp.isfinite(b), b, 0)))


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the probability that a standard normal number is between `a` and `b`."""
    above = a > 0
    one_side = above | (b <= 0)
    # An interval above 0 is reflected: the distribution function is accurate far below 0.
    # -2 and -1 stand in for intervals around 0, so that the unused branch has finite derivatives.
    low = jnp.where(one_side, jnp.where(above, -b, a), -2)
    high = jnp.where(one_side, jnp.where(above, -a, b), -1)
    endless = low == -jnp.inf
    log_high = log_ndtr(jnp.where(high == -jnp.inf, -1, high))
    ratio = log_high - log_ndtr(jnp.where(endless, -1, low))
    tail = log_high + jnp.where(endless, 0, log1mexp(jnp.where(endless | (ratio <= 0), 1, ratio)))
    tail = jnp.where((high == -jnp.inf) | (~endless & (ratio <= 0)), -jnp.inf, tail)
    # If 0 is between the bounds, both error functions have the same sign here, so nothing cancels.
    below, beyond = jnp.where(one_side, -1, a), jnp.where(one_side, -1, -b)
    mass = -0.5 * (lax.erf(below * math.sqrt(0.5)) + lax.erf(beyond * math.sqrt(0.5)))
    middle = log_share(mass, ndtr(below) + ndtr(beyond))
    return jnp.where(_is_narrow(a, b), _log_mass_of_narrow(a, b), jnp.where(one_side, tail, middle))


def _is_narrow(a: Any, b: Any) -> Any:
    """Whether the first term that `_log_mass_of_narrow` leaves out is below the rounding."""
    # The next term would be h**6 He6(middle) / 7!, with h half of the width and 7! = 5040.
    eps = float(jnp.finfo(a.dtype).eps)
    return (b - a) * (1 + jnp.abs(a)) < 2 * (5040 * eps) ** (1 / 6)


def _log_mass_of_narrow(a: Any, b: Any) -> Any:
    """`_log_mass` by the Taylor series of the density in the middle: there two distribution functions nearly agree."""
    narrow = _is_narrow(a, b) & (a < b)
    a, b = jnp.where(narrow, a, 0), jnp.where(narrow, b, 1)
    middle, half = (a + b) / 2, (b - a) / 2
    m2, h2 = middle * middle, half * half
    # The Hermite polynomials He2 / 3! and He4 / 5!: derivatives of the density, integrated from -half to half
    series = h2 * (m2 - 1) / 6 + h2 * h2 * (m2 * m2 - 6 * m2 + 3) / 120
    return jnp.where(narrow, normal_logpdf(middle) + jnp.log(b - a) + jnp.log1p(series), -jnp.inf)


def _log_share(z: Any, a: Any, b: Any, above: bool) -> Any:
    """The logarithm of the probability above `z`, or below; where it is nearly 1, from that of the other side."""
    y = _inside(z, a, b)
    total = _log_mass(a, b)
    this, other = _log_mass(a, y) - total, _log_mass(y, b) - total
    this, other = (other, this) if above else (this, other)
    out = jnp.where(this > -0.1, jnp.log1p(-jnp.exp(jnp.where(this > -0.1, other, -1))), this)
    none, full = (z >= b, z <= a) if above else (z <= a, z >= b)
    return _where_valid(z, a, b, jnp.where(none, -jnp.inf, jnp.where(full, 0, out)))


def _log_density(z: Any, a: Any, b: Any, scale: Any) -> Any:
    outside = (z < a) | (z > b)
    out = normal_logpdf(jnp.where(outside, 0, z)) - (_log_mass(a, b) + jnp.log(scale))
    return _where_valid(z, a, b, jnp.where(outside, -jnp.inf, out))


logpdf = truncnorm.logpdf(_log_density, result=-0.844)
pdf = truncnorm.pdf(result=0.43)
logsf = truncnorm.logsf(lambda z, a, b: _log_share(z, a, b, above=True), result=-1.052)
sf = truncnorm.sf(result=0.349)
logcdf = truncnorm.logcdf(lambda z, a, b: _log_share(z, a, b, above=False), result=-0.429)
cdf = truncnorm.cdf(result=0.651)

publish(__name__)
