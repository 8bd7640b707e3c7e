"""``phlox.scipy.stats.expon``: the exponential distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...nn._activations import log1mexp
from ...typing import ArrayLike
from ._distribution import distribution, probability

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@distribution(example="0.5")
def expon(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The exponential distribution."""


def _inside(z: Any) -> Any:
    return jnp.where(z < 0, 0, z)


logpdf = expon.logpdf(lambda z, scale: jnp.where(z < 0, -jnp.inf, -z - jnp.log(scale)), result=-0.5)
pdf = expon.pdf(result=0.607)
# 1 - exp(-z) cancels for small z.
cdf = expon.cdf(lambda z: -jnp.expm1(-_inside(z)), result=0.393)
logcdf = expon.logcdf(lambda z: jnp.where(z < 0, -jnp.inf, log1mexp(jnp.where(z < 0, 1, z))), result=-0.933)
sf = expon.sf(lambda z: jnp.exp(-_inside(z)), result=0.607)
logsf = expon.logsf(lambda z: -_inside(z), result=-0.5)
ppf = expon.ppf(probability, lambda q, loc, scale: loc - scale * jnp.log1p(-q), example="0.3", result=0.357)

publish(__name__)
