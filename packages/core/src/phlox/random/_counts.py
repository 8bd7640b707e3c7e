"""Distributions of counts: Poisson, binomial, multinomial. Small rates by counting, large ones by rejection."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._ir import dtypes
from .._operands.checks import as_shape, check, type_of
from .._operands.promotion import promote_inexact
from .._ops.elementwise.special import lgamma_of_xla
from .._ops.random import keys as ops
from .._ops.structure.numbers import scalar_of
from .._ops.structure.shape import convert
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._approximate import approximate_poisson, check_method
from ._keys import check_key
from ._samplers import _float, _integer, _shape, uniform

# --- Poisson --------------------------------------------------------------------------------------------


def _poisson_small(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any, limit: Any) -> Any:
    """Knuth's algorithm: the number of uniform samples whose product is still at least exp(-lam)."""

    def turn(carry: Any) -> Any:
        i, k, key, total = carry
        # The order of splits and draws is JAX's, so the counts are JAX's too.
        key, fresh = ops.random_split(key, shape=(2,))
        k = jnp.where(total > -lam, k + 1, k)
        return i + 1, k, key, total + jnp.log(uniform(fresh, shape, np.float32))

    start = (0, jnp.zeros(shape, dtype), key, jnp.zeros(shape, np.float32))
    final = lax.while_loop(lambda c: (c[3] > -lam).any() & (c[0] < limit), turn, start)
    # The count includes the empty product, which the loop finds before the first sample.
    return (final[1] - 1).astype(dtype)


def _poisson_large(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any, limit: Any) -> Any:
    """Hörmann, The transformed rejection method for generating Poisson random variables, 1993: algorithm PTRS."""
    log_lam = jnp.log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inv_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def turn(carry: Any) -> Any:
        i, out, accepted, key = carry
        key, first, second = ops.random_split(key, shape=(3,))
        u = uniform(first, shape, lam.dtype) - 0.5
        v = uniform(second, shape, lam.dtype)
        shifted = 0.5 - abs(u)
        k = jnp.floor((2 * a / shifted + b) * u + lam + 0.43)
        s = jnp.log(v * inv_alpha / (a / (shifted * shifted) + b))
        bound = -lam + k * log_lam - lgamma_of_xla(k + 1)
        reject = (k < 0) | ((shifted < 0.013) & (v > shifted))
        accept = ((shifted >= 0.07) & (v <= v_r)) | (~reject & (s <= bound))
        return i + 1, jnp.where(accept, k, out), accepted | accept, key

    start = (0, jnp.full(shape, -1, lam.dtype), jnp.zeros(shape, bool), key)
    final = lax.while_loop(lambda c: (~c[2]).any() & (c[0] < limit), turn, start)
    return final[1].astype(dtype)


