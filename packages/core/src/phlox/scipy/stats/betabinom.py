"""``phlox.scipy.stats.betabinom``: the beta-binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import betaln
from ._shared import shifted

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


@jit(inline=True)
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k` in the beta-binomial distribution (as
    ``scipy.stats.betabinom.logpmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      n: number of trials; it broadcasts with `k`.
      a, b: parameters of the beta distribution of the probability of success, positive; they broadcast with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpmf(1, 3, 2.0, 1.5)), 3)
    -1.348
    """
    k, n, a, b = shifted("betabinom.logpmf", k, n, a, b, loc)
    k = jnp.floor(k)
    inside = (k >= 0) & (k <= n)
    y, m = jnp.where(inside, k, 0), jnp.where(inside, n, 1)
    ways = jnp.where((y == 0) | (y == m), 0, -jnp.log1p(m) - betaln(m - y + 1, y + 1))
    out = jnp.where(inside, ways + betaln(y + a, m - y + b) - betaln(a, b), -jnp.inf)
    return jnp.where((n >= 0) & (a > 0) & (b > 0) & (k == k), out, jnp.nan)


@jit(inline=True)
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k` in the beta-binomial distribution (as ``scipy.stats.betabinom.pmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      n: number of trials; it broadcasts with `k`.
      a, b: parameters of the beta distribution of the probability of success, positive; they broadcast with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pmf(1, 3, 2.0, 1.5)), 3)
    0.26
    """
    return jnp.exp(logpmf(k, n, a, b, loc))


publish(__name__)
