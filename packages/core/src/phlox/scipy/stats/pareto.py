"""``phlox.scipy.stats.pareto``: the Pareto distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...nn._activations import log1mexp
from ...typing import ArrayLike
from ._distribution import distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@distribution(example="2.5, 2.0")
def pareto(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The Pareto distribution.

    Args:
      b: shape parameter, positive; it broadcasts with `x`.
    """


def _log(z: Any) -> Any:
    """log(z) where the density is positive, for z >= 1; 0 below."""
    return jnp.log(jnp.where(z < 1, 1, z))


def _log_density(z: Any, b: Any, scale: Any) -> Any:
    out = jnp.where(z < 1, -jnp.inf, jnp.log(b) - jnp.log(scale) - (b + 1) * _log(z))
    return jnp.where(b > 0, out, jnp.nan)


def _log_below(z: Any, b: Any) -> Any:
    # log(1 - z**-b), where z**-b may be nearly 1 or far below the rounding error of 1
    out = jnp.where(z <= 1, -jnp.inf, log1mexp(jnp.where(z > 1, b * _log(z), 1)))
    return jnp.where((b > 0) & (z == z), out, jnp.nan)


def _quantile(q: Any, b: Any, loc: Any, scale: Any) -> Any:
    return jnp.where(b > 0, loc + scale * jnp.exp(-jnp.log1p(-q) / b), jnp.nan)


def _probability(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The parameters of `ppf`."""


logpdf = pareto.logpdf(_log_density, result=-2.056)
pdf = pareto.pdf(result=0.128)
cdf = pareto.cdf(lambda z, b: jnp.where(b > 0, -jnp.expm1(-b * _log(z)), jnp.nan), result=0.84)
logcdf = pareto.logcdf(_log_below, result=-0.174)
sf = pareto.sf(lambda z, b: jnp.where(b > 0, jnp.exp(-b * _log(z)), jnp.nan), result=0.16)
logsf = pareto.logsf(lambda z, b: jnp.where(b > 0, -b * _log(z), jnp.nan), result=-1.833)
ppf = pareto.ppf(_probability, _quantile, example="0.3, 2.0", result=1.195)

publish(__name__)
