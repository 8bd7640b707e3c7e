"""CLIP: images and texts become vectors of one space. Source: Radford et al., 2021."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError

from ._architecture import register
from ._clip_encoders import ImageEncoder as ImageEncoder, TextEncoder as TextEncoder
from ._config import Config
from ._names import clip
from ._unit import unit


class CLIPOutput(NamedTuple):
    """The result of `CLIP`.

    Attributes:
      logits_per_image: the similarity of each image with each text, (images, texts), times ``exp(logit_scale)``.
      logits_per_text: its transpose.
      image_embeddings, text_embeddings: vectors of length 1, (n, projection features).
    """

    logits_per_image: Any
    logits_per_text: Any
    image_embeddings: Any
    text_embeddings: Any


class CLIP(nn.Layer):
    """Maps tokens (texts, length) and images (images, height, width, channels) to a `CLIPOutput`.

    The methods `text_embeddings` and `image_embeddings` need only one of the two.

    Args:
      config: of the model type "clip".

    >>> import phlox
    >>> import phlox_models
    >>> tower = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    >>> config = {"text_config": tower | {"vocab_size": 50, "max_position_embeddings": 8}, "projection_dim": 12}
    >>> config |= {"vision_config": tower | {"image_size": 8, "patch_size": 4}}
    >>> model = phlox_models.build({"model_type": "clip", **config})
    >>> params = model.init(phlox.random.key(0))
    >>> tokens, images = phlox.numpy.ones((2, 8), int), phlox.numpy.ones((3, 8, 8, 3))
    >>> model.apply(params, tokens, images).logits_per_image.shape
    (3, 2)
    >>> model.apply(params, images, method="image_embeddings").shape
    (3, 12)
    """

    config: Config

    def parameters(self) -> Mapping[str, Any]:
        scale = self.config.number("logit_scale_init_value", 2.6592)
        return {"logit_scale": (nn.initializers.constant(scale), ())}

    def parts(self) -> Mapping[str, Any]:
        text, image = self.config.part("text_config"), self.config.part("vision_config")
        size = self.config.integer("projection_dim", 512)
        return {
            "text": TextEncoder(text),
            "image": ImageEncoder(image),
            "text_projection": nn.Linear(text.integer("hidden_size"), size, use_bias=False),
            "image_projection": nn.Linear(image.integer("hidden_size"), size, use_bias=False),
        }

    def __call__(self, tokens: Any, images: Any, mask: Any = None) -> CLIPOutput:
        """The similarities of all pairs of a text and an image.

        Args:
          tokens: integers (texts, length).
          images: (images, height, width, channels).
          mask: bools (texts, length), false for padding.
        """
        if jnp.ndim(tokens) != 2 or jnp.ndim(images) != 4:
            raise ArgumentError(
                f"CLIP takes tokens (texts, length) and images (images, height, width, channels), got arrays of the "
                f"shapes {jnp.shape(tokens)} and {jnp.shape(images)}",
                instead="model.apply(params, tokens, images)",
            )
        texts, pictures = self.text_embeddings(tokens, mask), self.image_embeddings(images)
        logits = jnp.exp(self.logit_scale) * texts @ pictures.T
        return CLIPOutput(logits.T, logits, pictures, texts)

    def text_embeddings(self, tokens: Any, mask: Any = None) -> Any:
        """Vectors of length 1, (texts, features), of tokens (texts, length)."""
        return unit(self.text_projection(self.text.pooled(tokens, mask)))

    def image_embeddings(self, images: Any) -> Any:
        """Vectors of length 1, (images, features), of images (images, height, width, channels)."""
        return unit(self.image_projection(self.image.pooled(images)))


register("clip", CLIP, clip.RULES)
# The encoders by themselves, as CLIPTextModel and CLIPVisionModel write them.
register("clip_text_model", TextEncoder, clip.of_encoder("text"), prefix="text_model.")
register("clip_vision_model", ImageEncoder, clip.of_encoder("image"), prefix="vision_model.")
