"""Multi-head attention: self-attention, cross-attention, and decoding with a cache; rotary embeddings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox import lax, random
from phlox.errors import ArgumentError, DtypeError, ShapeError
from phlox.extend import lenient_promotion
from phlox.nn import initializers

from . import _checks
from ._layer import Layer
from ._linear import Linear
from ._paths import BATCH
from ._torch_layout import TRANSPOSED, Tensor, inside, tensor


def rotary(x: Any, positions: Any, base: float = 10000.0) -> Any:
    """Rotates pairs of features by angles proportional to the position, so that products depend on relative positions.

    Feature i goes with feature i + n/2, by the angle ``position * base ** (-2 i / n)``. Source: Su et al., 2021.

    Args:
      x: queries or keys, of shape (..., length, heads, n), n even.
      positions: numbers of shape (..., length).
      base: the larger, the slower the angles grow.

    Returns an array like `x`.

    >>> x = jnp.ones((2, 1, 4))
    >>> rotary(x, jnp.arange(2)).shape
    (2, 1, 4)
    """
    if jnp.ndim(x) < 2 or jnp.shape(x)[-1] % 2:
        raise ShapeError(
            f"rotary turns pairs of features, got {phlox.typeof(x).short}",
            instead="(..., length, heads, n), with an even n",
            shapes=[jnp.shape(x)],
        )
    half = jnp.shape(x)[-1] // 2
    speeds = base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = jnp.asarray(positions, jnp.float32)[..., None, None] * speeds
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    wide = _checks.wide(x)
    first, second = wide[..., :half], wide[..., half:]
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return jnp.asarray(turned, jnp.result_type(x))


def _is_broadcastable(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    return all(n in (1, m) for n, m in zip(shape[::-1], axes[::-1], strict=False))


class MultiHeadAttention(Layer):
    """Attention with several heads, ``softmax(q @ k.T / sqrt(n)) @ v`` for each of them. Source: Vaswani et al., 2017.

    Maps queries (..., length, features), and optionally a context (..., other length, context_features) that keys and
    values come from, to (..., length, features).

    Args:
      features: the length of the last axis, a multiple of `num_heads`.
      num_heads: the number of heads.
      kv_heads: heads of keys and values, a divisor of `num_heads`; each serves a group of heads (Ainslie et al., 2023).
      context_features: the length of the context's last axis, by default `features`.
      causal: whether each position attends only to positions up to its own.
      rotary_base: if given, queries and keys are rotated by their positions, see `rotary`; 10000.0 is common.
      use_bias: whether the four linear layers have a bias.
      dropout: the fraction of the weights that is dropped in training.
      cache_length: the number of keys and values that `decode` can cache.
      position_bias: a layer that maps the numbers of queries and keys to a bias of the scores, such as `ALiBi` or
        `RelativePositionBias`.

    Its parts are the linear layers `query`, `key`, `value` and `out`. Variables, with `cache_length`: keys and values
    (examples, cache_length, kv_heads, features / num_heads), and index, the number of cached positions.

    >>> import phlox
    >>> layer = MultiHeadAttention(64, 8, causal=True)
    >>> params = layer.init(phlox.random.key(0))
    >>> layer.apply(params, phlox.numpy.ones((2, 5, 64))).shape
    (2, 5, 64)
    """

    features: int
    num_heads: int
    kv_heads: int | None = None
    context_features: int | None = None
    causal: bool = False
    rotary_base: float | None = None
    use_bias: bool = True
    dropout: float = 0.0
    cache_length: int | None = None
    position_bias: Layer | None = None

    def __post_init__(self) -> None:
        _checks.size(self, features=self.features, num_heads=self.num_heads)
        for name in ("kv_heads", "context_features", "cache_length"):
            if getattr(self, name) is not None:
                _checks.size(self, **{name: getattr(self, name)})
        _checks.part(self, dropout=self.dropout)
        if self.features % self.num_heads or self.num_heads % self._kv_heads:
            raise ArgumentError(
                f"MultiHeadAttention: num_heads={self.num_heads} must divide features={self.features}, and kv_heads="
                f"{self._kv_heads} must divide num_heads",
                instead="for example MultiHeadAttention(64, 8, kv_heads=2)",
            )
        if self.rotary_base is not None and self._size % 2:
            raise ArgumentError(f"MultiHeadAttention: rotary positions need heads of even size, got {self._size}")

    @property
    def _kv_heads(self) -> int:
        return self.num_heads if self.kv_heads is None else self.kv_heads

    @property
    def _size(self) -> int:
        """The number of features of one head."""
        return self.features // self.num_heads

    def parts(self) -> Mapping[str, Any]:
        context_features = self.features if self.context_features is None else self.context_features
        narrow = self._kv_heads * self._size
        return {
            "query": Linear(self.features, self.features, self.use_bias),
            "key": Linear(context_features, narrow, self.use_bias),
            "value": Linear(context_features, narrow, self.use_bias),
            "out": Linear(self.features, self.features, self.use_bias),
        }

    def variables(self) -> Mapping[str, Any]:
        if self.cache_length is None:
            return {}
        cache = (initializers.zeros, (BATCH, self.cache_length, self._kv_heads, self._size))
        return {"keys": cache, "values": cache, "index": (initializers.zeros, (), jnp.int32)}

    def torch_layout(self) -> Sequence[Tensor]:
        """PyTorch stores the weights of queries, keys and values in one tensor, or in three if the context has other
        features; files of other models have a linear layer with its own bias for each.
        """
        names = ("query", "key", "value")

        def single(kind: str, form: str) -> list[Tensor]:
            return [tensor(form.format(n, n[0]), f"{n}.{kind}", layout=TRANSPOSED) for n in names]

        def joint(kind: str, instead: Sequence[Tensor]) -> Tensor:
            paths = [f"{n}.{kind}" for n in names]
            return tensor(f"in_proj_{kind}", *paths, layout=TRANSPOSED, instead=instead)

        if self.kv_heads is not None and self.kv_heads != self.num_heads:  # PyTorch has no such layer
            tensors = single("weight", "{}.weight") + (single("bias", "{}.bias") if self.use_bias else [])
        else:
            if self.context_features is None or self.context_features == self.features:
                tensors = [joint("weight", single("weight", "{}.weight"))]
            else:
                maps = zip(single("weight", "{1}_proj_weight"), single("weight", "{}.weight"), strict=True)
                tensors = [dataclasses.replace(a, instead=(b,)) for a, b in maps]
            tensors += [joint("bias", single("bias", "{}.bias"))] if self.use_bias else []
        out = self.parts()["out"].torch_layout()
        return [*tensors, *(inside(part, ("out",), "out_proj") for part in out)]

    def __call__(self, x: Any, context: Any = None, *, mask: Any = None, bias: Any = None) -> Any:
        """Attends from each position of `x` to the positions of `context`, by default to those of `x`.

        Args:
          x: of shape (..., length, features).
          context: of shape (..., other length, context_features).
          mask: bools, or integers 0 and 1, false where a position is not attended to; of shape (length, other length),
            (examples, length, other length) or (examples, heads, length, other length), where lengths may be 1.
            Positions that no other attends to may be nan; without a context they are padding if the mask is equal for
            all positions of `x`.
          bias: numbers that are added to the scores before the softmax; of a shape that broadcasts to (examples, heads,
            length, other length).
        """
        _checks.rank(self, x, (..., "length", self.features))
        source = x if context is None else context
        if mask is not None:
            mask = self._whole_mask(mask, x, source)
            x, source = self._without_padding(x, source, mask, context is None)
        q, k, v = (self._heads(f(a)) for f, a in ((self.query, x), (self.key, source), (self.value, source)))
        if self.rotary_base is not None:
            q = rotary(q, jnp.arange(q.shape[-3]), self.rotary_base)
            k = rotary(k, jnp.arange(k.shape[-3]), self.rotary_base)
        return self._attend(q, k, v, mask, self.causal, self._bias(bias, q, k, 0))

    @lenient_promotion()
    def decode(self, x: Any) -> Any:
        """Like the call of a causal layer, for the next positions of a sequence: earlier keys and values are cached.

        Args:
          x: of shape (..., length, features): one token or several, which follow those of earlier calls. The number of
            examples is the argument `batch` of `init_state`.

        After more than `cache_length` positions the results are nan.
        """
        if self.cache_length is None:
            raise ArgumentError(
                f"{self._name()}: decode needs a cache", instead="MultiHeadAttention(..., cache_length=256)"
            )
        _checks.rank(self, x, (..., "length", self.features))
        q, k, v = (self._heads(f(x)) for f in (self.query, self.key, self.value))
        length, index = x.shape[-2], self.index
        positions = index + jnp.arange(length)
        if self.rotary_base is not None:
            q, k = (rotary(a, positions, self.rotary_base) for a in (q, k))
        keys, values = self._remember("keys", k), self._remember("values", v)
        self.update(keys=keys, values=values, index=index + length)
        seen = jnp.arange(self.cache_length) <= positions[:, None]
        y = self._attend(q, keys, values, seen[None, None], False, self._bias(None, q, keys, index))
        return jnp.where(index + length <= self.cache_length, y, jnp.nan)

    def _whole_mask(self, mask: Any, x: Any, source: Any) -> Any:
        """The mask as bools with four axes. Raises for one that is no mask of these queries and keys."""
        mask = jnp.asarray(mask)
        if jnp.issubdtype(mask.dtype, jnp.inexact):
            raise DtypeError(
                f"{self._name()}: the mask is {phlox.typeof(mask).short}, not bools",
                instead="bias=mask, for numbers that are added to the scores; mask > 0, for ones and zeros",
                layer=self.path,
            )
        whole = mask[:, None] if mask.ndim == 3 else mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
        axes = (math.prod(x.shape[:-2]), self.num_heads, x.shape[-2], source.shape[-2])
        if not 2 <= mask.ndim <= 4 or not _is_broadcastable(whole.shape, axes):
            raise ShapeError(
                f"{self._name()}: the mask must have two, three or four axes, which broadcast to (examples, heads, "
                f"length, other length), here {axes}, got {phlox.typeof(mask).short}",
                instead="(length, other length), (examples, length, other length), or (examples, heads, length, other "
                "length); mask[:, None] of (examples, length) masks keys",
                shapes=[mask.shape, axes],
                layer=self.path,
            )
        return whole.astype(bool)

    def _without_padding(self, x: Any, source: Any, mask: Any, own: bool) -> tuple[Any, Any]:
        """`x` and `source` with zeros for numbers that are not finite at positions that the mask excludes.

        Their weights are 0, but 0 times nan is nan, in the results and in the gradients of the four linear layers.
        """
        queries, keys = mask.any(axis=(1, 3)), mask.any(axis=(1, 2))
        if own and mask.shape[2] == 1:
            queries = keys

        def cleaned(x: Any, used: Any) -> Any:
            used = used.reshape((*(x.shape[:-2] if len(used) > 1 else ()), used.shape[1], 1))
            return jnp.where(used | jnp.isfinite(x), x, jnp.zeros((), x.dtype))

        return cleaned(x, queries), cleaned(source, keys)

    def _bias(self, bias: Any, q: Any, k: Any, offset: Any) -> Any:
        """The sum of this bias and that of positions, with four axes; None if there is neither."""
        lengths = q.shape[-3], k.shape[-3]
        if bias is not None:
            bias = jnp.asarray(bias)
            axes = (math.prod(q.shape[:-3]), self.num_heads, *lengths)
            if bias.ndim > 4 or not _is_broadcastable(bias.shape, axes):
                raise ShapeError(
                    f"{self._name()}: the bias must broadcast to {axes} (examples, heads, length, other length), got "
                    f"{phlox.typeof(bias).short}",
                    shapes=[bias.shape, axes],
                    layer=self.path,
                )
        if self.position_bias is not None:
            own = self.position_bias(*lengths, offset=offset)
            bias = own if bias is None else bias + own
        return None if bias is None else bias.reshape((1,) * (4 - bias.ndim) + bias.shape)

    def _heads(self, x: Any) -> Any:
        return x.reshape((*x.shape[:-1], x.shape[-1] // self._size, self._size))

    def _remember(self, name: str, new: Any) -> Any:
        """The cache of this name, updated with new keys or values."""
        cache = getattr(self, name)
        examples = math.prod(new.shape[:-3])
        if examples != cache.shape[0]:
            raise ShapeError(
                f"{self._name()}: decode got {examples} examples, but its cache is for {cache.shape[0]}",
                instead=f"state = model.init_state(batch={examples})",
                shapes=[new.shape, cache.shape],
                layer=self.path,
            )
        new = jnp.asarray(new.reshape((examples, *new.shape[-3:])), cache.dtype)
        return lax.dynamic_update_slice_in_dim(cache, new, self.index, axis=1)

    def _attend(self, q: Any, k: Any, v: Any, mask: Any, causal: bool, bias: Any) -> Any:
        """Attention of queries (..., t, n, size) to keys and values (..., s, kv_heads, size)."""
        lead = q.shape[:-3]
        q, k, v = (a.reshape((math.prod(lead), *a.shape[-3:])) for a in _checks.one_dtype(q, k, v))
        if self.train and self.dropout:
            y = self._with_dropout(q, k, v, mask, causal, bias)
        else:
            y = phlox.nn.dot_product_attention(q, k, v, self.cast(bias)[0], mask, is_causal=causal)
        return self.out(y.reshape((*lead, q.shape[1], self.features)))

    def _with_dropout(self, q: Any, k: Any, v: Any, mask: Any, causal: bool, bias: Any) -> Any:
        k, v = (jnp.repeat(a, self.num_heads // self._kv_heads, axis=-2) for a in (k, v))
        scores = jnp.einsum("btnh,bsnh->bnts", q, k) / math.sqrt(self._size)
        if bias is not None:
            scores = scores + jnp.asarray(bias, scores.dtype)
        if causal:
            before = jnp.tri(q.shape[1], k.shape[1], dtype=bool)
            mask = before if mask is None else mask & before
        if mask is not None:
            scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
        weights = jnp.asarray(phlox.nn.softmax(_checks.wide(scores)), scores.dtype)
        keep_mask = random.bernoulli(self.random_key(), 1 - self.dropout, weights.shape)
        weights = jnp.where(keep_mask, weights / (1 - self.dropout or 1), jnp.zeros((), weights.dtype))
        return jnp.einsum("bnts,bsnh->btnh", weights, v)
