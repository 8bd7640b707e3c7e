"""``phlox.scipy.stats.nbinom``: the negative binomial distribution, of failures before the n-th success."""

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


@distribution(example="2, 3, 0.3")
def nbinom(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The negative binomial distribution.

    Args:
      n: number of successes, positive; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
    """


def _log_mass(k: Any, n: Any, p: Any) -> Any:
    inside = k >= 0
    y = jnp.where(inside, k, 1)
    near = log_ways(n, y) + xlogy(n, p) + xlog1py(y, -p)
    # Also a multiple of the density of a beta distribution at p
    m = jnp.where(n > 0, n, 1)
    shift = jnp.log(m / (m + y) / (m + y + 1))
    out = jnp.where(inside, log_beta_density(p, n + 1, y + 1, shift, near), -jnp.inf)
    return jnp.where((n >= 0) & (p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


logpmf = nbinom.logpmf(_log_mass, result=-2.534)
pmf = nbinom.pmf(result=0.079)

publish(__name__)
