"""Logarithms of complements and of binomial coefficients, without cancellation."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...nn._activations import log1mexp
from ..special import betaln


def log1mexpexp(z: Any) -> Any:
    """log(1 - exp(-exp(z))), also where exp(z) is too small for the dtype."""
    # log(1 - exp(-u)) = log(u) - u / 2 + O(u**2), and u = exp(z) is less than 5e-8 here.
    small = z < -17
    return jnp.where(small, z - 0.5 * jnp.exp(z), log1mexp(jnp.exp(jnp.where(small, 0, z))))


def log_comb(n: Any, k: Any) -> Any:
    """The logarithm of the number of ways to choose k of n things."""
    # comb(n, k) is 1 / ((n + 1) B(n - k + 1, k + 1)). betaln does not cancel for large n, as the difference of three
    # gammaln does; at both ends the logarithm is exactly 0.
    return jnp.where((k == 0) | (k == n), 0, -jnp.log1p(n) - betaln(n - k + 1, k + 1))


def log_share(share: Any, other: Any) -> Any:
    """log(share), where `other` is 1 - share: by it if `share` is nearly 1."""
    large = share > 0.5
    return jnp.where(large, jnp.log1p(-jnp.where(large, other, 0)), jnp.log(jnp.where(large, 1, share)))
