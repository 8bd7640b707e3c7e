"""The two transformers of CLIP, which map texts and images to vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._config import Config
from ._encoder import Attention, Block, check_patches, num_patches, pair


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
        x = lax.collapse(self.patches(images), 1, 3)
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
