"""``phlox.scipy.stats.nbinom``: the negative binomial distribution, of failures before the n-th success."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import gammaln, xlog1py, xlogy
from ._shared import shifted

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


@jit(inline=True)
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k` in the negative binomial distribution (as
    ``scipy.stats.nbinom.logpmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      n: number of successes, positive; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpmf(2, 3, 0.3)), 3)
    -2.534
    """
    k, n, p = shifted("nbinom.logpmf", k, n, p, loc)
    inside = k >= 0
    y = jnp.where(inside, k, 1)
    ways = gammaln(y + n) - gammaln(n) - gammaln(y + 1)
    out = jnp.where(inside, ways + xlogy(n, p) + xlog1py(y, -p), -jnp.inf)
    return jnp.where((n >= 0) & (p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


@jit(inline=True)
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k` in the negative binomial distribution (as ``scipy.stats.nbinom.pmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      n: number of successes, positive; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pmf(2, 3, 0.3)), 3)
    0.079
    """
    return jnp.exp(logpmf(k, n, p, loc))


publish(__name__)