@functools.partial(jit, static_argnums=(2, 3))
def _poisson(key: Any, lam: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    lam = convert(jnp.broadcast_to(lam, shape), dtypes.float32)
    small = jnp.isnan(lam) | (lam < 10)
    limit = scalar_of(dtypes.iinfo(dtype).max, dtype)
    # Elements of the other algorithm get a mean for which the loop ends at once, or accepts soon.
    counted = _poisson_small(key, jnp.where(small, lam, 0), shape, dtype, limit)
    again = ops.random_clone(key)  # each element takes the result of one of the two
    drawn = _poisson_large(again, jnp.where(small, np.float32(1e5), lam), shape, dtype, limit)
    # For lam = 0 the loop makes no turn and its count would be -1. For nan it is -1, as in JAX.
    return jnp.where(lam == 0, 0, jnp.where(small, counted, drawn))


@takes_out_sharding
def poisson(
    key: Key,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: OutSharding = None,
) -> Array:
    """Random counts of the Poisson distribution with mean `lam`.

    Args:
      key: one PRNG key, new-style or old-style.
      lam: mean, number or array, not negative.
      shape: shape of the result, to which `lam` broadcasts; None: the shape of `lam`.
      dtype: an integer dtype; int32 by default (int64 in x64 mode).
      method: ``"exact"``, by rejection, or ``"approximate"``, without a loop and several times faster: the total
        variation distance to the distribution is less than 1e-4.

    Returns:
      An array of this shape and dtype.

    Raises:
      OptionError: `method` is neither of the two.
      DtypeError: `key` is not a PRNG key, or `dtype` is not an integer dtype.
      ShapeError: `key` is an array of several keys, or `lam` does not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.poisson(random.key(0), 3.0, (100,)) >= 0).all())
    True
    """
    key = check_key("poisson", key)
    check_method("poisson", method)
    out_dtype = _integer("poisson", dtype)
    if method == "approximate":
        return approximate_poisson(key, lam, _shape("poisson", shape, lam), out_dtype)
    return _poisson(key, lam, _shape("poisson", shape, lam), out_dtype)


# --- binomial -------------------------------------------------------------------------------------------

#: the error of Stirling's formula for the logarithms of the factorials of 0 to 9
_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.010411265261972, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _tail(k: Any) -> Any:
    """The error of Stirling's formula for the logarithm of k!."""
    tabled = k <= 9
    k = jnp.clip(k, 0.0, 9.0)
    square = (k + 1) * (k + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
    return jnp.where(tabled, jnp.array(_TAILS, k.dtype)[jnp.floor(k).astype("int32")], series)


def _binomial_small(key: Any, count: Any, p: Any, shape: tuple[int, ...], dtype: Any, limit: Any) -> Any:
    """The number of successes, by adding geometric waiting times up to the number of trials."""
    log_q = jnp.log1p(-p)

    def turn(carry: Any) -> Any:
        i, k, total, key = carry
        # Here the second key goes on, as in JAX.
        fresh, key = ops.random_split(key, shape=(2,))
        k = jnp.where(total <= count, k + 1, k)
        return i + 1, k, total + jnp.ceil(jnp.log(uniform(fresh, shape, p.dtype)) / log_q), key

    start = (0, jnp.zeros(shape, p.dtype), jnp.zeros(shape, p.dtype), key)
    final = lax.while_loop(lambda c: (c[2] <= count).any() & (c[0] < limit), turn, start)
    return (final[1] - 1).astype(dtype)


def _binomial_large(key: Any, count: Any, p: Any, shape: tuple[int, ...], dtype: Any, limit: Any) -> Any:
    """Hörmann, The generation of binomial random variates, 1993: algorithm BTRS."""
    deviation = jnp.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = jnp.floor((count + 1) * p)

    def turn(carry: Any) -> Any:
        i, out, accepted, key = carry
        key, first, second = ops.random_split(key, shape=(3,))
        u = uniform(first, shape, p.dtype)
        v = uniform(second, shape, p.dtype)
        u = u - 0.5
        us = 0.5 - jnp.abs(u)
        quickly = (us >= 0.07) & (v <= v_r)
        k = jnp.floor((2 * a / us + b) * u + c)
        reject = (k < 0) | (k > count)
        v = jnp.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * jnp.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * jnp.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * jnp.log(r * (count - k + 1) / (k + 1))
            + _tail(m)
            + _tail(count - m)
            - _tail(k)
            - _tail(count - k)
        )
        accept = quickly | (~reject & (v <= bound))
        return i + 1, jnp.where(accept, k, out), accepted | accept, key

    start = (0, jnp.full(shape, -1, p.dtype), jnp.zeros(shape, bool), key)
    final = lax.while_loop(lambda c: (~c[2]).any() & (c[0] < limit), turn, start)
    return final[1].astype(dtype)


@functools.partial(jit, static_argnums=(3, 4))
def _binomial(key: Any, count: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    (p,) = promote_inexact(p)
    p = jnp.broadcast_to(p, shape)
    count = jnp.broadcast_to(convert(count, p.dtype), shape)
    # Failures are counted where they are rarer than successes.
    rare = p < 0.5
    q = jnp.where(rare, p, 1.0 - p)
    no_count = jnp.isnan(count) | (count < 0.0)
    # An endless number of trials has endless successes; neither algorithm could draw them.
    endless = jnp.isinf(count)
    no_chance = jnp.isnan(q)
    negative = q < 0.0
    q = jnp.where(no_chance | negative, 0.01, q)
    small = no_count | (count * q <= 10.0)
    count = jnp.floor(count)
    limit = scalar_of(dtypes.finfo(dtype).max, dtype)
    again = ops.random_clone(key)  # each element takes the result of one of the two
    drawn = jnp.where(
        small,
        _binomial_small(key, jnp.where(small, count, 0.0), q, shape, dtype, limit),
        _binomial_large(again, jnp.where(small, 1e4, count), jnp.where(small, 0.5, q), shape, dtype, limit),
    )
    invalid = negative | no_chance | no_count
    drawn = jnp.where(invalid, np.nan, drawn)
    drawn = jnp.where(endless & ~invalid, np.inf, drawn)
    return jnp.where(rare | no_count | no_chance | endless, drawn, count.astype(dtype) - drawn)


@docs_from(uniform)
def binomial(key: Key, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Random numbers of successes in `n` trials with success probability `p`, as floats.

    Where `n` is negative or nan, or `p` is not between 0 and 1, the result is nan.

    Args:
      n: numbers of trials, integers or floats, which are rounded down.
      p: probabilities of success, number or array.
      shape: shape of the result, to which the parameters broadcast; None: their broadcast shape.

    Raises:
      ShapeError: `key` is an array of several keys, or the parameters do not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.binomial(random.key(0), 10, 0.3, (100,)) <= 10).all())
    True
    """
    key = check_key("binomial", key)
    n, p = check("binomial", n, p)
    return _binomial(key, n, p, _shape("binomial", shape, n, p), _float("binomial", dtype))


@docs_from(binomial)
def multinomial(
    key: Key,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Random numbers of occurrences of each category in `n` trials; they add up to `n`.

    Args:
      n: numbers of trials; their shape broadcasts to `shape`.
      p: probabilities of the categories, along the last axis.
      shape: shape of the result without its last axis, that of the categories; None means ``p.shape[:-1]``.
      dtype: dtype of the result, float32 by default (float64 in x64 mode).
      unroll: number of categories that are drawn in each iteration of the compiled loop, see `phlox.lax.scan`.

    Raises:
      DtypeError: `key` is not a PRNG key.

    >>> from phlox import random
    >>> float(random.multinomial(random.key(0), 10, jnp.array([0.2, 0.3, 0.5])).sum())
    10.0
    """
    key = check_key("multinomial", key)
    n, p = promote_inexact(*check("multinomial", n, p))
    *stack, categories = type_of(p).shape
    shape = tuple(stack) if shape is None else as_shape(shape, "multinomial")
    n, p = jnp.broadcast_to(n, shape), jnp.moveaxis(jnp.broadcast_to(p, (*shape, categories)), -1, 0)
    # Given the counts before it each count is binomial, with its share of the probability that is left.
    left = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(left == 0, 1, left)

    def turn(remaining: Any, item: Any) -> Any:
        ratio, key = item
        # Rounding may make the last ratio larger than 1, for which `binomial` returns nan.
        drawn = binomial(key, remaining, jnp.clip(ratio, 0, 1), dtype=remaining.dtype)
        return remaining - drawn, drawn

    keys = ops.random_split(key, shape=(ratios.shape[0],))
    _, counts = lax.scan(turn, n, (ratios, keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtypes.canonical(dtypes.float64) if dtype is None else dtype)
