"""``phlox.scipy.stats.gamma``: the gamma distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.derivatives.differentiate import jvp
from ..._base.public_names import publish
from ..._ops.elementwise.incomplete_gamma import igamma_density
from ...typing import ArrayLike
from ..special import gammainc, gammaincc
from ._distribution import distribution
from ._large_parameters import log_gamma_density

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


logpdf = gamma.logpdf(log_density, result=-1.193)
pdf = gamma.pdf(density, result=0.303)
cdf = gamma.cdf(below, result=0.09)
sf = gamma.sf(above, result=0.91)
logcdf = gamma.logcdf(result=-2.406)
logsf = gamma.logsf(result=-0.095)

publish(__name__)
