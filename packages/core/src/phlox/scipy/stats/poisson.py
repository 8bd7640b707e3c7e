"""``phlox.scipy.stats.poisson``: the Poisson distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..._operands.promotion import promoted_inexact
from ..special import gammaincc, gammaln, xlogy
from ._shared import shifted

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


#: Coefficients of 1 / mu, highest power first, in the expansion of the entropy for large mu (Evans and Boersma 1988,
#: The entropy of a Poisson distribution).
_EXPANSION = -np.array([863 / 2520, 9 / 80, 19 / 360, 1 / 24, 1 / 12, 0])


@jit(inline=True)
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of `k` in the Poisson distribution (as ``scipy.stats.poisson.logpmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      mu: mean, not negative, a number or an array of any shape.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpmf(1, 2.0)), 3)
    -1.307
    """
    k, mu = shifted("poisson.logpmf", k, mu, loc)
    inside = (k >= 0) & (k == jnp.floor(k))
    y = jnp.where(inside, k, 0)
    out = jnp.where(inside, xlogy(y, mu) - gammaln(y + 1) - mu, -jnp.inf)
    return jnp.where((mu >= 0) & (k == k), out, jnp.nan)


@jit(inline=True)
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of `k` in the Poisson distribution (as ``scipy.stats.poisson.pmf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      mu: mean, not negative, a number or an array of any shape.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pmf(1, 2.0)), 3)
    0.271
    """
    return jnp.exp(logpmf(k, mu, loc))


@jit(inline=True)
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability that a number of the Poisson distribution is at most `k` (as ``scipy.stats.poisson.cdf``).

    Args:
      k: whole numbers, an array of any shape; converted to floats.
      mu: mean, not negative, a number or an array of any shape.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `k`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(1, 2.0)), 3)
    0.406
    """
    k, mu = shifted("poisson.cdf", k, mu, loc)
    y = jnp.where((k < 0) | (k == jnp.inf), 0, k)
    out = jnp.where(k == jnp.inf, 1, gammaincc(jnp.floor(y) + 1, mu))
    return jnp.where((mu >= 0) & (k == k), jnp.where(k < 0, 0, out), jnp.nan)


@jit(inline=True)
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of the Poisson distribution, in nats (as ``scipy.stats.poisson.entropy``).

    Args:
      mu: mean, not negative, a number or an array of any shape.
      loc: where the distribution is shifted to, a number or an array that broadcasts with `mu`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(entropy(2.0)), 3)
    1.705
    """
    mu, loc = promoted_inexact("poisson.entropy", mu, loc)
    mu = mu + jnp.zeros_like(loc)
    small, large = jnp.where((mu > 0) & (mu < 100), mu, 1), jnp.where(mu < 100, 100, mu)
    logs = logpmf(jnp.arange(256, dtype=type_of(mu).dtype), jnp.expand_dims(small, -1))
    inverse_mu = 1 / large
    correction = jnp.polyval(_EXPANSION.astype(type_of(mu).dtype), inverse_mu)
    asymptotic = 0.5 * jnp.log(2 * np.pi * np.e * large) + correction
    out = jnp.where(mu < 100, -jnp.sum(jnp.exp(logs) * logs, axis=-1), asymptotic)
    return jnp.where(mu > 0, out, jnp.where(mu == 0, 0, jnp.nan))


publish(__name__)
