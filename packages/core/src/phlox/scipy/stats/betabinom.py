"""``phlox.scipy.stats.betabinom``: the beta-binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import lax, numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution
from ._large_parameters import log_beta_density
from .binom import log_mass

__all__ = ["logpmf", "pmf"]


@distribution(example="1, 3, 2.0, 1.5")
def betabinom(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The beta-binomial distribution.

    Args:
      n: number of trials; it broadcasts with `k`.
      a, b: parameters of the beta distribution of the probability of success, positive; they broadcast with `k`.
    """


def _log_mass(k: Any, n: Any, a: Any, b: Any) -> Any:
    k = jnp.floor(k)
    inside = (k >= 0) & (k <= n)
    y, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    # By Bayes's rule it is prior times likelihood, divided by the posterior density, at any probability but 0 and 1.
    # Near the posterior mean the terms are small.
    p = lax.stop_gradient(jnp.clip((y + a) / (m + a + b), 1e-6, 1 - 1e-6))
    prior, posterior = log_beta_density(p, a, b), log_beta_density(p, y + a, m - y + b)
    out = jnp.where(inside, log_mass(y, m, p) + prior - posterior, -jnp.inf)
    return jnp.where((n >= 0) & (a > 0) & (b > 0) & (k == k), out, jnp.nan)


logpmf = betabinom.logpmf(_log_mass, result=-1.348)
pmf = betabinom.pmf(result=0.26)

publish(__name__)
