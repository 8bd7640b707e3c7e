"""``phlox.scipy.stats.betabinom``: the beta-binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ..special import betaln
from ._distribution import distribution
from ._logarithms import log_comb

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
    out = jnp.where(inside, log_comb(m, y) + betaln(y + a, m - y + b) - betaln(a, b), -jnp.inf)
    return jnp.where((n >= 0) & (a > 0) & (b > 0) & (k == k), out, jnp.nan)


logpmf = betabinom.logpmf(_log_mass, result=-1.348)
pmf = betabinom.pmf(result=0.26)

publish(__name__)
