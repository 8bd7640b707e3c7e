"""``phlox.scipy.stats.binom``: the binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ..special import xlog1py, xlogy
from ._distribution import distribution
from ._large_parameters import log_beta_density
from ._logarithms import log_ways

__all__ = ["logpmf", "pmf"]


@distribution(example="1, 3, 0.3")
def binom(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The binomial distribution.

    Args:
      n: number of trials; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
    """


def log_mass(k: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probability of `k` successes."""
    inside = (k >= 0) & (k <= n)
    y, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    # The density of a beta distribution at p, divided by m + 1. At both ends `log_ways` is exactly 0.
    near = log_ways(m - y + 1, y) + xlogy(y, p) + xlog1py(m - y, -p)
    out = jnp.where(inside, log_beta_density(p, y + 1, m - y + 1, -jnp.log1p(m), near), -jnp.inf)
    return jnp.where((n >= 0) & (p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


logpmf = binom.logpmf(log_mass, result=-0.819)
pmf = binom.pmf(result=0.441)

publish(__name__)
