"""``phlox.scipy.stats.gamma``: the gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.derivatives.differentiate import jvp
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..._ops.elementwise.incomplete_gamma import igamma_density
from ...typing import ArrayLike
from ..special import gammainc, gammaincc
from ._distribution import distribution
from ._large_parameters import log_gamma_density
from ._logarithms import log_share

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@distribution(example="0.5, 2.0")
def gamma(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The gamma distribution.

    Args:
      a: shape parameter, positive; it broadcasts with `x`.
    """


def log_density(z: Any, a: Any, scale: Any) -> Any:
    # 1 stands in for points below 0, where log(z) would make the derivative by `a` a nan.
    y = jnp.where(z < 0, 1, z)
    out = log_gamma_density(y, a) - jnp.log(scale)
    return jnp.where(a > 0, jnp.where(z < 0, -jnp.inf, out), jnp.nan)


@custom_jvp
def density(z: Any, a: Any, scale: Any) -> Any:
    """The density by products: the exponential of its logarithm multiplies the rounding error of that by its size."""
    z, a = jnp.broadcast_arrays(z, a)
    out = igamma_density(a, jnp.where(z < 0, 1, z)) / scale
    return jnp.where(a > 0, jnp.where(z < 0, 0, out), jnp.nan)


@density.defjvp
def _density_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    out = density(*primals)
    return out, out * jvp(log_density, primals, tangents)[1]


def below(z: Any, a: Any) -> Any:
    return jnp.where(a > 0, gammainc(a, jnp.where(z < 0, 0, z)), jnp.nan)


def above(z: Any, a: Any) -> Any:
    return jnp.where(a > 0, gammaincc(a, jnp.where(z < 0, 0, z)), jnp.nan)


def log_below(z: Any, a: Any) -> Any:
    # The M-fraction: W. B. Jones and W. J. Thron, Continued Fractions (1980)
    return _log_tail(z, a, below, above, z < a, lambda x, a, k: (a + k - x, (k + 1) * x))


def log_above(z: Any, a: Any) -> Any:
    # Legendre's continued fraction (DLMF 8.9.2)
    is_tail = z > jnp.maximum(a, 30)
    return _log_tail(z, a, above, below, is_tail, lambda x, a, k: (x - a + (2 * k + 1), (k + 1) * (a - (k + 1))))


def _log_tail(z: Any, a: Any, share: Any, other: Any, is_tail: Any, fraction: Any) -> Any:
    """The logarithm of `share`, by the density and a continued fraction where its derivatives would underflow.

    `fraction` has the k-th denominator and the numerator after it. So far out, 12 of them have all digits.
    """
    value = share(z, a)
    is_tiny = value < math.sqrt(jnp.finfo(type_of(value).dtype).tiny)
    far = is_tail & is_tiny & (z > 0) & (z < jnp.inf) & (a < jnp.inf)
    # 1 and 2 stand in for the others, whose derivatives are multiplied by 0.
    x, parameter = jnp.where(far, z, 1), jnp.where(far, a, 2)
    rest, _ = fraction(x, parameter, 12)
    for k in reversed(range(12)):
        denominator, numerator = fraction(x, parameter, k)
        rest = denominator + numerator / rest
    tail = log_gamma_density(x, parameter) + jnp.log(x / rest)
    return jnp.where(far, tail, log_share(jnp.where(far, 1, value), jnp.where(far, 0, other(z, a))))


logpdf = gamma.logpdf(log_density, result=-1.193)
pdf = gamma.pdf(density, result=0.303)
cdf = gamma.cdf(below, result=0.09)
sf = gamma.sf(above, result=0.91)
logcdf = gamma.logcdf(log_below, result=-2.406)
logsf = gamma.logsf(log_above, result=-0.095)

publish(__name__)
