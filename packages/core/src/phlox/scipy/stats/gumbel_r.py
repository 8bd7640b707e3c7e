"""``phlox.scipy.stats.gumbel_r``: the Gumbel distribution of maxima."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution
from ._logarithms import log1mexpexp

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@distribution(example="0.5")
def gumbel_r(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The Gumbel distribution of maxima."""


def log_density(z: Any, scale: Any) -> Any:
    # At -infinity exp(-z) + z would be inf - inf.
    return jnp.where(z == -jnp.inf, -jnp.inf, -(jnp.where(z == -jnp.inf, 0, z) + jnp.exp(-z)) - jnp.log(scale))


def probability(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The parameters of `ppf`."""


logpdf = gumbel_r.logpdf(log_density, result=-1.107)
pdf = gumbel_r.pdf(result=0.331)
cdf = gumbel_r.cdf(lambda z: jnp.exp(-jnp.exp(-z)), result=0.545)
logcdf = gumbel_r.logcdf(lambda z: -jnp.exp(-z), result=-0.607)
sf = gumbel_r.sf(lambda z: -jnp.expm1(-jnp.exp(-z)), result=0.455)
logsf = gumbel_r.logsf(lambda z: log1mexpexp(-z), result=-0.788)
ppf = gumbel_r.ppf(probability, lambda p, loc, scale: loc - scale * jnp.log(-jnp.log(p)), example="0.3", result=-0.186)

publish(__name__)
