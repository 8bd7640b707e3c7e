"""``phlox.scipy.stats.binom``: the binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import betaln, xlog1py, xlogy
from ._shared import shifted

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


@jit(inline=True)
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k` in the binomial distribution (as ``scipy.stats.binom.logpmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      n: number of trials; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpmf(1, 3, 0.3)), 3)
    -0.819
    """
    k, n, p = shifted("binom.logpmf", k, n, p, loc)
    inside = (k >= 0) & (k <= n)
    y, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    ways = jnp.where((y == 0) | (y == m), 0, -jnp.log1p(m) - betaln(m - y + 1, y + 1))
    out = jnp.where(inside, ways + xlogy(y, p) + xlog1py(m - y, -p), -jnp.inf)
    return jnp.where((n >= 0) & (p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


@jit(inline=True)
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k` in the binomial distribution (as ``scipy.stats.binom.pmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      n: number of trials; it broadcasts with `k`.
      p: probability of success of each trial; it broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pmf(1, 3, 0.3)), 3)
    0.441
    """
    return jnp.exp(logpmf(k, n, p, loc))


publish(__name__)
