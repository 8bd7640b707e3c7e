"""A U-Net that predicts noise or velocities for `phlox_models.diffusion`. Sources: Ronneberger et al., 2015; Ho et al.,
2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._config import Config
from ._image_blocks import ImageAttention as ImageAttention, ResidualBlock as ResidualBlock
from ._sinusoids import time_features as time_features


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
