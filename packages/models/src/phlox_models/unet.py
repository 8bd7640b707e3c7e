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
from ._image_blocks import ImageAttention as ImageAttention, ResidualBlock as ResidualBlock, doubled
from ._names.unet import RULES
from ._sinusoids import time_features as time_features
from ._unet_sizes import sizes


class UNet(nn.Layer):
    """Maps noisy images (n, height, width, channels) and times (n,) to predictions like the images.

    Args:
      config: of the model type "unet": `channels` of the images (3), `features` of the first feature maps, `factors` of
        the features at each resolution ([1, 2, 4]), `blocks` at each resolution (2), `attention` (the list of the
        resolutions that have it, from 0; by default the last), `heads` (1), `groups` of the norms (8), `dropout`,
        `classes` (0: without labels), `time_scale` (times are multiplied by it; 1000 for flow matching). Each
        resolution has half the height and width of the one before. Or of diffusers' ``UNet2DModel``.

    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build({"model_type": "unet", "features": 8, "factors": [1, 2], "blocks": 1, "groups": 4})
    >>> model.apply(model.init(phlox.random.key(0)), jnp.ones((5, 8, 8, 3)), jnp.arange(5)).shape
    (5, 8, 8, 3)
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c = sizes(self.config)
        widths, skips = c.widths, [c.widths[0]]

        def unit(ins: int, outs: int, attends: bool) -> dict[str, nn.Layer]:
            block = {"block": ResidualBlock(ins, outs, c.vector, c.groups, c.dropout, c.epsilon)}
            attention = ImageAttention(outs, c.num_heads(outs), c.groups, c.epsilon)
            return block | ({"attention": attention} if attends else {})

        down: list[dict[str, Any]] = []
        up: list[dict[str, Any]] = []
        ins = widths[0]
        for outs, attends in zip(widths, c.down_attention, strict=True):
            down.append({"blocks": [unit(outs if b else ins, outs, attends) for b in range(c.blocks)]})
            skips += [outs] * c.blocks
            if len(down) < len(widths):
                down[-1]["sample"] = nn.Conv(outs, outs, (3, 3), 2, c.padding)
                skips.append(outs)
            ins = outs
        middle = [unit(ins, ins, c.middle_attention), unit(ins, ins, False)]
        for outs, attends in zip(widths[::-1], c.up_attention, strict=True):
            blocks = [unit((outs if b else ins) + skips.pop(), outs, attends) for b in range(c.blocks + 1)]
            sample = {"sample": nn.Conv(outs, outs, (3, 3))} if len(up) + 1 < len(widths) else {}
            up.append({"blocks": blocks, **sample})
            ins = outs
        parts = {"first": nn.Conv(c.channels, widths[0], (3, 3)), "down": down, "middle": middle, "up": up}
        parts["time"] = nn.MLP((widths[0], c.vector, c.vector), nn.silu)
        parts["norm"] = nn.GroupNorm(widths[0], c.epsilon, groups=c.groups)
        parts["last"] = nn.Conv(widths[0], c.outputs, (3, 3), weight_init=nn.initializers.zeros)
        return parts | ({"labels": nn.Embedding(c.classes, c.vector)} if c.classes else {})

    def __call__(self, images: Any, times: Any, labels: Any = None) -> Any:
        """The predictions.

        Args:
          images: (n, height, width, channels).
          times: numbers (n,).
          labels: the classes of the images, integers (n,), for a model with `classes`.
        """
        c = sizes(self.config)
        scaled = jnp.asarray(times, jnp.float32) * c.time_scale
        time = time_features(scaled, c.widths[0], **dict(c.time_options))
        time = self.time(jnp.asarray(time, images.dtype))
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
                x = level["sample"](doubled(x)[:, :height, :width])
        return self.last(nn.silu(self.norm(x)))


def _applied(unit: Mapping[str, Any], x: Any, time: Any) -> Any:
    """The result of a residual block, and of attention if the unit has it."""
    x = unit["block"](x, time)
    return unit["attention"](x) if "attention" in unit else x


register("unet", UNet, [])
register("UNet2DModel", UNet, RULES)
