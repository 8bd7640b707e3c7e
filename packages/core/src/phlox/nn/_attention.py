"""`dot_product_attention`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.jit.jit import jit
from .._base.errors import DtypeError, OptionError, ShapeError
from .._operands.checks import check
from .._operands.indices import positions
from ..typing import Array, ArrayLike
from ._functions import logsumexp, softmax


def _four_axes(x: Any) -> Array:
    """`x` with leading axes of length one inserted, up to rank four."""
    x = jnp.asarray(x)
    return x.reshape((1,) * (4 - x.ndim) + x.shape) if x.ndim < 4 else x


def _expect(name: str, x: Any, shape: tuple[int | None, ...], dtype: Any) -> None:
    """Raises unless `x` has this shape (None: any length) and dtype."""
    if x is None:
        return
    if x.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, x.shape, strict=True)):
        raise ShapeError(f"dot_product_attention: {name} has shape {x.shape}, needed is {shape}", shapes=[x.shape])
    if dtype is not None and x.dtype != dtype:
        raise DtypeError(f"dot_product_attention: {name} is {x.dtype.name}, needed is {np.dtype(dtype).name}")


def _allowed(length: int, keys: int, causal: bool, window: tuple[int, int] | None) -> Any:
    """The mask of keys that each query attends to, by their positions (`causal`, `window`); None for all."""
    if not causal and window is None:
        return None
    query, key = positions(length)[:, None], positions(keys)[None, :]
    if window is None:
        return key <= query
    left, right = window
    is_inside = (query <= key + left) & (query >= key - right)
    return is_inside & (key <= query) if causal else is_inside


@jit(inline=True, static_argnames=("is_causal", "local_window_size", "implementation", "return_residual"))
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Scaled dot product attention: ``softmax(query @ key.T * scale + bias) @ value`` for each head.

    Letters of shapes: B examples, T queries, S keys, N heads of queries, K heads of keys (a divisor of N), H features.

    Args:
      query: of shape [B, T, N, H], or without B.
      key, value: of shape [B, S, K, H], or without B, of one dtype with `query`; each of the K heads serves N / K heads
        of queries.
      bias: added to the products; of shape [B, N, T, S], where lengths may be 1. A key is ignored where it is -inf.
      mask: bools of such a shape: a key is ignored where it is False. What is ignored everywhere may be nan. A query
        that ignores all keys gets the mean of all finite values.
      scale: factor of the products; 1 / sqrt(H) by default.
      is_causal: whether each query takes only keys at its own position and before.
      query_seq_lengths, key_value_seq_lengths: int32 of shape [B]: how many queries and keys of each example are valid.
        Results of other queries are 0.
      local_window_size: how many positions to the left and to the right of its own a query reaches; one number for both
        sides or a pair.
      implementation: None or 'xla', which are the same.
      return_residual: whether the logarithms of the sums of exponentials are returned too.

    Returns:
      An array of the shape and dtype of `query`; with `return_residual` also one of shape [B, T, N] (or without B) of
      that dtype, which has no derivative.

    Raises:
      ShapeError: shapes do not fit.
      DtypeError: dtypes differ, `mask` is not of bools, or lengths are not int32.
      OptionError: there is no such `implementation`.

    >>> from phlox import nn
    >>> x = jnp.ones((1, 3, 2, 4))
    >>> nn.dot_product_attention(x, x, x).shape
    (1, 3, 2, 4)
    """
    check("dot_product_attention", query, key, value)
    shape = np.shape(query)
    query, key, value = (_four_axes(x) for x in (query, key, value))
    bias, mask = (None if x is None else _four_axes(x) for x in (bias, mask))
    lengths = [None if x is None else jnp.asarray(x) for x in (query_seq_lengths, key_value_seq_lengths)]
    if key.ndim != 4:
        raise ShapeError(f"dot_product_attention: key has shape {key.shape}, needed are four axes", shapes=[key.shape])
    b, s, k, h = key.shape
    _expect("value", value, (b, s, k, h), key.dtype)
    _expect("query", query, (b, None, None, h), key.dtype)
    _expect("mask", mask, (None,) * 4, bool)
    _expect("bias", bias, (None,) * 4, None)
    _expect("query_seq_lengths", lengths[0], (b,), np.int32)
    _expect("key_value_seq_lengths", lengths[1], (b,), np.int32)
    t, n = query.shape[1:3]
    if n % k:
        raise ShapeError(
            f"The number of query heads must be a multiple of key/value heads, but got {n} and {k}",
            instead="query of shape [B, T, N, H] with N a multiple of the heads of key and value",
        )
    if implementation not in (None, "xla"):
        raise OptionError(f"dot_product_attention: implementation={implementation!r}", instead="None or 'xla'")
    window = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size
    seen = _seen(t, s, mask, bias, lengths, _allowed(t, s, is_causal, window))
    if any(x is not None for x in (mask, bias, *lengths)):
        query, key, value = _without_ignored(query, key, value, seen)
    grouped = query.reshape(b, t, k, n // k, h)
    # Sums of at least float32, whatever the operands, as the softmax amplifies rounding errors.
    wide = jnp.promote_types(query.dtype, np.float32)
    logits = jnp.einsum("btkgh,bskh->bktgs", grouped, key, preferred_element_type=wide)
    logits = logits.transpose(0, 1, 3, 2, 4).reshape(b, n, t, s)
    logits = logits * jnp.asarray(1.0 / np.sqrt(h) if scale is None else scale, logits.dtype)
    if bias is not None:
        logits = (logits + bias).astype(logits.dtype)
    logits = (logits if seen is None else jnp.where(seen, logits, _least(logits.dtype))).astype(np.float32)
    weights = softmax(logits, axis=-1).astype(key.dtype).reshape(b, k, n // k, t, s)
    out = jnp.einsum("bkgts,bskh->bkgth", weights, value).transpose(0, 3, 1, 2, 4).reshape(b, t, n, h)
    if lengths[0] is not None:
        # Queries beyond their length have ignored all keys, and got a mean of the values.
        counts = jnp.arange(t)[None, :] < lengths[0][:, None]
        out = jnp.where(counts[:, :, None, None], out, jnp.zeros((), out.dtype))
    if not return_residual:
        return out.reshape(shape)
    sums = jnp.transpose(logsumexp(logits, axis=-1).astype(key.dtype), (0, 2, 1))
    return out.reshape(shape), lax.stop_gradient(sums).reshape(shape[:-1])


def _seen(t: int, s: int, mask: Any, bias: Any, lengths: list[Any], positions: Any) -> Any:
    """The mask of keys that are not ignored, which broadcasts to [B, N, T, S]; None if no key is."""
    masks = [x for x in (mask, positions) if x is not None]
    if bias is not None:
        masks.append(bias != -np.inf)
    queries, keys = lengths
    if queries is not None:
        masks.append((jnp.arange(t)[None, :, None] < queries[:, None, None])[:, None])
    if keys is not None:
        masks.append((jnp.arange(s)[None, None, :] < keys[:, None, None])[:, None])
    return functools.reduce(jnp.logical_and, masks) if masks else None


def _least(dtype: Any) -> Any:
    """The very negative number that stands for the logit of an ignored key."""
    # Not -inf: the softmax of a row of these would be nan. It is finite in float32 too, the dtype of the softmax.
    return jnp.asarray(-0.7 * min(float(jnp.finfo(dtype).max), float(np.finfo(np.float32).max)), dtype)


def _without_ignored(query: Array, key: Array, value: Array, seen: Any) -> tuple[Array, Array, Array]:
    """Query, key and value without numbers that no result depends on.

    These may be nan: their weights are 0, but 0 times nan is nan, in the result and in the derivatives of the others.
    """
    seen = jnp.asarray(seen).reshape((1,) * (4 - jnp.ndim(seen)) + jnp.shape(seen))
    queries = jnp.moveaxis(seen.any(axis=3), 1, 2)[..., None]
    heads = (key.shape[2], -1) if seen.shape[1] > 1 else (1, 1)
    keys = seen.any(axis=2).reshape(seen.shape[0], *heads, seen.shape[3]).any(axis=2)
    keys = jnp.moveaxis(keys, 1, 2)[..., None]
    # Finite values stay: a query that ignores all keys gets their mean, as in JAX.
    return (
        jnp.where(queries, query, jnp.zeros((), query.dtype)),
        jnp.where(keys, key, jnp.zeros((), key.dtype)),
        jnp.where(jnp.logical_or(keys, jnp.isfinite(value)), value, jnp.zeros((), value.dtype)),
    )
