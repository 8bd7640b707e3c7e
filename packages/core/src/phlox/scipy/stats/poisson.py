"""``phlox.scipy.stats.poisson``: the Poisson distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..._operands.promotion import promoted_inexact
from ...typing import Array, ArrayLike
from ..special import gammaincc
from ._distribution import distribution
from ._large_parameters import log_gamma_density
from .gamma import density

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


@distribution(example="1, 2.0")
def poisson(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The Poisson distribution.

    Args:
      mu: mean, not negative; it broadcasts with `k`.
    """


def _log_mass(k: Any, mu: Any) -> Any:
    inside = (k >= 0) & (k == jnp.floor(k))
    y = jnp.where(inside, k, 0)
    # mu**k exp(-mu) / k! is the density of a gamma distribution.
    out = jnp.where(inside, log_gamma_density(mu, y + 1), -jnp.inf)
    return jnp.where((mu >= 0) & (k == k), out, jnp.nan)


def _mass(k: Any, mu: Any) -> Any:
    inside = (k >= 0) & (k == jnp.floor(k))
    # As in `_log_mass`; it is computed by products.
    out = jnp.where(inside, density(mu, jnp.where(inside, k, 0) + 1, 1), 0)
    return jnp.where((mu >= 0) & (k == k), out, jnp.nan)


def _below(k: Any, mu: Any) -> Any:
    y = jnp.where((k < 0) | (k == jnp.inf), 0, k)
    # P(K <= k) is the regularized upper incomplete gamma function of k + 1.
    out = jnp.where(k == jnp.inf, 1, gammaincc(jnp.floor(y) + 1, mu))
    return jnp.where((mu >= 0) & (k == k), jnp.where(k < 0, 0, out), jnp.nan)


logpmf = poisson.logpmf(_log_mass, result=-1.307)
pmf = poisson.pmf(_mass, result=0.271)
cdf = poisson.cdf(_below, result=0.406)


#: Coefficients of 1 / mu, highest power first, in the expansion of the entropy for large mu (Evans and Boersma 1988,
#: The entropy of a Poisson distribution).
_EXPANSION = -np.array([863 / 2520, 9 / 80, 19 / 360, 1 / 24, 1 / 12, 0])


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
    # Below mu = 100 the sum itself: 256 terms reach 15 standard deviations above the mean.
    small, large = jnp.where((mu > 0) & (mu < 100), mu, 1), jnp.where(mu < 100, 100, mu)
    logs = logpmf(jnp.arange(256, dtype=type_of(mu).dtype), jnp.expand_dims(small, -1))
    inverse_mu = 1 / large
    correction = jnp.polyval(_EXPANSION.astype(type_of(mu).dtype), inverse_mu)
    asymptotic = 0.5 * jnp.log(2 * np.pi * np.e * large) + correction
    out = jnp.where(mu < 100, -jnp.sum(jnp.exp(logs) * logs, axis=-1), asymptotic)
    return jnp.where(mu > 0, out, jnp.where(mu == 0, 0, jnp.nan))


publish(__name__)
