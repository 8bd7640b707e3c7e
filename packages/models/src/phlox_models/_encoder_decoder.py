"""The base of language models with an encoder of texts, to whose outputs a decoder with a cache attends."""

from __future__ import annotations

from typing import Any

import phlox.numpy as jnp
from phlox.extend import lenient_promotion

from ._attention import span
from ._language import CachedModel

#: the heads that they may have, by the end of the class name in config.json
HEADS = ("ForConditionalGeneration", "Model", "EncoderModel")


class EncoderDecoder(CachedModel):
    """A model of pairs of texts.

    Subclasses have the parts `tokens`, an embedding, `encoder` and, unless their head is "EncoderModel", `decoder`.
    Both are called with vectors, their span, and for each block the cached keys and values and the encoder's. Blocks of
    the decoder have a `CrossAttention`, `cross`. Subclasses have a method `logits`.

    Args:
      config: the configuration.
    """

    @property
    def start_token(self) -> int:
        """The first token of the decoder, which the texts that it generates begin with."""
        return int(self.config.number("decoder_start_token_id", 0))

    @lenient_promotion()
    def encode(self, tokens: Any, mask: Any = None) -> Any:
        """The last hidden states of the encoder, (batch, length, features)."""
        here, _ = span(tokens, mask, None, None)
        nothing = [None] * len(self.encoder.blocks)
        return self.encoder(self.tokens(tokens), here, nothing, nothing)[0]

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
        raise NotImplementedError

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
