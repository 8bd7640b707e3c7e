"""The autoencoder of latent diffusion, in diffusers' form. Source: Rombach et al., 2021.

It maps images to latents of an eighth of their height and width, or what its configuration says, in which a diffusion
model works, and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._config import Config
from ._image_blocks import ImageAttention, ResidualBlock, doubled
from ._names.autoencoder_kl import RULES
from .vae import VAE

#: of all norms
_EPSILON = 1e-6


def _widths(c: Config) -> tuple[int, ...]:
    return c.integers("block_out_channels", (64,))


def _block(c: Config, ins: int, outs: int) -> ResidualBlock:
    return ResidualBlock(ins, outs, None, c.integer("norm_num_groups", 32), epsilon=_EPSILON)


class Middle(nn.Layer):
    """Two blocks at the lowest resolution, with attention between them."""

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, n = self.config, _widths(self.config)[-1]
        parts: dict[str, nn.Layer] = {"first": _block(c, n, n), "last": _block(c, n, n)}
        if c.flag("mid_block_add_attention", True):
            parts["attention"] = ImageAttention(n, 1, c.integer("norm_num_groups", 32), _EPSILON)
        return parts

    def __call__(self, x: Any) -> Any:
        x = self.first(x)
        return self.last(self.attention(x) if hasattr(self, "attention") else x)


class Half(nn.Layer):
    """The encoder or the decoder: maps feature maps (n, height, width, ins) to such with `outs` channels."""

    config: Config
    ins: int
    outs: int
    is_decoder: bool

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        widths = _widths(c)[::-1] if self.is_decoder else _widths(c)
        depth = c.integer("layers_per_block", 1) + self.is_decoder
        levels: list[dict[str, Any]] = []
        for ins, outs in zip((widths[0], *widths), widths, strict=False):
            levels.append({"blocks": [_block(c, outs if b else ins, outs) for b in range(depth)]})
            if len(levels) < len(widths):
                # The encoder's convolution sees a row and a column of zeros behind the image.
                options = (1, 1) if self.is_decoder else (2, ((0, 1), (0, 1)))
                levels[-1]["sample"] = nn.Conv(outs, outs, (3, 3), *options)
        return {
            "first": nn.Conv(self.ins, widths[0], (3, 3)),
            "levels": levels,
            "middle": Middle(c),
            "norm": nn.GroupNorm(widths[-1], _EPSILON, groups=c.integer("norm_num_groups", 32)),
            "last": nn.Conv(widths[-1], self.outs, (3, 3)),
        }

    def __call__(self, x: Any) -> Any:
        x = self.first(x)
        x = self.middle(x) if self.is_decoder else x
        for level in self.levels:
            for block in level["blocks"]:
                x = block(x)
            if "sample" in level:
                x = level["sample"](doubled(x) if self.is_decoder else x)
        x = x if self.is_decoder else self.middle(x)
        return self.last(nn.silu(self.norm(x)))


class AutoencoderKL(VAE):
    """Maps images (n, height, width, channels) to a `phlox_models.vae.VAEOutput`, as `phlox_models.vae.VAE` does.

    Args:
      config: of diffusers' ``AutoencoderKL``. Its `scaling_factor` is for the diffusion model: the latents have the
        scale of the encoder.

    >>> import phlox
    >>> import phlox_models
    >>> config = {"block_out_channels": [8, 16], "norm_num_groups": 4, "latent_channels": 4}
    >>> model = phlox_models.build({"_class_name": "AutoencoderKL", **config})
    >>> out = model.apply(model.init(phlox.random.key(0)), jnp.ones((5, 8, 8, 3)))
    >>> out.images.shape, out.mean.shape
    ((5, 8, 8, 3), (5, 4, 4, 4))
    """

    def parts(self) -> Mapping[str, Any]:
        c, latents = self.config, self.config.integer("latent_channels", 4)
        count = len(_widths(c))
        kinds = {"down_block_types": ["DownEncoderBlock2D"] * count, "up_block_types": ["UpDecoderBlock2D"] * count}
        c.check_fixed({"act_fn": "silu", **kinds})
        parts: dict[str, nn.Layer] = {
            "encoder": Half(c, c.integer("in_channels", 3), 2 * latents, is_decoder=False),
            "decoder": Half(c, latents, c.integer("out_channels", 3), is_decoder=True),
        }
        if c.flag("use_quant_conv", True):
            parts["quant"] = nn.Conv(2 * latents, 2 * latents, (1, 1))
        if c.flag("use_post_quant_conv", True):
            parts["post_quant"] = nn.Conv(latents, latents, (1, 1))
        return parts

    def encode(self, images: Any) -> tuple[Any, Any]:
        """The mean and the logarithm of the variance of the latents, each (n, height', width', latents)."""
        x = self.encoder(images)
        mean, log_variance = jnp.split(self.quant(x) if hasattr(self, "quant") else x, 2, axis=-1)
        return mean, jnp.clip(log_variance, -30, 20)  # as diffusers does

    def decode(self, latents: Any) -> Any:
        """Images (n, height, width, channels) of latents."""
        return self.decoder(self.post_quant(latents) if hasattr(self, "post_quant") else latents)


register("AutoencoderKL", AutoencoderKL, RULES)
