"""``phlox.scipy.stats.binom``: the binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ..special import xlog1py, xlogy
from ._distribution import distribution
from ._logarithms import log_comb

__all__ = ["logpmf", "pmf"]


@distribution(example="1, 3, 0.3")
def binom(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The binomial distribution.

    Args:
      n: number of trials; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
    """


def _log_mass(k: Any, n: Any, p: Any) -> Any:
    inside = (k >= 0) & (k <= n)
    y, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    out = jnp.where(inside, log_comb(m, y) + xlogy(y, p) + xlog1py(m - y, -p), -jnp.inf)
    return jnp.where((n >= 0) & (p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


logpmf = binom.logpmf(_log_mass, result=-0.819)
pmf = binom.pmf(result=0.441)

publish(__name__)
