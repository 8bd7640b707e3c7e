"""Global response normalization of feature maps. Source: Woo et al., 2023."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn


class ResponseNorm(nn.Layer):
    """Global response normalization of ConvNeXt V2: ``weight * x * n + bias + x``.

    n is the norm of each channel over height and width, divided by the mean of the channels' norms.

    Args:
      features: the number of channels.
    """

    features: int

    def parameters(self) -> Mapping[str, Any]:
        return dict.fromkeys(("weight", "bias"), (nn.initializers.zeros, (1, 1, 1, self.features)))

    def __call__(self, x: Any) -> Any:
        squares = jnp.sum(jnp.square(x), axis=(-3, -2), keepdims=True)
        # The derivative of the root at 0 is infinite, and a channel is exactly 0 behind a ReLU.
        norms = jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
        return self.weight * (x * (norms / (norms.mean(-1, keepdims=True) + 1e-6))) + self.bias + x
