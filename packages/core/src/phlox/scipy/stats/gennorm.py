"""``phlox.scipy.stats.gennorm``: the generalized normal distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ...typing import ArrayLike
from ..special import gammaincc, gammaln
from ._distribution import distribution

__all__ = ["cdf", "logpdf", "pdf"]


@distribution(example="0.5, 1.5")
def gennorm(x: ArrayLike, beta: ArrayLike) -> Any:
    """The generalized normal distribution.

    Args:
      beta: shape parameter, positive: 1 gives the Laplace and 2 the normal distribution; it broadcasts with `x`.
    """


def _log_density(x: Any, beta: Any) -> Any:
    out = jnp.log(0.5 * beta) - gammaln(1 / beta) - jnp.abs(x) ** beta
    return jnp.where(beta > 0, out, jnp.nan)


def _below(x: Any, beta: Any) -> Any:
    # The smaller tail is computed: it keeps its digits, and 1 less at most 1/2 does not cancel.
    size = jnp.where(x >= 0, x, -x)
    middle = size**beta < jnp.finfo(type_of(x).dtype).eps
    half = 0.5 * gammaincc(1 / beta, jnp.where(middle, 1, size) ** beta)
    # The power may underflow, and its derivative at 0 is infinity times 0. There the density is the slope of a line.
    half = jnp.where(middle, 0.5 - size * jnp.exp(_log_density(jnp.zeros_like(x), beta)), half)
    return jnp.where(beta > 0, jnp.where(x >= 0, 1 - half, half), jnp.nan)


logpdf = gennorm.logpdf(_log_density, result=-0.944)
pdf = gennorm.pdf(result=0.389)
cdf = gennorm.cdf(_below, result=0.742)

publish(__name__)
