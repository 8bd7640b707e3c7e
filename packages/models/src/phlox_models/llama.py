"""The Llama family: RMS norms, rotary positions, grouped heads and gated MLPs. Source: Touvron et al., 2023.

Mistral, Qwen2, Qwen3, Gemma and Phi-3 differ in details, which `_llama_family.DETAILS` lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._attention import Attention, Span
from ._config import Config
from ._language import LanguageModel
from ._llama_family import DETAILS, head_size, window
from ._names.llama import PHI3_RULES, RULES
from ._rotary import rotary


class OffsetNorm(nn.Layer):
    """The RMS norm of Gemma, which multiplies by ``1 + weight``."""

    features: int
    epsilon: float

    def parameters(self) -> Mapping[str, Any]:
        return {"weight": (nn.initializers.zeros, (self.features,))}

    def __call__(self, x: Any) -> Any:
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        y = wide / jnp.sqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + self.epsilon)
        return (y * (1 + self.weight.astype(wide.dtype))).astype(x.dtype)


def _norm(c: Config) -> nn.Layer:
    size, epsilon = c.integer("hidden_size"), c.number("rms_norm_eps", 1e-6)
    return OffsetNorm(size, epsilon) if DETAILS[c.model_type].is_offset else nn.RMSNorm(size, epsilon, use_bias=False)


class Block(nn.Layer):
    """A block: attention and a gated MLP, each of normalized inputs and added to them."""

    config: Config
    number: int

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        details, size = DETAILS[c.model_type], c.integer("hidden_size")
        has_bias = details.bias_entry is not None and c.flag(details.bias_entry, False)
        default = "gelu_pytorch_tanh" if details.is_offset else "silu"
        return {
            "norm1": _norm(c),
            "attention": Attention(
                size,
                c.integer("num_attention_heads"),
                c.integer("num_key_value_heads", c.integer("num_attention_heads")),
                head_size(c),
                use_bias=details.qkv_bias or has_bias,
                out_bias=details.out_bias or has_bias,
                rotary=rotary(c, head_size(c)),
                window=window(c, self.number),
                norm=c.number("rms_norm_eps", 1e-6) if details.query_norm else None,
                dropout=c.number("attention_dropout", 0.0),
            ),
            "norm2": _norm(c),
            "mlp": nn.GLU(
                size,
                c.integer("intermediate_size"),
                c.activation(details.activation, c.text("hidden_act", default)),
                c.flag("mlp_bias", False),
            ),
        }

    def __call__(self, x: Any, span: Span, cache: Any) -> tuple[Any, Any]:
        y, cache = self.attention(self.norm1(x), span, cache)
        x = x + y
        return x + self.mlp(self.norm2(x)), cache


class Llama(LanguageModel):
    """A model of the Llama family."""

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, vocabulary = c.integer("hidden_size"), c.integer("vocab_size")
        return {
            "tokens": nn.Embedding(vocabulary, size, nn.initializers.normal(0.02)),
            "blocks": [Block(c, n) for n in range(c.integer("num_hidden_layers"))],
            "norm": _norm(c),
            **self.head_parts(size, vocabulary, c.flag("tie_word_embeddings", DETAILS[c.model_type].is_tied)),
        }

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        heads = self.config.integer("num_key_value_heads", self.config.integer("num_attention_heads"))
        return self.config.integer("num_hidden_layers"), heads, head_size(self.config)

    def embed(self, tokens: Any, span: Span) -> Any:
        x = self.tokens(tokens)
        if not DETAILS[self.config.model_type].is_offset:
            return x
        # Gemma was trained with the factor rounded to the dtype of its embeddings.
        return x * jnp.asarray(math.sqrt(self.config.integer("hidden_size")), x.dtype)


for _model_type in DETAILS:
    register(_model_type, Llama, PHI3_RULES if _model_type == "phi3" else RULES, prefix="model.")
