"""T5: an encoder and a decoder with relative positions. Source: Raffel et al., 2019."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox.extend import lenient_promotion

from ._architecture import register
from ._attention import Attention, CrossAttention, Span, span
from ._config import Config
from ._language import CachedModel

HEADS = ("ForConditionalGeneration", "Model", "EncoderModel")


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
        return {
            "bias": nn.Embedding(c.integer("relative_attention_num_buckets", 32), c.integer("num_heads")),
            "blocks": [Block(c, self.is_decoder) for _ in range(count)],
            "norm": _norm(c),
            "dropping": nn.Dropout(c.number("dropout_rate", 0.1)),
        }

    def _biases(self, span: Span) -> Any:
        """The biases of attention, (1, heads, length, total)."""
        length = span.positions.shape[-1]
        query = jnp.arange(length)[:, None] + (0 if span.start is None else span.start)
        return self.bias(self._buckets(jnp.arange(span.total) - query)).transpose((2, 0, 1))[None]

    def _buckets(self, distance: Any) -> Any:
        """The bucket of each distance: short ones have their own, longer ones share one, of logarithmic widths."""
        count = self.config.integer("relative_attention_num_buckets", 32)
        longest = self.config.integer("relative_attention_max_distance", 128)
        first: Any = 0
        if self.is_decoder:
            distance = jnp.maximum(-distance, 0)
        else:
            count //= 2
            first, distance = jnp.where(distance > 0, count, 0), jnp.abs(distance)
        exact = count // 2
        ratio = jnp.log(jnp.maximum(distance, 1).astype(jnp.float32) / exact) / math.log(longest / exact)
        far = jnp.minimum(exact + (ratio * (count - exact)).astype(jnp.int32), count - 1)
        return first + jnp.where(distance < exact, distance, far)

    def __call__(self, x: Any, span: Span, pairs: Any, encoded: Any) -> tuple[Any, Any]:
        x, bias, new = self.dropping(x), self._biases(span), []
        for block, cached, context in zip(self.blocks, pairs, encoded, strict=True):
            x, pair = block(x, span, bias, cached, context)
            new.append(pair)
        return self.dropping(self.norm(x)), new


class T5(CachedModel):
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
    def start_token(self) -> int:
        """The first token of the decoder, which the texts that it generates begin with."""
        return int(self.config.number("decoder_start_token_id", 0))

    @property
    def max_length(self) -> None:
        """None: relative positions have no limit."""
        return None

    @lenient_promotion()
    def encode(self, tokens: Any, mask: Any = None) -> Any:
        """The last hidden states of the encoder, (batch, length, features)."""
        here, _ = span(tokens, mask, None, None)
        count = self.config.integer("num_layers")
        return self.encoder(self.tokens(tokens), here, [None] * count, [None] * count)[0]

    @lenient_promotion()
    def prefill(self, tokens: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the first tokens (batch, vocabulary) of the decoder, and the cache, with the encoder's outputs.

        Args:
          tokens, mask: of the encoder, (batch, length); the mask is false for padding.
          cache: empty, from `phlox_models.init_cache`.
        """
        x = self.encode(tokens, mask)
        encoded = [block.cross.keys_and_values(x) for block in self.decoder.blocks]
        cache = {**cache, "encoded": encoded, "encoder_mask": jnp.asarray(mask, bool)}
        return self.decode(jnp.full(len(tokens), self.start_token, jnp.int32), None, cache)

    @lenient_promotion()
    def decode(self, tokens: Any, positions: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the tokens that follow one more token of each text (batch,), and the cache with these."""
        here, cache = span(tokens[:, None], None, None, cache)
        encoded = [(*pair, cache["encoder_mask"]) for pair in cache["encoded"]]
        pairs = list(zip(cache["keys"], cache["values"], strict=True))
        x, pairs = self.decoder(self.tokens(tokens[:, None]), here, pairs, encoded)
        cache = {**cache, "keys": [k for k, _ in pairs], "values": [v for _, v in pairs]}
        return self.logits(x)[:, 0], cache

    def logits(self, x: Any) -> Any:
        """Logits of tokens (..., vocabulary) for hidden states (..., features)."""
        # mT5 and T5 1.1 were trained without the factor. Newer configurations of T5 state it.
        if self.config.flag("scale_decoder_outputs", self._is_tied and self.config.model_type == "t5"):
            x = x * jnp.asarray(self.config.integer("d_model") ** -0.5, x.dtype)
        return self.unembed(x) if hasattr(self, "unembed") else self.tokens.attend(x)

    def __call__(self, tokens: Any, decoder_tokens: Any = None, mask: Any = None, decoder_mask: Any = None) -> Any:
        """Logits (batch, decoder length, vocabulary), or the last hidden states without a head.

        Args:
          tokens: integers (batch, length), of the encoder.
          decoder_tokens: integers (batch, decoder length), beginning with ``decoder_start_token_id``.
          mask, decoder_mask: bools like the tokens, false for padding.
        """
        x = self.encode(tokens, mask)
        head = self.config.head(*HEADS)
        if head == "EncoderModel":
            return x
        encoded = [(*block.cross.keys_and_values(x), mask) for block in self.decoder.blocks]
        here, _ = span(decoder_tokens, decoder_mask, None, None)
        x, _ = self.decoder(self.tokens(decoder_tokens), here, [None] * len(encoded), encoded)
        return x if head == "Model" else self.logits(x)


def _block(side: str, last: int) -> list[tuple[str, str]]:
    """Rules for the blocks of the encoder or decoder, whose MLP is the part `last`."""
    theirs, ours = f"{side}.block.*.layer", f"{side}.blocks.*"
    attention = [("q", "query"), ("k", "key"), ("v", "value"), ("o", "out")]
    feed = [("wi.", "inner."), ("wi_0.", "gate."), ("wi_1.", "value."), ("wo.", "out.")]
    return [
        (f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", f"{side}.bias.weight"),
        *((f"{theirs}.0.SelfAttention.{a}.weight", f"{ours}.attention.{b}.weight") for a, b in attention),
        (f"{theirs}.0.layer_norm.weight", f"{ours}.norm1.weight"),
        *((f"{theirs}.{last}.DenseReluDense.{a}weight", f"{ours}.mlp.{b}weight") for a, b in feed),
        (f"{theirs}.{last}.layer_norm.weight", f"{ours}.norm2.weight"),
        (f"{side}.final_layer_norm.weight", f"{side}.norm.weight"),
    ]


_CROSS = [("q", "query"), ("k", "key"), ("v", "value"), ("o", "out")]
WEIGHTS = [
    ("shared.*", "tokens.*"),
    ("encoder.embed_tokens.*", None),  # the same table
    ("decoder.embed_tokens.*", None),
    ("decoder.block.*.layer.1.EncDecAttention.relative_attention_bias.weight", None),  # in older files, unused
    *_block("encoder", 1),
    *((f"decoder.block.*.layer.1.EncDecAttention.{a}.weight", f"decoder.blocks.*.cross.{b}.weight") for a, b in _CROSS),
    ("decoder.block.*.layer.1.layer_norm.weight", "decoder.blocks.*.norm_cross.weight"),
    *_block("decoder", 2),
    ("lm_head.*", "unembed.*"),
]
register("t5", T5, WEIGHTS)
register("mt5", T5, WEIGHTS)
