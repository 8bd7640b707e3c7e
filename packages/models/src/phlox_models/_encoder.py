"""Attention with a choice of biases, and the block with a norm before each part, which ViT, CLIP and Whisper share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import phlox_nn as nn
from phlox.errors import ShapeError

from ._config import Config


class Attention(nn.MultiHeadAttention):
    """`phlox_nn.MultiHeadAttention` whose four linear maps need not all have a bias.

    Args:
      biased: the names of the maps that have one, of "query", "key", "value" and "out".
    """

    biased: tuple[str, ...] = ("query", "key", "value", "out")

    def parts(self) -> Mapping[str, Any]:
        maps = super().parts().items()
        return {name: nn.Linear(m.in_features, m.out_features, name in self.biased) for name, m in maps}

    def torch_layout(self) -> Sequence[Any]:
        """Each map by itself: PyTorch's layer with joint maps has all biases or none."""
        return nn.Layer.torch_layout(self)


class Block(nn.Layer):
    """A block of a transformer: ``x + attention(norm1(x))``, then ``x + mlp(norm2(x))``.

    Args:
      features: the length of the last axis.
      attention: attention within the sequence.
      hidden_features: the length between the two layers of the perceptron.
      activation: the function between them.
      epsilon: of the norms.
      dropout: the fraction that is dropped in training, after each part.
    """

    features: int
    attention: nn.MultiHeadAttention
    hidden_features: int
    activation: Callable[[Any], Any] = nn.gelu
    epsilon: float = 1e-5
    dropout: float = 0.0

    def parts(self) -> Mapping[str, Any]:
        norm = nn.LayerNorm(self.features, self.epsilon)
        mlp = nn.MLP((self.features, self.hidden_features, self.features), self.activation)
        return {"norm1": norm, "norm2": norm, "mlp": mlp, "dropping": nn.Dropout(self.dropout)}

    def __call__(self, x: Any, mask: Any = None) -> Any:
        x = x + self.dropping(self.attention(self.norm1(x), mask=mask))
        return x + self.dropping(self.mlp(self.norm2(x)))


def pair(config: Config, name: str) -> tuple[int, int]:
    """A height and a width of a `config.json`: two numbers, or one for both."""
    sizes = config.integers(name)
    return sizes[0], sizes[-1]


def num_patches(config: Config) -> int:
    """The number of patches of an image of the configured size."""
    return math.prod(a // b for a, b in zip(pair(config, "image_size"), pair(config, "patch_size"), strict=True))


def check_patches(layer: nn.Layer, expected: int, count: int) -> None:
    """Raises `ShapeError` for images of another size, which have another number of patches."""
    if count != expected:
        raise ShapeError(
            f"{type(layer).__name__} is for images with {expected} patches, but these images have {count}",
            instead="images of the image_size in config.json, for example by phlox.image.resize",
            layer=layer.path,
        )
