"""The Llama family: RMS norms, rotary positions, grouped heads and gated MLPs. Source: Touvron et al., 2023.

Mistral, Qwen2, Qwen3, Gemma and Phi-3 differ in details, which `_DETAILS` lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._attention import Attention, Span
from ._config import Config
from ._language import LanguageModel
from ._rotary import rotary


class Details(NamedTuple):
    """What members of the family differ in: entries of the configuration (None: the value is fixed), and defaults."""

    qkv_bias: bool = False
    out_bias: bool = False
    bias_entry: str | None = "attention_bias"
    query_norm: bool = False
    head_size: int | None = None
    is_tied: bool = False
    activation: str = "hidden_act"
    #: whether norms multiply by ``1 + weight``, and embeddings by the square root of their length
    is_offset: bool = False


_DETAILS = {
    "llama": Details(),
    "mistral": Details(bias_entry=None),
    "qwen2": Details(qkv_bias=True, bias_entry=None),
    "qwen3": Details(query_norm=True, head_size=128),
    "gemma": Details(head_size=256, is_tied=True, activation="hidden_activation", is_offset=True),
    "phi3": Details(bias_entry=None),
}


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
    return OffsetNorm(size, epsilon) if _DETAILS[c.model_type].is_offset else nn.RMSNorm(size, epsilon, use_bias=False)


def _head_size(c: Config) -> int:
    default = _DETAILS[c.model_type].head_size or c.integer("hidden_size") // c.integer("num_attention_heads")
    return c.integer("head_dim", default)


def _window(c: Config, block: int) -> int | None:
    """The sliding window of a block, or None."""
    kinds, window = c.get("layer_types"), c.get("sliding_window")
    if window is None:
        return None
    if isinstance(kinds, list) and len(kinds) > block:
        return c.integer("sliding_window") if kinds[block] == "sliding_attention" else None
    if c.model_type.startswith("qwen"):
        is_sliding = c.flag("use_sliding_window", False) and block >= c.get("max_window_layers", 28)
        return c.integer("sliding_window") if is_sliding else None
    return c.integer("sliding_window") if c.model_type in ("mistral", "phi3") else None


class Block(nn.Layer):
    """A block: attention and a gated MLP, each of normalized inputs and added to them."""

    config: Config
    number: int

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        details, size = _DETAILS[c.model_type], c.integer("hidden_size")
        has_bias = details.bias_entry is not None and c.flag(details.bias_entry, False)
        default = "gelu_pytorch_tanh" if details.is_offset else "silu"
        return {
            "norm1": _norm(c),
            "attention": Attention(
                size,
                c.integer("num_attention_heads"),
                c.integer("num_key_value_heads", c.integer("num_attention_heads")),
                _head_size(c),
                use_bias=details.qkv_bias or has_bias,
                out_bias=details.out_bias or has_bias,
                rotary=rotary(c, _head_size(c)),
                window=_window(c, self.number),
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
            **self.head_parts(size, vocabulary, c.flag("tie_word_embeddings", _DETAILS[c.model_type].is_tied)),
        }

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        heads = self.config.integer("num_key_value_heads", self.config.integer("num_attention_heads"))
        return self.config.integer("num_hidden_layers"), heads, _head_size(self.config)

    def embed(self, tokens: Any, span: Span) -> Any:
        x = self.tokens(tokens)
        if not _DETAILS[self.config.model_type].is_offset:
            return x
        # Gemma was trained with the factor rounded to the dtype of its embeddings.
        return x * jnp.asarray(math.sqrt(self.config.integer("hidden_size")), x.dtype)


WEIGHTS = [
    ("model.embed_tokens.*", "tokens.*"),
    ("model.layers.*.input_layernorm.*", "blocks.*.norm1.*"),
    ("model.layers.*.self_attn.q_proj.*", "blocks.*.attention.query.*"),
    ("model.layers.*.self_attn.k_proj.*", "blocks.*.attention.key.*"),
    ("model.layers.*.self_attn.v_proj.*", "blocks.*.attention.value.*"),
    ("model.layers.*.self_attn.o_proj.*", "blocks.*.attention.out.*"),
    ("model.layers.*.self_attn.q_norm.*", "blocks.*.attention.query_norm.*"),
    ("model.layers.*.self_attn.k_norm.*", "blocks.*.attention.key_norm.*"),
    ("model.layers.*.self_attn.rotary_emb.inv_freq", None),  # in older files
    ("model.layers.*.post_attention_layernorm.*", "blocks.*.norm2.*"),
    ("model.layers.*.mlp.gate_proj.*", "blocks.*.mlp.gate.*"),
    ("model.layers.*.mlp.up_proj.*", "blocks.*.mlp.value.*"),
    ("model.layers.*.mlp.down_proj.*", "blocks.*.mlp.out.*"),
    ("model.norm.*", "norm.*"),
    ("lm_head.*", "unembed.*"),
]
# Phi-3 has one matrix for queries, keys and values, and one for the two halves of the MLP.
PHI3_WEIGHTS = [
    (
        "model.layers.*.self_attn.qkv_proj.*",
        ["blocks.*.attention.query.*", "blocks.*.attention.key.*", "blocks.*.attention.value.*"],
    ),
    ("model.layers.*.mlp.gate_up_proj.*", ["blocks.*.mlp.gate.*", "blocks.*.mlp.value.*"]),
    *WEIGHTS,
]
for _model_type in _DETAILS:
    register(_model_type, Llama, PHI3_WEIGHTS if _model_type == "phi3" else WEIGHTS, prefix="model.")
