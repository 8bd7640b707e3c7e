"""``phlox.scipy.stats.geom``: the geometric distribution, of trials up to the first success."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import xlog1py
from ._shared import shifted

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


@jit(inline=True)
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k` in the geometric distribution (as ``scipy.stats.geom.logpmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      p: probability of success of each trial; it broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpmf(2, 0.3)), 3)
    -1.561
    """
    k, p = shifted("geom.logpmf", k, p, loc)
    inside = k > 0
    out = jnp.where(inside, xlog1py(jnp.where(inside, k, 1) - 1, -p) + jnp.log(p), -jnp.inf)
    return jnp.where((p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


@jit(inline=True)
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k` in the geometric distribution (as ``scipy.stats.geom.pmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      p: probability of success of each trial; it broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pmf(2, 0.3)), 3)
    0.21
    """
    return jnp.exp(logpmf(k, p, loc))


publish(__name__)
