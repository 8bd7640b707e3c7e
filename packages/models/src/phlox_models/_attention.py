"""Attention of language models: rotary positions, grouped heads, sliding windows, and a cache of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import phlox
import phlox.numpy as jnp
import phlox_nn as nn
from phlox import lax
from phlox.errors import ShapeError

from ._rotary import Rotary


class Span(NamedTuple):
    """The tokens of a call among all tokens of their texts.

    Attributes:
      positions: of the tokens in their texts, int32 (batch or 1, length).
      mask: which of all tokens count, bool (batch, total), or which of them each token may attend to, (batch, length,
        total); None: all of them.
      start: the number of cached tokens before those of this call, int32; None without a cache.
      total: the number of tokens that may be attended to: the length of the cache, if there is one.
    """

    positions: Any
    mask: Any
    start: Any
    total: int

    def visible(self, window: int | None = None, causal: bool = True) -> Any:
        """Whether each token attends to each of all tokens, bool (batch or 1, 1, length, total)."""
        length = self.positions.shape[-1]
        query = jnp.arange(length)[:, None] + (0 if self.start is None else self.start)
        key = jnp.arange(self.total)
        seen = key <= query if causal else jnp.ones((length, self.total), bool)
        if window is not None:
            seen &= key > query - window
        seen = seen[None, None]
        if self.mask is None:
            return seen
        return seen & (self.mask[:, None] if self.mask.ndim == 3 else self.mask[:, None, None, :])


def span(tokens: Any, mask: Any, positions: Any, cache: Any) -> tuple[Span, Any]:
    """The span of these tokens, and the cache with their mask.

    Args:
      tokens: (batch, length).
      mask: bool (batch, length), false for padding, or without a cache (batch, length, length); None: all count.
      positions: (batch or 1, length), by default counted from the first token on.
      cache: from `init_cache`, or None.
    """
    if jnp.ndim(tokens) != 2:
        raise ShapeError(
            f"tokens of a model have the shape (batch, length), got {jnp.shape(tokens)}",
            instead="tokens[None], for one text",
            shapes=[jnp.shape(tokens)],
        )
    batch, length = jnp.shape(tokens)
    start: Any = None if cache is None else cache["index"]
    if positions is None:
        positions = jnp.arange(length, dtype=jnp.int32)[None] + (0 if start is None else start)
    mask = None if mask is None else jnp.asarray(mask, bool)
    if cache is None:
        return Span(positions, mask, None, length), None
    own = jnp.ones((batch, length), bool) if mask is None else mask
    full = lax.dynamic_update_slice(cache["mask"], own, (0, start))
    return Span(positions, full, start, full.shape[1]), {**cache, "mask": full, "index": start + length}


class Attention(nn.Layer):
    """Self-attention of a language model: ``softmax(q @ k.T * scale) @ v`` for each head.

    Args:
      features: the length of the last axis of inputs and outputs.
      num_heads: the number of heads.
      kv_heads: heads of keys and values, a divisor of `num_heads`.
      head_size: features of one head, by default ``features / num_heads``.
      use_bias: whether the linear maps of queries, keys and values add something.
      out_bias: whether that of the outputs does.
      rotary: the rotation of queries and keys, or None.
      scale: the factor of the products, by default ``1 / sqrt(head_size)``.
      window: the number of tokens, itself included, that each one attends to; None: all.
      norm: the epsilon of RMS norms of queries and keys, as in Qwen3; None: no norms.
      causal: whether tokens attend only to those before.
      dropout: the fraction of the weights that is dropped in training.
    """

    features: int
    num_heads: int
    kv_heads: int | None = None
    head_size: int | None = None
    use_bias: bool = True
    out_bias: bool = True
    rotary: Rotary | None = None
    scale: float | None = None
    window: int | None = None
    norm: float | None = None
    causal: bool = True
    dropout: float = 0.0

    @property
    def _size(self) -> int:
        return self.features // self.num_heads if self.head_size is None else self.head_size

    def parts(self) -> Mapping[str, Any]:
        wide = self.num_heads * self._size
        narrow = (self.kv_heads or self.num_heads) * self._size
        parts = {
            "query": nn.Linear(self.features, wide, self.use_bias),
            "key": nn.Linear(self.features, narrow, self.use_bias),
            "value": nn.Linear(self.features, narrow, self.use_bias),
            "out": nn.Linear(wide, self.features, self.out_bias),
            "dropping": nn.Dropout(self.dropout),
        }
        if self.norm is None:
            return parts
        norm = nn.RMSNorm(self._size, epsilon=self.norm)
        return {**parts, "query_norm": norm, "key_norm": norm}

    def __call__(self, x: Any, span: Span, cache: Any = None, bias: Any = None) -> tuple[Any, Any]:
        """Outputs like `x` (batch, length, features), and the cache with the keys and values of these tokens.

        Args:
          x: the inputs.
          span: which tokens they are.
          cache: keys and values of earlier tokens, each (batch, total, kv_heads, head_size); or None. The outputs of
            tokens for which it is too short are nan.
          bias: added to the products, (1, heads, length, total); or None.
        """
        q, k, v = (split_heads(f(x), self._size) for f in (self.query, self.key, self.value))
        if self.norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        if self.rotary is not None:
            q, k = self.rotary(q, span.positions), self.rotary(k, span.positions)
        if cache is not None:
            place = (0, span.start, 0, 0)
            k, v = (
                lax.dynamic_update_slice(old, jnp.asarray(new, old.dtype), place)
                for old, new in zip(cache, (k, v), strict=True)
            )
        y = attend(q, k, v, span.visible(self.window, self.causal), bias, self.scale, self.dropping)
        if cache is None:
            return self.out(join_heads(y)), None
        # Behind the end of the cache, keys and values would take the place of earlier ones.
        y = jnp.where(span.start + x.shape[1] <= span.total, y, jnp.nan)
        return self.out(join_heads(y)), (k, v)


class CrossAttention(Attention):
    """Attention of the tokens of a decoder to the outputs of an encoder, with the configuration of `Attention`."""

    def keys_and_values(self, context: Any) -> tuple[Any, Any]:
        """Keys and values (batch, length, kv_heads, head_size) of an encoder's outputs (batch, length, features)."""
        k, v = (split_heads(f(context), self._size) for f in (self.key, self.value))
        return k, v

    def __call__(self, x: Any, k: Any, v: Any, mask: Any = None) -> Any:  # type: ignore[override]
        """Outputs like `x`.

        Args:
          x: the inputs (batch, length, features).
          k, v: from `keys_and_values`.
          mask: bool (batch, length of the encoder), false for padding; or None.
        """
        q = split_heads(self.query(x), self._size)
        seen = jnp.ones((1, 1, 1, k.shape[1]), bool) if mask is None else jnp.asarray(mask, bool)[:, None, None, :]
        y = attend(q, k, v, seen, None, self.scale, self.dropping)
        return self.out(join_heads(y))


