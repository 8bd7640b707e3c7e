"""MLP-Mixer: perceptrons along the patches of an image, and along its channels. Source: Tolstikhin et al., 2021.

Weights have the names that the library timm gives to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._architecture import register
from ._config import Config
from ._encoder import check_patches, num_patches, pair
from ._names.mlp_mixer import RULES


class MixerBlock(nn.Layer):
    """A perceptron along the patches and one along the channels, each added to its input. Keeps the shape.

    Args:
      num_patches, features: the lengths of the last two axes.
      patches_hidden, features_hidden: the lengths between the two layers of the perceptrons.
    """

    num_patches: int
    features: int
    patches_hidden: int
    features_hidden: int

    def parts(self) -> Mapping[str, Any]:
        norm, n, p = nn.LayerNorm(self.features, 1e-6), self.features, self.num_patches
        return {
            "norm1": norm,
            "patches": nn.MLP((p, self.patches_hidden, p), _gelu),
            "norm2": norm,
            "channels": nn.MLP((n, self.features_hidden, n), _gelu),
        }

    def __call__(self, x: Any) -> Any:
        x = x + self.patches(self.norm1(x).swapaxes(-1, -2)).swapaxes(-1, -2)
        return x + self.channels(self.norm2(x))


def _gelu(x: Any) -> Any:
    return nn.gelu(x, approximate=False)


class MLPMixer(nn.Layer):
    """Maps images (n, height, width, channels) to logits (n, labels); an encoder to states (n, patches, features).

    Args:
      config: of the model type "mlp-mixer": `image_size`, `patch_size`, `hidden_size`, `num_hidden_layers`,
        `tokens_mlp_dim` and `channels_mlp_dim` (by default half and four times of the hidden size), `num_channels`,
        `num_labels`. An encoder has ``"architectures": ["MLPMixerModel"]``.

    >>> import phlox
    >>> import phlox_models
    >>> config = {"image_size": 8, "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 2, "num_labels": 10}
    >>> model = phlox_models.build({"model_type": "mlp-mixer", **config})
    >>> model.apply(model.init(phlox.random.key(0)), phlox.numpy.ones((5, 8, 8, 3))).shape
    (5, 10)
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, n, patch = self.config, self.config.integer("hidden_size"), pair(self.config, "patch_size")
        hidden = c.integer("tokens_mlp_dim", n // 2), c.integer("channels_mlp_dim", 4 * n)
        parts = {
            "stem": nn.Conv(c.integer("num_channels", 3), n, patch, patch, "VALID"),
            "blocks": [MixerBlock(num_patches(c), n, *hidden)] * c.integer("num_hidden_layers"),
            "norm": nn.LayerNorm(n, 1e-6),
        }
        is_classifier = c.head("ForImageClassification", "Model") != "Model"
        return parts | ({"head": nn.Linear(n, c.labels)} if is_classifier else {})

    def __call__(self, images: Any) -> Any:
        x = lax.collapse(self.stem(images), 1, 3)
        check_patches(self, num_patches(self.config), x.shape[1])
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(jnp.mean(x, axis=1)) if hasattr(self, "head") else x


register("mlp-mixer", MLPMixer, RULES)
