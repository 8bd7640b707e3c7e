"""``phlox.scipy.stats.bernoulli``: the Bernoulli distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.promotion import promoted_inexact
from ..special import xlog1py, xlogy
from ._shared import shifted

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


def _where_valid(x: Any, p: Any, out: Any) -> Any:
    return jnp.where((p >= 0) & (p <= 1) & (x == x), out, jnp.nan)


@jit(inline=True)
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k` in the Bernoulli distribution (as ``scipy.stats.bernoulli.logpmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      p: probability of 1, a number or an array that broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpmf(1, 0.3)), 3)
    -1.204
    """
    k, p = shifted("bernoulli.logpmf", k, p, loc)
    inside = (k >= 0) & (k <= 1)
    out = xlogy(jnp.where(inside, k, 0), p) + xlog1py(1 - jnp.where(inside, k, 0), -p)
    return _where_valid(k, p, jnp.where(inside, out, -jnp.inf))


@jit(inline=True)
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k` in the Bernoulli distribution (as ``scipy.stats.bernoulli.pmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      p: probability of 1, a number or an array that broadcasts with `k`.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pmf(1, 0.3)), 3)
    0.3
    """
    return jnp.exp(logpmf(k, p, loc))


@jit(inline=True)
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability that a number of the Bernoulli distribution is at most `k` (as
    ``scipy.stats.bernoulli.cdf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      p: probability of 1, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(1, 0.3)), 3)
    1.0
    """
    k, p = promoted_inexact("bernoulli.cdf", k, p)
    return _where_valid(k, p, jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, _one_for(k))))


@jit(inline=True)
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The inverse of `cdf` of the Bernoulli distribution (as ``scipy.stats.bernoulli.ppf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      p: probability of 1, a number or an array that broadcasts with `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(ppf(0.8, 0.3)), 3)
    1.0
    """
    q, p = promoted_inexact("bernoulli.ppf", q, p)
    one = _one_for(q)
    out = jnp.where(q > 1 - p, one, 0 * one)
    return _where_valid(q, p, jnp.where((q < 0) | (q > 1), jnp.nan, out))


def _one_for(x: Any) -> Any:
    """1 for each element of promoted `x`. Only a Python number leaves the type of the result weak, as in jax."""
    return jnp.ones_like(x) if x.ndim == 0 else jnp.ones(x.shape, x.dtype)


publish(__name__)