def split_heads(x: Any, size: int) -> Any:
    """(..., heads * size) as (..., heads, size). The number of heads is not -1, which an empty batch does not allow."""
    return x.reshape((*x.shape[:-1], x.shape[-1] // size, size))


def join_heads(x: Any) -> Any:
    """(..., heads, size) as (..., heads * size)."""
    return lax.collapse(x, x.ndim - 2)


def attend(q: Any, k: Any, v: Any, mask: Any, bias: Any, scale: float | None, dropping: Any) -> Any:
    """Attention of queries (batch, t, heads, size) to keys and values (batch, s, kv_heads, size).

    `mask` is bool (batch or 1, 1, t, s), `bias` (1, heads, t, s) or None; `dropping` is a bound `phlox_nn.Dropout`.
    """
    k, v = jnp.asarray(k, q.dtype), jnp.asarray(v, q.dtype)
    if not (dropping.train and dropping.rate):
        bias = None if bias is None else jnp.asarray(bias, q.dtype)
        return phlox.nn.dot_product_attention(q, k, v, bias, mask, scale=scale)
    groups = q.shape[-2] // k.shape[-2]
    k, v = jnp.repeat(k, groups, axis=-2), jnp.repeat(v, groups, axis=-2)
    products = jnp.einsum("btnh,bsnh->bnts", q, k, preferred_element_type=jnp.float32)
    products *= q.shape[-1] ** -0.5 if scale is None else scale
    products = products if bias is None else products + bias
    weights = nn.softmax(jnp.where(mask, products, jnp.finfo(products.dtype).min))
    return jnp.einsum("bnts,bsnh->btnh", dropping(jnp.asarray(weights, q.dtype)), v)
