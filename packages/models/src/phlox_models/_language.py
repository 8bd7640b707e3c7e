"""The base of language models: blocks between an embedding and a head, with a cache of keys and values."""

from __future__ import annotations

from typing import Any, ClassVar

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox.errors import ArgumentError
from phlox.extend import lenient_promotion

from ._attention import Span, span
from ._config import Config

#: the heads that language models may have, by the end of the class name in config.json
HEADS = ("ForCausalLM", "Model", "ForSequenceClassification", "ForTokenClassification")


class CachedModel(nn.Layer):
    """A model that generates tokens with a cache of keys and values: it has the methods `prefill` and `decode`.

    Args:
      config: the configuration.
    """

    config: Config

    @property
    def cache_shape(self) -> tuple[int, int, int]:
        """The number of blocks, the heads of keys and values of each, and the size of a head."""
        raise NotImplementedError

    @property
    def max_length(self) -> int | None:
        """The largest number of tokens, or None if there is no limit."""
        raise NotImplementedError

    @property
    def start_token(self) -> int | None:
        """The first token of the decoder, if it is apart from the prompt, which an encoder reads; else None."""
        return None

    def prefill(self, tokens: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the tokens that follow prompts, and the cache with the prompts."""
        raise NotImplementedError

    def decode(self, tokens: Any, positions: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the tokens that follow one more token of each text, and the cache with these."""
        raise NotImplementedError


class LanguageModel(CachedModel):
    """A decoder: tokens to the logits of next tokens, or to classes, or to hidden states, as its configuration says.

    Subclasses have parts, among them `blocks`, and the methods `embed`, `normalize` and `logits`.

    Args:
      config: the configuration.
    """

    #: the name of the linear map of classifiers of tokens
    token_head: ClassVar[str] = "score"

    @property
    def max_length(self) -> int | None:
        return self.config.integer("max_position_embeddings", 2048)

    @property
    def head(self) -> str:
        """The kind of the outputs: one of `HEADS`."""
        return self.config.head(*HEADS)

    def head_parts(self, features: int, vocabulary: int, tied: bool, bias: bool = False) -> dict[str, nn.Layer]:
        """The part `head` or `score`, if the configuration has one."""
        if self.head == "ForCausalLM":
            return {} if tied else {"unembed": nn.Linear(features, vocabulary, bias)}
        if self.head == "Model":
            return {}
        is_sequence = self.head == "ForSequenceClassification"
        name = "score" if is_sequence else self.token_head
        return {name: nn.Linear(features, self.config.labels, not is_sequence)}

    def embed(self, tokens: Any, span: Span) -> Any:
        """The inputs of the first block, (batch, length, features)."""
        raise NotImplementedError

    @lenient_promotion()
    def hidden(self, tokens: Any, mask: Any = None, *, positions: Any = None, cache: Any = None) -> Any:
        """The last hidden states (batch, length, features), normalized; with a cache, the pair of them and the cache.

        Arguments as for the call.
        """
        here, cache = span(tokens, mask, positions, cache)
        x = self.embed(tokens, here)
        pairs = []
        for n, block in enumerate(self.blocks):
            x, pair = block(x, here, None if cache is None else (cache["keys"][n], cache["values"][n]))
            pairs.append(pair)
        x = self.norm(x)
        if cache is None:
            return x
        return x, {**cache, "keys": [k for k, _ in pairs], "values": [v for _, v in pairs]}

    def logits(self, x: Any) -> Any:
        """Logits of tokens (..., vocabulary) for hidden states (..., features)."""
        return self.unembed(x) if hasattr(self, "unembed") else self.tokens.attend(x)

    def __call__(self, tokens: Any, mask: Any = None, *, positions: Any = None, cache: Any = None) -> Any:
        """Logits of the next tokens (batch, length, vocabulary), or what the head of the configuration gives.

        Args:
          tokens: integers (batch, length).
          mask: bools (batch, length), false for padding; or (batch, length, length), false where a token does not
            attend to another, as in rows of several texts (`phlox_data.pack`).
          positions: integers (batch or 1, length), by default counted from the first token (or cached token) on.
          cache: keys and values of earlier tokens, from `phlox_models.init_cache` and earlier calls. If it is too short
            for these tokens too, the outputs are nan.

        Returns the outputs; with a cache, the pair of them and the new cache.
        """
        if cache is not None:
            x, cache = self.hidden(tokens, mask, positions=positions, cache=cache)
            return self.logits(x), cache
        x = self.hidden(tokens, mask, positions=positions)
        if self.head == "ForCausalLM":
            return self.logits(x)
        if self.head == "Model":
            return x
        if self.head == "ForTokenClassification":
            return getattr(self, self.token_head)(x)
        return self._of_last(self.score(x), tokens, mask)

    @lenient_promotion()
    def prefill(self, tokens: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the tokens that follow prompts, and the cache with the prompts.

        Args:
          tokens: integers (batch, length), with padding at the left.
          mask: bools (batch, length), false for padding.
          cache: empty, from `phlox_models.init_cache`.

        Returns logits (batch, vocabulary) and the cache.
        """
        mask = jnp.asarray(mask, bool)
        positions = jnp.maximum(jnp.cumsum(mask, axis=1) - 1, 0).astype(jnp.int32)
        x, cache = self.hidden(tokens, mask, positions=positions, cache=cache)
        return self.logits(x[:, -1:])[:, 0], cache

    @lenient_promotion()
    def decode(self, tokens: Any, positions: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the tokens that follow one more token of each text, and the cache with these.

        Args:
          tokens: integers (batch,).
          positions: integers (batch,), of the tokens in their texts.
          cache: from `prefill` or earlier calls.

        Returns logits (batch, vocabulary) and the cache.
        """
        x, cache = self.hidden(tokens[:, None], positions=positions[:, None], cache=cache)
        return self.logits(x)[:, 0], cache

    def _of_last(self, scores: Any, tokens: Any, mask: Any) -> Any:
        """The scores of the last token of each text that is no padding, (batch, labels)."""
        padding = self.config.get("pad_token_id")
        if type(padding) is int:  # transformers does not ask the mask
            counts = jnp.asarray(tokens) != padding
        elif mask is not None:
            counts = jnp.asarray(mask, bool)
        else:
            return scores[:, -1]
        last = jnp.max(jnp.where(counts, jnp.arange(tokens.shape[1]), 0), axis=1)
        return jnp.take_along_axis(scores, last[:, None, None], axis=1)[:, 0]


def init_cache(model: Any, batch: int, length: int, dtype: Any = jnp.float32) -> dict[str, Any]:
    """An empty cache of keys and values, for calls of a language model with ``cache=``.

    Args:
      model: a language model.
      batch: the number of texts.
      length: the largest number of tokens of a text.
      dtype: of keys and values, as that of the parameters.

    Returns:
      A dict: lists `keys` and `values` of arrays (batch, length, heads, size), one for each block; `mask`, bool (batch,
      length), of tokens that count; `index`, the number of cached tokens, int32.

    >>> import phlox
    >>> import phlox_models
    >>> model = phlox_models.build(
    ...     {"model_type": "gpt2", "vocab_size": 100, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2}
    ... )
    >>> params = model.init(phlox.random.key(0))
    >>> cache = phlox_models.init_cache(model, batch=1, length=8)
    >>> logits, cache = model.apply(params, phlox.numpy.array([[1, 2, 3]]), cache=cache)
    >>> logits.shape, int(cache["index"])
    ((1, 3, 100), 3)
    """
    if not hasattr(model, "cache_shape"):
        raise ArgumentError(
            f"{type(model).__name__} has no cache of keys and values",
            instead="a language model, such as GPT-2 or Llama",
        )
    blocks, heads, size = model.cache_shape

    def empty() -> list[Any]:
        return [jnp.zeros((batch, length, heads, size), dtype) for _ in range(blocks)]

    mask, index = jnp.zeros((batch, length), bool), jnp.zeros((), jnp.int32)
    return {"keys": empty(), "values": empty(), "mask": mask, "index": index}


def cache_dtype(params: Any) -> Any:
    """The dtype of keys and values: the widest of the floating-point parameters."""
    dtypes = {x.dtype for x in phlox.tree.leaves(params)}
    return jnp.result_type(*(dtype for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating)))
