"""T5: an encoder and a decoder with relative positions. Source: Raffel et al., 2019."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn

from ._architecture import register
from ._attention import Attention, CrossAttention, Span
from ._config import Config
from ._encoder_decoder import HEADS, EncoderDecoder
from ._names.t5 import RULES


def _norm(c: Config) -> nn.RMSNorm:
    return nn.RMSNorm(c.integer("d_model"), c.number("layer_norm_epsilon", 1e-6), use_bias=False)


def _head_size(c: Config) -> int:
    return c.integer("d_kv", 64)


class FeedForward(nn.Layer):
    """Two linear maps with an activation between them, which may be gated: ``"relu"`` or ``"gated-gelu"``."""

    config: Config

    @property
    def _kind(self) -> str:
        default = "relu" if self.config.model_type == "t5" else "gated-gelu"
        return self.config.text("feed_forward_proj", default)

    def parts(self) -> Mapping[str, Any]:
        size, hidden = self.config.integer("d_model"), self.config.integer("d_ff")
        names = ("gate", "value") if self._kind.startswith("gated-") else ("inner",)
        inner = {name: nn.Linear(size, hidden, use_bias=False) for name in names}
        dropping = nn.Dropout(self.config.number("dropout_rate", 0.1))
        return {**inner, "out": nn.Linear(hidden, size, use_bias=False), "dropping": dropping}

    def __call__(self, x: Any) -> Any:
        kind = self._kind.removeprefix("gated-")
        # This one name means the approximation by tanh in T5.
        name = "gelu_new" if self._kind == "gated-gelu" else kind
        activation = Config({**self.config, "feed_forward_proj": name}).activation("feed_forward_proj")
        y = activation(self.gate(x)) * self.value(x) if self._kind != kind else activation(self.inner(x))
        return self.out(self.dropping(y))


class Block(nn.Layer):
    """A block of the encoder or decoder: attention, attention to the encoder's outputs in a decoder, and an MLP."""

    config: Config
    is_decoder: bool

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        sizes = c.integer("d_model"), c.integer("num_heads"), None, _head_size(c)
        options: dict[str, Any] = {"use_bias": False, "out_bias": False, "scale": 1.0}
        options["dropout"] = c.number("dropout_rate", 0.1)
        own = {"norm1": _norm(c), "attention": Attention(*sizes, causal=self.is_decoder, **options)}
        if self.is_decoder:
            own |= {"norm_cross": _norm(c), "cross": CrossAttention(*sizes, causal=False, **options)}
        return {**own, "norm2": _norm(c), "mlp": FeedForward(c), "dropping": nn.Dropout(options["dropout"])}

    def __call__(self, x: Any, span: Span, bias: Any, cache: Any = None, encoded: Any = None) -> tuple[Any, Any]:
        y, cache = self.attention(self.norm1(x), span, cache, bias)
        x = x + self.dropping(y)
        if self.is_decoder:
            x = x + self.dropping(self.cross(self.norm_cross(x), *encoded))
        return x + self.dropping(self.mlp(self.norm2(x))), cache


class Stack(nn.Layer):
    """The encoder or the decoder: blocks, and the biases of attention by relative position that they share."""

    config: Config
    is_decoder: bool

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        count = c.integer("num_layers")
        if self.is_decoder:
            count = c.integer("num_decoder_layers", count)
        buckets = c.integer("relative_attention_num_buckets", 32), c.integer("relative_attention_max_distance", 128)
        return {
            "bias": nn.RelativePositionBias(c.integer("num_heads"), *buckets, bidirectional=not self.is_decoder),
            "blocks": [Block(c, self.is_decoder) for _ in range(count)],
            "norm": _norm(c),
            "dropping": nn.Dropout(c.number("dropout_rate", 0.1)),
        }

    def __call__(self, x: Any, span: Span, pairs: Any, encoded: Any) -> tuple[Any, Any]:
        bias = self.bias(span.positions.shape[-1], span.total, offset=0 if span.start is None else span.start)[None]
        x, new = self.dropping(x), []
        for block, cached, context in zip(self.blocks, pairs, encoded, strict=True):
            x, pair = block(x, span, bias, cached, context)
            new.append(pair)
        return self.dropping(self.norm(x)), new


class T5(EncoderDecoder):
    """T5, its successors Flan-T5 and T5 1.1, and mT5."""

    @property
    def _is_tied(self) -> bool:
        return self.config.flag("tie_word_embeddings", True)

    def parts(self) -> Mapping[str, Any]:
        c = self.config
        size, vocabulary, head = c.integer("d_model"), c.integer("vocab_size"), c.head(*HEADS)
        parts = {"tokens": nn.Embedding(vocabulary, size), "encoder": Stack(c, is_decoder=False)}
        if head != "EncoderModel":
            parts["decoder"] = Stack(c, is_decoder=True)
        if head == "ForConditionalGeneration" and not self._is_tied:
            parts["unembed"] = nn.Linear(size, vocabulary, use_bias=False)
        return parts

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        """The number of blocks of the decoder, the heads of each, and their size."""
        count = self.config.integer("num_decoder_layers", self.config.integer("num_layers"))
        return count, self.config.integer("num_heads"), _head_size(self.config)

    @property
    def max_length(self) -> None:
        """None: relative positions have no limit."""
        return None

    def logits(self, x: Any) -> Any:
        """Logits of tokens (..., vocabulary) for hidden states (..., features)."""
        # mT5 and T5 1.1 were trained without the factor. Newer configurations of T5 state it.
        if self.config.flag("scale_decoder_outputs", self._is_tied and self.config.model_type == "t5"):
            x = x * jnp.asarray(self.config.integer("d_model") ** -0.5, x.dtype)
        return self.unembed(x) if hasattr(self, "unembed") else self.tokens.attend(x)


register("t5", T5, RULES)
register("mt5", T5, RULES)
