"""Whisper: a transformer writes down what is said in 30 seconds of sound. Source: Radford et al., 2022."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax

from ._architecture import register
from ._config import Config
from ._encoder import Attention, Block
from ._names.whisper import RULES
from ._sinusoids import sinusoids
from ._sound import check_log_mel, log_mel as log_mel

#: the maps of Whisper's attention that have a bias; a bias of the keys would not change the result
_BIASED = ("query", "value", "out")


class DecoderBlock(Block):
    """`Block` with attention to the encoder's result between the two parts.

    Args: as for `Block`; `attention` is causal.
    """

    def parts(self) -> Mapping[str, Any]:
        cross = Attention(self.features, self.attention.num_heads, dropout=self.attention.dropout, biased=_BIASED)
        return {**super().parts(), "cross_norm": nn.LayerNorm(self.features, self.epsilon), "cross_attention": cross}

    def __call__(self, x: Any, mask: Any = None, context: Any = None) -> Any:
        x = x + self.dropping(self.attention(self.norm1(x), mask=mask))
        x = x + self.dropping(self.cross_attention(self.cross_norm(x), context))
        return x + self.dropping(self.mlp(self.norm2(x)))


class Encoder(nn.Layer):
    """Maps log-mel features (n, frames, mels) to hidden states (n, frames / 2, features).

    Args:
      config: of the model type "whisper".
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, n = self.config, self.config.integer("d_model")
        return {
            "conv1": nn.Conv(c.integer("num_mel_bins", 80), n, (3,), padding=1),
            "conv2": nn.Conv(n, n, (3,), strides=2, padding=1),
            "positions": nn.Embedding(c.integer("max_source_positions", 1500), n, sinusoids),
            "dropping": nn.Dropout(c.number("dropout", 0.0)),
            "blocks": _blocks(c, Block, "encoder", causal=False),
            "norm": nn.LayerNorm(n),
        }

    def __call__(self, features: Any) -> Any:
        length = self.positions.num_embeddings
        check_log_mel(self, features, 2 * length, self.conv1.in_features)
        x = nn.gelu(self.conv1(features), approximate=False)
        x = nn.gelu(self.conv2(x), approximate=False)
        x = self.dropping(x + lax.stop_gradient(self.positions(jnp.arange(length))))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Decoder(nn.Layer):
    """Maps tokens (n, length) and the encoder's result to hidden states (n, length, features).

    Args:
      config: of the model type "whisper".
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        c, features, normal = self.config, self.config.integer("d_model"), nn.initializers.normal(0.02)
        return {
            "tokens": nn.Embedding(c.integer("vocab_size"), features, normal),
            "positions": nn.Embedding(c.integer("max_target_positions", 448), features, normal),
            "dropping": nn.Dropout(c.number("dropout", 0.0)),
            "blocks": _blocks(c, DecoderBlock, "decoder", causal=True),
            "norm": nn.LayerNorm(features),
        }

    def __call__(self, tokens: Any, context: Any, mask: Any = None) -> Any:
        mask = None if mask is None else jnp.asarray(mask, bool)[:, None, :]
        x = self.dropping(self.tokens(tokens) + self.positions(jnp.arange(tokens.shape[-1])))
        for block in self.blocks:
            x = block(x, mask, context)
        return self.norm(x)


def _blocks(c: Config, kind: type[Block], side: str, causal: bool) -> list[Block]:
    features, dropout = c.integer("d_model"), c.number("attention_dropout", 0.0)
    heads, hidden = c.integer(f"{side}_attention_heads"), c.integer(f"{side}_ffn_dim")
    attention = Attention(features, heads, causal=causal, dropout=dropout, biased=_BIASED)
    options = (c.activation("activation_function", "gelu"), 1e-5, c.number("dropout", 0.0))
    return [kind(features, attention, hidden, *options)] * c.integer(f"{side}_layers")


class Whisper(nn.Layer):
    """Maps log-mel features (n, frames, mels) and tokens (n, length) to logits (n, length, vocabulary).

    The method `encode` maps the features only, `decode` takes the tokens and the result of `encode`.

    Args:
      config: of the model type "whisper".

    >>> import phlox
    >>> import phlox_models
    >>> config = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "num_mel_bins": 8, "vocab_size": 50}
    >>> config |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
    >>> config |= {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_source_positions": 10}
    >>> model = phlox_models.build({"model_type": "whisper", **config})
    >>> features, tokens = phlox.numpy.ones((3, 20, 8)), phlox.numpy.ones((3, 5), int)
    >>> model.apply(model.init(phlox.random.key(0)), features, tokens).shape
    (3, 5, 50)
    """

    config: Config

    def parts(self) -> Mapping[str, Any]:
        return {"encoder": Encoder(self.config), "decoder": Decoder(self.config)}

    def __call__(self, features: Any, tokens: Any, mask: Any = None) -> Any:
        """Logits of the next tokens. `mask` has bools (n, length), false for tokens that are padding."""
        return self.decode(tokens, self.encoder(features), mask)

    def encode(self, features: Any) -> Any:
        """The encoder's result (n, frames / 2, features)."""
        return self.encoder(features)

    def decode(self, tokens: Any, context: Any, mask: Any = None) -> Any:
        """Logits of the next tokens (n, length, vocabulary), with the result of `encode` as `context`."""
        states = self.decoder(tokens, context, mask)
        is_decoder = self.config.head("ForConditionalGeneration", "Model") == "Model"
        return states if is_decoder else self.decoder.tokens.attend(states)


register("whisper", Whisper, RULES, prefix="model.")
