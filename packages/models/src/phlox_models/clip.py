"""CLIP: images and texts become vectors of one space. Source: Radford et al., 2021."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError

from ._architecture import register
from ._config import Config
from ._encoder import Attention, Block, check_patches, num_patches, pair


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


class TextEncoder(nn.Layer):
    """Maps tokens (n, length) to hidden states (n, length, features) with causal attention.

    Args:
      config: of the model type "clip_text_model".
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, features, normal = self.config, self.config.integer("hidden_size"), nn.initializers.normal(0.02)
        c.head("Model")  # raises for others
        return {
            "tokens": nn.Embedding(c.integer("vocab_size"), features, normal),
            "positions": nn.Embedding(c.integer("max_position_embeddings", 77), features, normal),
            "blocks": _blocks(c, causal=True),
            "norm": nn.LayerNorm(features, c.number("layer_norm_eps", 1e-5)),
        }

    def __call__(self, tokens: Any, mask: Any = None) -> Any:
        x = self.tokens(tokens) + self.positions(jnp.arange(tokens.shape[-1]))
        for block in self.blocks:
            x = block(x, None if mask is None else jnp.asarray(mask, bool)[:, None, :])
        return self.norm(x)

    def pooled(self, tokens: Any, mask: Any = None) -> Any:
        """The state (n, features) of the token that ends the text."""
        end = self.config.get("eos_token_id", 49407)
        # The first configurations have a wrong number, 2, and vocabularies in which the end is the largest token.
        ends = tokens if end == 2 else tokens == end
        return jnp.take_along_axis(self(tokens, mask), jnp.argmax(ends, axis=-1)[:, None, None], axis=1)[:, 0]


class ImageEncoder(nn.Layer):
    """Maps images (n, height, width, channels) to hidden states (n, length, features), the first for the whole image.

    Args:
      config: of the model type "clip_vision_model".
    """

    config: Config

    def parameters(self) -> Mapping[str, Any]:
        c, features, normal = self.config, self.config.integer("hidden_size"), nn.initializers.normal(0.02)
        return {"cls_token": (normal, (features,)), "positions": (normal, (num_patches(c) + 1, features))}

    def parts(self) -> Mapping[str, Any]:
        c, features, patch = self.config, self.config.integer("hidden_size"), pair(self.config, "patch_size")
        c.head("Model")  # raises for others
        norm = nn.LayerNorm(features, c.number("layer_norm_eps", 1e-5))
        patches = nn.Conv(c.integer("num_channels", 3), features, patch, patch, "VALID", use_bias=False)
        return {"patches": patches, "first_norm": norm, "blocks": _blocks(c, causal=False), "last_norm": norm}

    def __call__(self, images: Any) -> Any:
        x = self.patches(images)
        x = x.reshape((len(x), -1, x.shape[-1]))
        check_patches(self, num_patches(self.config), x.shape[1])
        x = jnp.concatenate([jnp.broadcast_to(self.cls_token, (len(x), 1, x.shape[-1])), x], axis=1)
        x = self.first_norm(x + self.positions)
        for block in self.blocks:
            x = block(x)
        return x

    def pooled(self, images: Any) -> Any:
        """The normalized state (n, features) of the class token."""
        return self.last_norm(self(images)[:, 0])


def _blocks(c: Config, causal: bool) -> list[Block]:
    features, dropout = c.integer("hidden_size"), c.number("attention_dropout", 0.0)
    attention = Attention(features, c.integer("num_attention_heads"), causal=causal, dropout=dropout)
    options = (c.activation("hidden_act", "quick_gelu"), c.number("layer_norm_eps", 1e-5))
    return [Block(features, attention, c.integer("intermediate_size"), *options)] * c.integer("num_hidden_layers")


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
        return _unit(self.text_projection(self.text.pooled(tokens, mask)))

    def image_embeddings(self, images: Any) -> Any:
        """Vectors of length 1, (images, features), of images (images, height, width, channels)."""
        return _unit(self.image_projection(self.image.pooled(images)))


def _unit(x: Any) -> Any:
    return x / jnp.sqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True))


_WEIGHTS: list[tuple[Any, ...]] = [
    ("*.position_ids", None),
    ("text_model.embeddings.token_embedding.*", "text.tokens.*"),
    ("text_model.embeddings.position_embedding.*", "text.positions.*"),
    ("text_model.final_layer_norm.*", "text.norm.*"),
    ("vision_model.embeddings.class_embedding", "image.cls_token"),
    ("vision_model.embeddings.patch_embedding.*", "image.patches.*"),
    ("vision_model.embeddings.position_embedding.weight", "image.positions"),
    ("vision_model.pre_layrnorm.*", "image.first_norm.*"),
    ("vision_model.post_layernorm.*", "image.last_norm.*"),
    ("visual_projection.*", "image_projection.*"),
]
for _theirs, _ours in (
    ("text_model.encoder.layers.*", "text.blocks.*"),
    ("vision_model.encoder.layers.*", "image.blocks.*"),
):
    _WEIGHTS += [(f"{_theirs}.layer_norm{n}.*", f"{_ours}.norm{n}.*") for n in (1, 2)]
    _WEIGHTS += [(f"{_theirs}.mlp.fc{n}.*", f"{_ours}.mlp.layers.{n - 1}.*") for n in (1, 2)]
    _WEIGHTS += [(f"{_theirs}.self_attn.{n[0]}_proj.*", f"{_ours}.attention.{n}.*") for n in ("query", "key", "value")]
    _WEIGHTS += [(f"{_theirs}.self_attn.out_proj.*", f"{_ours}.attention.out.*")]
register("clip", CLIP, _WEIGHTS)
# The encoders by themselves, as CLIPTextModel and CLIPVisionModel write them.
for _kind, _encoder, _part in (("text", TextEncoder, "text."), ("vision", ImageEncoder, "image.")):
    _rules = [(theirs, ours.removeprefix(_part)) for theirs, ours in _WEIGHTS if ours and ours.startswith(_part)]
    register(f"clip_{_kind}_model", _encoder, [("*.position_ids", None), *_rules], prefix=f"{_kind}_model.")
