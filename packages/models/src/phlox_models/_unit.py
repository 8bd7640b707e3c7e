"""Vectors of length 1."""

from __future__ import annotations

from typing import Any

import phlox.numpy as jnp
from phlox import lax


def unit(x: Any) -> Any:
    """Vectors of the last axis, divided by their norms; vectors of zeros stay as they are.

    >>> unit(jnp.array([3.0, 4.0]))
    Array([0.6, 0.8], dtype=float32)
    """
    # As torch.nn.functional.normalize: the bound keeps the derivative finite.
    squares = jnp.sum(jnp.square(x), axis=-1, keepdims=True)
    return x * lax.rsqrt(jnp.maximum(squares, 1e-24))
