"""GPT-J: rotary positions, and attention and MLP side by side. Source: Wang and Komatsuzaki, 2021."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox_nn as nn

from ._architecture import register
from ._attention import Attention, Span
from ._config import Config
from ._language import LanguageModel
from ._names.gptj import RULES
from ._rotary import Rotary, frequencies


class Block(nn.Layer):
    """A block of GPT-J: attention and an MLP of the same normalized inputs, both added to the inputs."""

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, heads = c.integer("n_embd"), c.integer("n_head")
        turned = frequencies(c.integer("rotary_dim", 64 if c.get("rotary_dim", 64) else size // heads), 10000.0)
        attention = Attention(
            size,
            heads,
            use_bias=False,
            out_bias=False,
            rotary=Rotary(tuple(map(float, turned)), interleaved=True),
            dropout=c.number("attn_pdrop", 0.0),
        )
        return {
            "norm": nn.LayerNorm(size, epsilon=c.number("layer_norm_epsilon", 1e-5)),
            "attention": attention,
            "mlp": nn.MLP(
                (size, c.integer("n_inner", 4 * size), size), c.activation("activation_function", "gelu_new")
            ),
            "dropping": nn.Dropout(c.number("resid_pdrop", 0.0)),
        }

    def __call__(self, x: Any, span: Span, cache: Any) -> tuple[Any, Any]:
        y = self.norm(x)
        attended, cache = self.attention(y, span, cache)
        return x + self.dropping(attended) + self.dropping(self.mlp(y)), cache


class GPTJ(LanguageModel):
    """GPT-J. Its head has weights of its own, and a bias."""

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, vocabulary = c.integer("n_embd"), c.integer("vocab_size")
        return {
            "tokens": nn.Embedding(vocabulary, size, nn.initializers.normal(0.02)),
            "blocks": [Block(c) for _ in range(c.integer("n_layer"))],
            "norm": nn.LayerNorm(size, epsilon=c.number("layer_norm_epsilon", 1e-5)),
            "dropping": nn.Dropout(c.number("embd_pdrop", 0.0)),
            **self.head_parts(size, vocabulary, tied=False, bias=True),
        }

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        heads = self.config.integer("n_head")
        return self.config.integer("n_layer"), heads, self.config.integer("n_embd") // heads

    @property
    def max_length(self) -> int:
        return self.config.integer("n_positions", 2048)

    def embed(self, tokens: Any, span: Span) -> Any:
        return self.dropping(self.tokens(tokens))


register("gptj", GPTJ, RULES, prefix="transformer.")
