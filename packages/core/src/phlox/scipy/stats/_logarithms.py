"""Logarithms of complements, accurate at both ends."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...nn._activations import log1mexp


def log1mexpexp(z: Any) -> Any:
    """log(1 - exp(-exp(z))), also where exp(z) is too small for the dtype."""
    # log(1 - exp(-u)) = log(u) - u / 2 + O(u**2), and u = exp(z) is less than 5e-8 here.
    small = z < -17
    return jnp.where(small, z - 0.5 * jnp.exp(z), log1mexp(jnp.exp(jnp.where(small, 0, z))))


def log_share(share: Any, other: Any) -> Any:
    """log(share), where `other` is 1 - share: by it if `share` is nearly 1."""
    large = share > 0.5
    return jnp.where(large, jnp.log1p(-jnp.where(large, other, 0)), jnp.log(jnp.where(large, 1, share)))
