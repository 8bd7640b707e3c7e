"""``phlox.scipy.stats.gumbel_l``: the Gumbel distribution of minima."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution
from ._logarithms import log1mexpexp
from .gumbel_r import log_density, probability

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@distribution(example="0.5")
def gumbel_l(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The Gumbel distribution of minima."""


logpdf = gumbel_l.logpdf(lambda z, scale: log_density(-z, scale), result=-1.149)
pdf = gumbel_l.pdf(result=0.317)
cdf = gumbel_l.cdf(lambda z: -jnp.expm1(-jnp.exp(z)), result=0.808)
logcdf = gumbel_l.logcdf(log1mexpexp, result=-0.214)
sf = gumbel_l.sf(lambda z: jnp.exp(-jnp.exp(z)), result=0.192)
logsf = gumbel_l.logsf(lambda z: -jnp.exp(z), result=-1.649)
ppf = gumbel_l.ppf(
    probability, lambda p, loc, scale: loc + scale * jnp.log(-jnp.log1p(-p)), example="0.3", result=-1.031
)

publish(__name__)
