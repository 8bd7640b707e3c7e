"""Logarithms of complements and of binomial coefficients, without cancellation."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ...nn._activations import log1mexp
from ..special import betaln, digamma
from ..special._factorials import digamma_change


def log1mexpexp(z: Any) -> Any:
    """log(1 - exp(-exp(z))), also where exp(z) is too small for the dtype."""
    # log(1 - exp(-u)) = log(u) - u / 2 + O(u**2), and u = exp(z) is less than 5e-8 here.
    small = z < -17
    return jnp.where(small, z - 0.5 * jnp.exp(z), log1mexp(jnp.exp(jnp.where(small, 0, z))))


@custom_jvp
def log_ways(n: Any, k: Any) -> Any:
    """``log(gamma(n + k) / (gamma(n) k!))``, exactly 0 for k = 0 and for n = 1: the number of ways to choose k of
    ``n + k - 1`` things."""
    # betaln does not cancel for large numbers, as the difference of three gammaln does.
    return jnp.where((k == 0) | (n == 1), 0, -jnp.log(n + k) - betaln(n, k + 1))


log_ways.defjvps(
    lambda t, out, n, k: digamma_change(n, k) * t,
    lambda t, out, n, k: (digamma(n + k) - digamma(k + 1)) * t,
)


def log_share(share: Any, other: Any) -> Any:
    """log(share), where `other` is 1 - share: by it if `share` is nearly 1."""
    large = share > 0.5
    return jnp.where(large, jnp.log1p(-jnp.where(large, other, 0)), jnp.log(jnp.where(large, 1, share)))
