"""The blocks of convolutional networks that map images to images, which U-Nets and autoencoders share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._encoder import Attention


class ResidualBlock(nn.Layer):
    """Two convolutions, with what is known of the time added between them. Keeps height and width.

    Args:
      in_features, out_features: the number of channels before and after.
      time_features: the length of the vectors of time; None for a block without them.
      groups: of the norms; it divides both numbers of channels.
      dropout: the fraction that is dropped in training before the second convolution.
      epsilon: of the norms.
    """

    in_features: int
    out_features: int
    time_features: int | None = None
    groups: int = 32
    dropout: float = 0.0
    epsilon: float = 1e-5

    def parts(self) -> Mapping[str, Any]:
        ins, outs = self.in_features, self.out_features
        # A block begins as its shortcut, as the last convolution begins with zeros.
        last = nn.Conv(outs, outs, (3, 3), weight_init=nn.initializers.zeros)
        parts = {
            "norm1": nn.GroupNorm(ins, self.epsilon, groups=self.groups),
            "conv1": nn.Conv(ins, outs, (3, 3)),
            "norm2": nn.GroupNorm(outs, self.epsilon, groups=self.groups),
            "dropping": nn.Dropout(self.dropout),
            "conv2": last,
        }
        parts |= {"time": nn.Linear(self.time_features, outs)} if self.time_features else {}
        return parts | ({"shortcut": nn.Conv(ins, outs, (1, 1))} if ins != outs else {})

    def __call__(self, x: Any, time: Any = None) -> Any:
        y = self.conv1(nn.silu(self.norm1(x)))
        y = y if time is None else y + self.time(nn.silu(time))[:, None, None, :]
        y = self.conv2(self.dropping(nn.silu(self.norm2(y))))
        return y + (self.shortcut(x) if hasattr(self, "shortcut") else x)


class ImageAttention(nn.Layer):
    """Attention between all positions of a feature map (n, height, width, features), added to it.

    Args:
      features: the number of channels.
      num_heads: the number of heads.
      groups, epsilon: of the norm.
    """

    features: int
    num_heads: int = 1
    groups: int = 32
    epsilon: float = 1e-5

    def parts(self) -> Mapping[str, Any]:
        norm = nn.GroupNorm(self.features, self.epsilon, groups=self.groups)
        return {"norm": norm, "attention": Attention(self.features, self.num_heads)}

    def __call__(self, x: Any) -> Any:
        y = lax.collapse(self.norm(x), 1, 3)
        return x + self.attention(y).reshape(x.shape)


def doubled(x: Any) -> Any:
    """Feature maps (n, height, width, features) with each position twice along height and width."""
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
