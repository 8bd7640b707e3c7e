"""GPT-2: a decoder with learnt positions and norms before attention and MLP. Source: Radford et al., 2019."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox_nn as nn

from ._architecture import register
from ._attention import Attention, Span
from ._config import Config
from ._language import LanguageModel
from ._names.gpt2 import RULES


class Block(nn.Layer):
    """A block of GPT-2: attention and an MLP, each added to its inputs."""

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, dropout = c.integer("n_embd"), c.number("resid_pdrop", 0.1)
        norm = nn.LayerNorm(size, epsilon=c.number("layer_norm_epsilon", 1e-5))
        return {
            "norm1": norm,
            "attention": Attention(size, c.integer("n_head"), dropout=c.number("attn_pdrop", 0.1)),
            "norm2": norm,
            "mlp": nn.MLP(
                (size, c.integer("n_inner", 4 * size), size), c.activation("activation_function", "gelu_new")
            ),
            "dropping": nn.Dropout(dropout),
        }

    def __call__(self, x: Any, span: Span, cache: Any) -> tuple[Any, Any]:
        y, cache = self.attention(self.norm1(x), span, cache)
        x = x + self.dropping(y)
        return x + self.dropping(self.mlp(self.norm2(x))), cache


class GPT2(LanguageModel):
    """GPT-2. Its parts are named as those of all decoders here: tokens, blocks, norm, and unembed or score."""

    token_head = "classifier"

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, vocabulary = c.integer("n_embd"), c.integer("vocab_size")
        small = nn.initializers.normal(0.02)
        return {
            "tokens": nn.Embedding(vocabulary, size, small),
            "positions": nn.Embedding(c.integer("n_positions", 1024), size, small),
            "blocks": [Block(c) for _ in range(c.integer("n_layer"))],
            "norm": nn.LayerNorm(size, epsilon=c.number("layer_norm_epsilon", 1e-5)),
            "dropping": nn.Dropout(c.number("embd_pdrop", 0.1)),
            **self.head_parts(size, vocabulary, c.flag("tie_word_embeddings", True)),
        }

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        heads = self.config.integer("n_head")
        return self.config.integer("n_layer"), heads, self.config.integer("n_embd") // heads

    @property
    def max_length(self) -> int:
        return self.config.integer("n_positions", 1024)

    def embed(self, tokens: Any, span: Span) -> Any:
        return self.dropping(self.tokens(tokens) + self.positions(span.positions))


register("gpt2", GPT2, RULES, prefix="transformer.")
