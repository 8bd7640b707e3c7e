"""The layers of Perceiver IO: attention with queries and values of other sizes, learned queries, Fourier features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import phlox.numpy as jnp
import phlox_nn as nn

from ._attention import join_heads, split_heads


class PerceiverLayer(nn.Layer):
    """Attention of `x` (n, length, features) to itself or to a context, and a perceptron.

    Args:
      features: the length of the last axis.
      num_heads: the number of heads.
      qk_features, v_features: the lengths of all heads' queries and keys, and of their values.
      hidden_features: the length between the two layers of the perceptron.
      context_features: the length of the context's last axis; None for attention within `x`.
      residual: whether the result of the attention is added to `x`.
      activation: the function of the perceptron.
    """

    features: int
    num_heads: int
    qk_features: int
    v_features: int
    hidden_features: int
    context_features: int | None = None
    residual: bool = True
    activation: Callable[[Any], Any] = nn.gelu

    def parts(self) -> Mapping[str, Any]:
        n, context = self.features, self.context_features or self.features
        return {
            "norm1": nn.LayerNorm(n),
            "query": nn.Linear(n, self.qk_features),
            "key": nn.Linear(context, self.qk_features),
            "value": nn.Linear(context, self.v_features),
            "out": nn.Linear(self.v_features, n),
            "norm2": nn.LayerNorm(n),
            "mlp": nn.MLP((n, self.hidden_features, n), self.activation),
        } | ({"context_norm": nn.LayerNorm(context)} if self.context_features else {})

    def __call__(self, x: Any, context: Any = None, mask: Any = None) -> Any:
        y = self.norm1(x)
        source = y if context is None else self.context_norm(context)
        parts = (self.query(y), self.key(source), self.value(source))
        q, k, v = (split_heads(a, a.shape[-1] // self.num_heads) for a in parts)
        scores = jnp.einsum("bqhn,bkhn->bhqk", q, k) / np.sqrt(q.shape[-1])
        if mask is not None:
            scores = jnp.where(mask[:, None, None, :], scores, jnp.finfo(scores.dtype).min)
        y = jnp.einsum("bhqk,bkhn->bqhn", nn.softmax(scores), v)
        y = self.out(join_heads(y))
        x = x + y if self.residual else y
        return x + self.mlp(self.norm2(x))


class QueryDecoder(nn.Layer):
    """Learned queries attend to latents (n, latents, features). Results are (n, num_queries, outputs).

    Args:
      attention: of the queries to the latents.
      num_queries: the number of queries.
      outputs: the length of the results; 0 for that of the queries.
    """

    attention: PerceiverLayer
    num_queries: int
    outputs: int = 0

    def parameters(self) -> Mapping[str, Any]:
        return {"queries": (nn.initializers.normal(0.02), (self.num_queries, self.attention.features))}

    def parts(self) -> Mapping[str, Any]:
        return {"linear": nn.Linear(self.attention.features, self.outputs)} if self.outputs else {}

    def __call__(self, latents: Any) -> Any:
        queries = jnp.broadcast_to(self.queries, (len(latents), *self.queries.shape))
        x = self.attention(queries, latents)
        return self.linear(x) if self.outputs else x


def fourier_features(shape: tuple[int, ...], resolution: tuple[int, ...], bands: int = 64) -> Any:
    """Positions of an array's elements, and sines and cosines of them.

    Args:
      shape: of the array.
      resolution: the largest frequency along each axis is half of this.
      bands: the number of frequencies of each axis, from 1 on.

    Returns:
      Float32 (elements, axes + 2 axes bands): positions from -1 to 1, sines of each axis, cosines of each axis.

    >>> fourier_features((4, 4), (8, 8), bands=3).shape
    (16, 14)
    """
    grid = np.meshgrid(*(np.linspace(-1, 1, n, dtype=np.float32) for n in shape), indexing="ij")
    positions = np.stack(grid, axis=-1).reshape((-1, len(shape)))
    frequencies = np.stack([np.linspace(1, n / 2, bands, dtype=np.float32) for n in resolution])
    angles = np.float32(np.pi) * (positions[:, :, None] * frequencies).reshape((len(positions), -1))
    return jnp.asarray(np.concatenate([positions, np.sin(angles), np.cos(angles)], axis=1))
