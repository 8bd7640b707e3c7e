"""A U-Net that predicts noise or velocities for `phlox_models.diffusion`. Sources: Ronneberger et al., 2015; Ho et al.,
2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._config import Config


def time_features(times: Any, features: int, longest: float = 10000.0) -> Any:
    """Cosines and sines of times (n,), with `features` / 2 wavelengths from 2 pi to 2 pi `longest`: (n, features).

    >>> time_features(jnp.array([0, 5]), 8).shape
    (2, 8)
    """
    half = features // 2
    angles = jnp.asarray(times, jnp.float32)[:, None] * jnp.exp(-math.log(longest) * jnp.arange(half) / half)
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)


class ResidualBlock(nn.Layer):
    """Two convolutions, with what is known of the time added between them. Keeps height and width.

    Args:
      in_features, out_features: the number of channels before and after.
      time_features: the length of the vectors of time; None for a block without them.
      groups: of the norms; it divides both numbers of channels.
      dropout: the fraction that is dropped in training before the second convolution.
    """

    in_features: int
    out_features: int
    time_features: int | None = None
    groups: int = 32
    dropout: float = 0.0

    def parts(self) -> Mapping[str, Any]:
        ins, outs = self.in_features, self.out_features
        # A block begins as its shortcut, as the last convolution begins with zeros.
        last = nn.Conv(outs, outs, (3, 3), weight_init=nn.initializers.zeros)
        parts = {
            "norm1": nn.GroupNorm(ins, groups=self.groups),
            "conv1": nn.Conv(ins, outs, (3, 3)),
            "norm2": nn.GroupNorm(outs, groups=self.groups),
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
      groups: of the norm.
    """

    features: int
    num_heads: int = 1
    groups: int = 32

    def parts(self) -> Mapping[str, Any]:
        attention = nn.MultiHeadAttention(self.features, self.num_heads)
        return {"norm": nn.GroupNorm(self.features, groups=self.groups), "attention": attention}

    def __call__(self, x: Any) -> Any:
        y = self.norm(x).reshape((len(x), -1, self.features))
        return x + self.attention(y).reshape(x.shape)


class UNet(nn.Layer):
    """Maps noisy images (n, height, width, channels) and times (n,) to predictions like the images.

    Args:
      config: of the model type "unet": `channels` of the images (3), `features` of the first feature maps, `factors` of
        the features at each resolution ([1, 2, 4]), `blocks` at each resolution (2), `attention` (the list of the
        resolutions that have it, from 0; by default the last), `heads` (1), `groups` of the norms (8), `dropout`,
        `classes` (0: without labels), `time_scale` (times are multiplied by it; 1000 for flow matching). Each
        resolution has half the height and width of the one before.

    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build({"model_type": "unet", "features": 8, "factors": [1, 2], "blocks": 1, "groups": 4})
    >>> model.apply(model.init(phlox.random.key(0)), jnp.ones((5, 8, 8, 3)), jnp.arange(5)).shape
    (5, 8, 8, 3)
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, n, channels = self.config, self.config.integer("features"), self.config.integer("channels", 3)
        depth, vector, groups = c.integer("blocks", 2), 4 * n, c.integer("groups", 8)
        widths = [n * factor for factor in c.integers("factors", (1, 2, 4))]
        attentive = c.get("attention", [len(widths) - 1])

        def unit(ins: int, outs: int, attends: bool) -> dict[str, nn.Layer]:
            block = {"block": ResidualBlock(ins, outs, vector, groups, c.number("dropout", 0.0))}
            return block | ({"attention": ImageAttention(outs, c.integer("heads", 1), groups)} if attends else {})

        down: list[dict[str, Any]] = []
        up: list[dict[str, Any]] = []
        skips, ins = [n], n
        for number, outs in enumerate(widths):
            down.append({"blocks": [unit(outs if b else ins, outs, number in attentive) for b in range(depth)]})
            skips += [outs] * depth
            if number < len(widths) - 1:
                down[-1]["sample"] = nn.Conv(outs, outs, (3, 3), 2, 1)
                skips.append(outs)
            ins = outs
        middle = [unit(ins, ins, True), unit(ins, ins, False)]
        for number, outs in reversed(list(enumerate(widths))):
            blocks = []
            for _ in range(depth + 1):
                blocks.append(unit(ins + skips.pop(), outs, number in attentive))
                ins = outs
            up.append({"blocks": blocks, **({"sample": nn.Conv(outs, outs, (3, 3))} if number else {})})
        parts = {"first": nn.Conv(channels, n, (3, 3)), "down": down, "middle": middle, "up": up}
        parts |= {"time": nn.MLP((n, vector, vector), nn.silu), "norm": nn.GroupNorm(n, groups=groups)}
        parts["last"] = nn.Conv(n, channels, (3, 3), weight_init=nn.initializers.zeros)
        return parts | ({"labels": nn.Embedding(c.integer("classes"), vector)} if c.get("classes") else {})

    def __call__(self, images: Any, times: Any, labels: Any = None) -> Any:
        """The predictions.

        Args:
          images: (n, height, width, channels).
          times: numbers (n,).
          labels: the classes of the images, integers (n,), for a model with `classes`.
        """
        scaled = jnp.asarray(times, jnp.float32) * self.config.number("time_scale", 1.0)
        time = self.time(jnp.asarray(time_features(scaled, self.config.integer("features")), images.dtype))
        time = time if labels is None else time + self.labels(labels)
        x = self.first(images)
        skips = [x]
        for level in self.down:
            for unit in level["blocks"]:
                x = _applied(unit, x, time)
                skips.append(x)
            if "sample" in level:
                x = level["sample"](x)
                skips.append(x)
        for unit in self.middle:
            x = _applied(unit, x, time)
        for level in self.up:
            for unit in level["blocks"]:
                x = _applied(unit, jnp.concatenate([x, skips.pop()], axis=-1), time)
            if "sample" in level:
                height, width = skips[-1].shape[1:3]  # halves of odd lengths are rounded up
                x = level["sample"](jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)[:, :height, :width])
        return self.last(nn.silu(self.norm(x)))


def _applied(unit: Mapping[str, Any], x: Any, time: Any) -> Any:
    """The result of a residual block, and of attention if the unit has it."""
    x = unit["block"](x, time)
    return unit["attention"](x) if "attention" in unit else x


register("unet", UNet, [])
