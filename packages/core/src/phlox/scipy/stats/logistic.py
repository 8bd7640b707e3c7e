"""``phlox.scipy.stats.logistic``: the logistic distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ..special import expit, logit
from ._distribution import distribution

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@distribution(example="0.5")
def logistic(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The logistic distribution."""


def _log_density(z: Any, scale: Any) -> Any:
    # The density is symmetric, and exp(-z) overflows for negative z.
    distance = jnp.abs(z)
    return -distance - 2 * jnp.log1p(jnp.exp(-distance)) - jnp.log(scale)


def _probability(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The parameters of `ppf` and `isf`."""


logpdf = logistic.logpdf(_log_density, result=-1.448)
pdf = logistic.pdf(result=0.235)
cdf = logistic.cdf(expit, result=0.622)
sf = logistic.sf(lambda z: expit(-z), result=0.378)
ppf = logistic.ppf(_probability, lambda q, loc, scale: loc + scale * logit(q), example="0.5", result=0.0)
isf = logistic.isf(_probability, lambda q, loc, scale: loc - scale * logit(q), example="0.5", result=0.0)

publish(__name__)
