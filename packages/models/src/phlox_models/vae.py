"""A variational autoencoder of images with convolutions. Source: Kingma and Welling, 2013.

The encoder maps an image to the mean and the logarithm of the variance of normal latents. The decoder maps latents
back. The loss is the evidence lower bound: the error of the reconstruction, and the divergence of the latents from
normal numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import random

from ._architecture import register
from ._config import Config
from ._image_blocks import ResidualBlock


class VAEOutput(NamedTuple):
    """The result of `VAE`.

    Attributes:
      images: the reconstructions (n, height, width, channels).
      mean, log_variance: of the latents, each (n, height', width', latents).
    """

    images: Any
    mean: Any
    log_variance: Any


class VAE(nn.Layer):
    """Maps images (n, height, width, channels) to a `VAEOutput`.

    In training it draws the latents, otherwise it takes their mean. The methods `encode` and `decode` are its halves.
    Height and width are multiples of 2 for each halving.

    Args:
      config: of the model type "vae": `channels` of the images (3), `features` of the first feature maps, `factors` of
        the features at each resolution ([1, 2]; each is followed by a halving of height and width), `blocks` at each
        resolution (1), `latents`, the number of channels of the latents, and `groups` of the norms (8).

    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build({"model_type": "vae", "features": 8, "latents": 4})
    >>> out = model.apply(model.init(phlox.random.key(0)), jnp.ones((5, 8, 8, 3)), key=phlox.random.key(1), train=True)
    >>> out.images.shape, out.mean.shape
    ((5, 8, 8, 3), (5, 2, 2, 4))
    >>> elbo_loss(out, jnp.ones((5, 8, 8, 3))).shape
    ()
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, channels, latents = self.config, self.config.integer("channels", 3), self.config.integer("latents")
        groups, depth = c.integer("groups", 8), c.integer("blocks", 1)
        widths = [c.integer("features") * factor for factor in c.integers("factors", (1, 2))]
        down: list[Any] = [nn.Conv(channels, widths[0], (3, 3))]
        up: list[Any] = [nn.Conv(latents, widths[-1], (3, 3))]
        for ins, outs in zip([widths[0], *widths], widths, strict=False):
            down += [ResidualBlock(outs if b else ins, outs, None, groups) for b in range(depth)]
            down.append(nn.Conv(outs, outs, (3, 3), 2, 1))
        for outs, after in zip(widths[::-1], [*widths[-2::-1], widths[0]], strict=True):
            up += [ResidualBlock(outs, outs, None, groups) for _ in range(depth)]
            up.append(nn.ConvTranspose(outs, after, (4, 4), 2, 1))
        down += [nn.GroupNorm(widths[-1], groups=groups), nn.silu, nn.Conv(widths[-1], 2 * latents, (1, 1))]
        up += [nn.GroupNorm(widths[0], groups=groups), nn.silu, nn.Conv(widths[0], channels, (3, 3))]
        return {"encoder": nn.Sequential(*down), "decoder": nn.Sequential(*up)}

    def __call__(self, images: Any) -> VAEOutput:
        mean, log_variance = self.encode(images)
        latents = mean
        if self.train:  # the reparametrization: a function of the parameters, and of noise that has none
            latents = mean + jnp.exp(log_variance / 2) * random.normal(self.random_key(), mean.shape, mean.dtype)
        return VAEOutput(self.decode(latents), mean, log_variance)

    def encode(self, images: Any) -> tuple[Any, Any]:
        """The mean and the logarithm of the variance of the latents, each (n, height', width', latents)."""
        mean, log_variance = jnp.split(self.encoder(images), 2, axis=-1)
        return mean, log_variance

    def decode(self, latents: Any) -> Any:
        """Images (n, height, width, channels) of latents; normal numbers as latents give samples."""
        return self.decoder(latents)


def elbo_loss(out: VAEOutput, images: Any, *, beta: float = 1.0) -> Any:
    """The mean over the images of half the squared error of the reconstruction, plus `beta` times the divergence.

    This is minus the evidence lower bound, but for a constant, of normal images with variance 1.

    Args:
      out: the result of a `VAE` for the images.
      images: (n, height, width, channels).
      beta: the weight of the divergence from a standard normal distribution (Higgins et al., 2017).

    >>> zeros = jnp.zeros((1, 2, 2, 1))
    >>> elbo_loss(VAEOutput(zeros, zeros + 1, zeros), zeros)
    Array(2., dtype=float32)
    """
    error = jnp.sum(jnp.square(out.images - images)) / 2
    divergence = jnp.sum(jnp.square(out.mean) + jnp.exp(out.log_variance) - 1 - out.log_variance) / 2
    return (error + beta * divergence) / len(images)


register("vae", VAE, [])
