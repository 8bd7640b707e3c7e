"""Biases of attention by the distance of positions: learnt ones (T5) and linear ones (ALiBi)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import phlox.numpy as jnp
from phlox.errors import ArgumentError
from phlox.nn import initializers

from . import _checks
from ._layer import Layer


def _distances(queries: int, keys: int | None, offset: Any) -> Any:
    """The position of each key minus that of each query, (queries, keys)."""
    positions = jnp.arange(queries)[:, None] + offset
    return jnp.arange(queries if keys is None else keys)[None, :] - positions


class RelativePositionBias(Layer):
    """A learnt number for each head and each bucket of distances, added to the scores of attention, as in T5.

    Short distances have a bucket each, longer ones share buckets that grow by a factor. Source: Raffel et al., 2020.

    Args:
      num_heads: the number of heads.
      num_buckets: how many numbers a head has.
      max_distance: all distances from this one on share a bucket.
      bidirectional: whether keys after the query have buckets of their own; else they share that of distance 0.
      weight_init: an initializer.

    Parameters: weight (num_buckets, num_heads).

    >>> import phlox
    >>> layer = RelativePositionBias(8)
    >>> params = layer.init(phlox.random.key(0))
    >>> layer.apply(params, 5).shape  # for ``attention(x, bias=…)``
    (8, 5, 5)
    """

    num_heads: int
    num_buckets: int = 32
    max_distance: int = 128
    bidirectional: bool = True
    weight_init: initializers.Initializer = initializers.normal(0.02)

    def __post_init__(self) -> None:
        _checks.size(self, num_heads=self.num_heads, num_buckets=self.num_buckets, max_distance=self.max_distance)
        exact = self.num_buckets // (4 if self.bidirectional else 2)
        if not 0 < exact < self.max_distance:
            raise ArgumentError(
                f"RelativePositionBias: num_buckets={self.num_buckets} and max_distance={self.max_distance} leave no "
                "buckets for short or for long distances",
                instead="for example num_buckets=32, max_distance=128",
            )

    def parameters(self) -> Mapping[str, Any]:
        return {"weight": (self.weight_init, (self.num_buckets, self.num_heads))}

    def __call__(self, queries: int, keys: int | None = None, *, offset: Any = 0) -> Any:
        """The bias (num_heads, queries, keys).

        Args:
          queries: the number of queries.
          keys: the number of keys, by default that of queries.
          offset: the position of the first query.
        """
        return jnp.moveaxis(self.weight[self._buckets(_distances(queries, keys, offset))], -1, 0)

    def _buckets(self, distances: Any) -> Any:
        count, start = self.num_buckets, 0
        if self.bidirectional:
            count //= 2
            start = jnp.where(distances > 0, count, 0)
            distances = jnp.abs(distances)
        else:
            distances = jnp.maximum(-distances, 0)
        exact = count // 2
        growth = (count - exact) / math.log(self.max_distance / exact)
        logarithm = jnp.log(jnp.maximum(distances, 1).astype(jnp.float32) / exact)
        far = exact + (logarithm * growth).astype(jnp.int32)
        return start + jnp.where(distances < exact, distances, jnp.minimum(far, count - 1))


class ALiBi(Layer):
    """A penalty of each head that grows linearly with the distance, added to the scores of attention.

    Nothing is learnt. The slopes are powers of 2 for a power of 2 of heads, with those of twice as many heads
    between them otherwise. Source: Press, Smith and Lewis, 2022.

    Args:
      num_heads: the number of heads.

    >>> ALiBi(2).apply({}, 3)[0]
    Array([[ 0.    , -0.0625, -0.125 ],
           [-0.0625,  0.    , -0.0625],
           [-0.125 , -0.0625,  0.    ]], dtype=float32)
    """

    num_heads: int

    def __post_init__(self) -> None:
        _checks.size(self, num_heads=self.num_heads)

    def __call__(self, queries: int, keys: int | None = None, *, offset: Any = 0) -> Any:
        """The bias (num_heads, queries, keys), with arguments as for `RelativePositionBias`."""
        power = 2 ** int(math.log2(self.num_heads))
        slopes = [2.0 ** (-8 * n / power) for n in range(1, power + 1)]
        slopes += [2.0 ** (-4 * n / power) for n in range(1, 2 * (self.num_heads - power), 2)]
        distances = -jnp.abs(_distances(queries, keys, offset))
        return jnp.array(slopes, jnp.float32)[:, None, None] * distances.astype(jnp.float32)
