"""Logarithms of complements, accurate at both ends."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp


def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, accurate at both ends (Mächler 2012, Accurately computing log(1 - exp(-|a|)))."""
    small = x < math.log(2)
    near = jnp.log(-jnp.expm1(-jnp.where(small, x, 1)))
    return jnp.where(small, near, jnp.log1p(-jnp.exp(-jnp.where(small, 1, x))))


def log1mexpexp(z: Any) -> Any:
    """log(1 - exp(-exp(z))), also where exp(z) is too small for the dtype."""
    # log(1 - exp(-u)) = log(u) - u / 2 + O(u**2), and u = exp(z) is less than 5e-8 here.
    small = z < -17
    return jnp.where(small, z - 0.5 * jnp.exp(z), log1mexp(jnp.exp(jnp.where(small, 0, z))))


def log_share(share: Any, other: Any) -> Any:
    """log(share), where `other` is 1 - share: by it if `share` is nearly 1."""
    large = share > 0.5
    return jnp.where(large, jnp.log1p(-jnp.where(large, other, 0)), jnp.log(jnp.where(large, 1, share)))
