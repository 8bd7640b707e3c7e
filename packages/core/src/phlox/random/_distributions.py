"""Continuous distributions computed from uniform and normal samples, mostly by the inverse distribution function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .. import numpy as jnp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base import config
from .._base.docstrings import docs_from
from .._base.errors import OptionError
from .._ir import dtypes
from .._operands.checks import as_shape, check
from .._ops.elementwise import arithmetic as e, trigonometry
from .._ops.elementwise.logic import clz
from .._ops.random import keys as ops
from .._ops.structure.numbers import scalar_of
from .._ops.structure.shape import bitcast_convert_type, convert
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._keys import check_key
from ._samplers import _float, _inexact, _shape, normal, sample, uniform

# --- without parameters ---------------------------------------------------------------------------------


class _Sampler(Protocol):
    def __call__(
        self, key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
    ) -> Array: ...


def _sampler(name: str, what: str, formula: Callable[[Any, tuple[int, ...], Any], Any]) -> _Sampler:
    """``name(key, shape, dtype)``: `formula` of a key, a shape and a dtype."""
    compiled = jit(formula, static_argnums=(1, 2))

    def function(
        key: Key, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: OutSharding = None
    ) -> Array:
        key = check_key(name, key)
        return compiled(key, as_shape(shape, name), _float(name, dtype))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "phlox.random"
    function.__doc__ = (
        f"Random numbers of {what}.\n\n"
        "Args:\n"
        "  key: one PRNG key, new-style or old-style.\n"
        "  shape: shape of the result.\n"
        "  dtype: a floating dtype, float32 by default (float64 in x64 mode).\n\n"
        "Returns:\n"
        "  An array of this shape and dtype.\n\n"
        "Raises:\n"
        "  DtypeError: `key` is not a PRNG key, or `dtype` is not floating.\n"
        "  ShapeError: `key` is an array of several keys.\n\n"
        f">>> from phlox import random\n>>> random.{name}(random.key(0), (2,)).shape\n(2,)\n"
    )
    return takes_out_sharding(function)


def _exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # 1 - u is never 0, as u is less than 1.
    return e.neg(e.log1p(e.neg(uniform(key, shape, dtype))))


def _laplace(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # -1 is excluded, where the logarithm is infinite.
    u = uniform(key, shape, dtype, minval=-1.0 + dtypes.finfo(dtype).epsneg, maxval=1.0)
    return e.mul(e.sign(u), e.log1p(e.neg(e.abs_(u))))


def _logistic(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # 0 is excluded, where the logarithm is infinite.
    u = uniform(key, shape, dtype, minval=dtypes.finfo(dtype).tiny, maxval=1.0)
    return e.sub(e.log(u), e.log1p(e.neg(u)))


def _cauchy(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # 0 is excluded, where the tangent has a pole.
    u = uniform(key, shape, dtype, minval=dtypes.finfo(dtype).eps, maxval=1.0)
    return trigonometry.tan(e.mul(scalar_of(np.pi, dtype), e.sub(u, scalar_of(0.5, dtype))))


def _maxwell(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return jnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


exponential = _sampler("exponential", "the exponential distribution of rate 1, by -log(1 - u)", _exponential)
laplace = _sampler("laplace", "the Laplace distribution: exponential to both sides", _laplace)
logistic = _sampler("logistic", "the logistic distribution, by log(u / (1 - u))", _logistic)
cauchy = _sampler("cauchy", "the Cauchy distribution, by the tangent of a random angle", _cauchy)
maxwell = _sampler("maxwell", "the Maxwell distribution: lengths of normal vectors in space", _maxwell)

# --- Gumbel, also used by `categorical` -----------------------------------------------------------------


def precision(function: str, mode: str | None) -> str:
    """The number of random bits for a `mode`: "low", "high" or "highest"."""
    if mode not in (None, "low", "high", "highest"):
        raise OptionError(f"{function}: unknown mode {mode!r}", instead="'low', 'high' or 'highest'")
    return mode or ("high" if config.current().high_dynamic_range_gumbel else "low")


def _from_64_bits(high: Any, low: Any) -> Any:
    """A 64-bit binary fraction less than 1, rounded to float32."""
    info = dtypes.finfo(dtypes.float32)
    # The leading zeros are the exponent, and the bits behind them the mantissa.
    zeros = clz(high)
    all_zero = zeros == 32
    zeros_low = clz(low)
    behind = jnp.where(all_zero, low << zeros_low, low >> (32 - zeros))
    mantissa = ((high << zeros | behind) >> (32 - info.nmant - 1)) & ((1 << info.nmant) - 1)
    exponent = (-info.minexp - jnp.where(all_zero, 32 + zeros_low, zeros)) << info.nmant
    return bitcast_convert_type((exponent & ((1 << 30) - (1 << (info.nmant - 1)))) | mantissa, new_dtype=dtypes.float32)


def _gumbel_of_64_bits(key: Any, shape: tuple[int, ...]) -> Any:
    """The formula with log or log1p, depending on the fraction, so that both tails are accurate."""
    high, low = ops.random_bits(key, bit_width=32, shape=(2, *shape))
    lower = high < 1 << 31
    # The fraction, or 1 minus it, which is its negative in two's complement.
    carry = (low == 0).astype(dtypes.uint32)
    u = _from_64_bits(jnp.where(lower, high, ~high + carry), jnp.where(lower, low, ~low + 1))
    return -jnp.log(-jnp.where(lower, jnp.log1p(-u), jnp.log(u)))


@functools.partial(jit, static_argnums=(1, 2, 3))
def _gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    if mode == "highest" and dtype == dtypes.float32:
        return _gumbel_of_64_bits(key, shape)
    info = dtypes.finfo(dtype)
    if mode == "low":
        return -jnp.log(-jnp.log(uniform(key, shape, dtype, minval=info.tiny, maxval=1.0)))
    coarse, fine = uniform(key, (2, *shape), dtype)
    # uniform has as many bits as the mantissa, all behind a fixed point. For small numbers a second one adds lower
    # bits, so that the tail reaches further.
    u = jnp.where(coarse >= 0.5, coarse, coarse + 2**-info.nmant * fine + info.tiny)
    return -jnp.log(-jnp.log1p(-u))


@takes_out_sharding
@docs_from(uniform)
def gumbel(
    key: Key,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the standard Gumbel distribution, by -log(-log(u)) for a uniform u.

    The position of the largest of ``logits + gumbel`` is a random choice with the probabilities of the logits.

    Args:
      mode: number of random bits for each sample: 'low' (the default, None): those of one uniform number; 'high': those
        of two, which extends the range of large results; 'highest': 64 for float32, and as 'high' for other dtypes.

    Raises:
      ShapeError: `key` is an array of several keys.
      OptionError: `mode` is unknown.

    >>> from phlox import random
    >>> random.gumbel(random.key(0), (2,)).shape
    (2,)
    """
    key = check_key("gumbel", key)
    return _gumbel(key, as_shape(shape, "gumbel"), _float("gumbel", dtype), precision("gumbel", mode))


# --- with parameters ------------------------------------------------------------------------------------


@functools.partial(jit, static_argnums=(2, 3))
def _rayleigh(key: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    u = uniform(key, shape, dtype)
    spread = jnp.broadcast_to(convert(scale, dtype), shape)
    return e.mul(spread, e.sqrt(e.mul(e.log(u), scalar_of(-2, dtype))))


@takes_out_sharding
@docs_from(uniform)
def rayleigh(
    key: Key,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the Rayleigh distribution: lengths of normal vectors in the plane, times `scale`.

    Args:
      scale: positive number or array.
      shape: shape of the result, to which `scale` broadcasts; None: the shape of `scale`.

    Raises:
      TypePromotionError: a parameter does not fit into `dtype`.
      ShapeError: `key` is an array of several keys, or `scale` does not broadcast to `shape`.

    >>> from phlox import random
    >>> random.rayleigh(random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return sample("rayleigh", _rayleigh, key, (scale,), shape, dtype)


@functools.partial(jit, static_argnums=(2, 3))
def _lognormal(key: Any, sigma: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return e.exp(normal(key, shape, dtype) * convert(sigma, dtype))


@takes_out_sharding
@docs_from(rayleigh)
def lognormal(
    key: Key,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random numbers whose logarithms are normal, with mean 0 and standard deviation `sigma`.

    Args:
      sigma: standard deviation of the logarithm, positive number or array.
      shape: shape of the result, to which `sigma` broadcasts; None: the shape of `sigma`.
      dtype: a floating or complex dtype, float32 by default (float64 in x64 mode).

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is neither floating nor complex.
      ShapeError: `key` is an array of several keys, or `sigma` does not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.lognormal(random.key(0), 0.5, (100,)) > 0).all())
    True
    """
    return sample("lognormal", _lognormal, key, (sigma,), shape, dtype, checked_dtype=_inexact)


@functools.partial(jit, static_argnums=(2, 3))
def _pareto(key: Any, b: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return e.exp(exponential(key, shape, dtype) / convert(b, dtype))


@takes_out_sharding
@docs_from(rayleigh)
def pareto(
    key: Key,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the Pareto distribution on [1, inf), with density b / x**(b + 1).

    Args:
      b: exponent of the tail, positive number or array.
      shape: shape of the result, to which `b` broadcasts; None: the shape of `b`.

    Raises:
      ShapeError: `key` is an array of several keys, or `b` does not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.pareto(random.key(0), 3.0, (100,)) >= 1).all())
    True
    """
    return sample("pareto", _pareto, key, (b,), shape, dtype)


@functools.partial(jit, static_argnums=(3, 4))
def _weibull_min(key: Any, scale: Any, concentration: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    u = uniform(key, shape, dtype)
    # -log(1 - u), not -log(u): u may be 0, but not 1.
    return jnp.power(-jnp.log1p(-u), 1.0 / concentration) * scale


def weibull_min(
    key: Key, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Random samples of the Weibull distribution: an exponential number to the power 1 / concentration, times `scale`.

    Args:
      key: one PRNG key, new-style or old-style.
      scale, concentration: positive numbers or arrays.
      shape: shape of the exponential samples; the parameters broadcast with it.
      dtype: floating dtype of the exponential samples, float32 by default (float64 in x64 mode).

    Returns:
      An array of the shape that `shape` and the parameters broadcast to, of the promoted dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, or the parameters and `shape` do not broadcast.

    >>> from phlox import random
    >>> random.weibull_min(random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    key = check_key("weibull_min", key)
    scale, concentration = check("weibull_min", scale, concentration)
    dtype = _float("weibull_min", dtype)
    return _weibull_min(key, scale, concentration, as_shape(shape, "weibull_min"), dtype)


@functools.partial(jit, static_argnums=(4, 5))
def _triangular(key: Any, left: Any, mode: Any, right: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low, peak, high = (jnp.broadcast_to(convert(x, dtype), shape) for x in (left, mode, right))
    u = uniform(key, shape, dtype)
    rising = low + e.sqrt(u * (high - low) * (peak - low))
    falling = high - e.sqrt((1 - u) * (high - low) * (high - peak))
    return jnp.where(u < (peak - low) / (high - low), rising, falling)


@takes_out_sharding
@docs_from(rayleigh)
def triangular(
    key: Key,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random numbers between `left` and `right` whose density is a triangle with its top at `mode`.

    Args:
      left, mode, right: numbers or arrays with ``left <= mode <= right`` and ``left < right``.
      shape: shape of the result, to which the parameters broadcast; None: their broadcast shape.

    Raises:
      ShapeError: `key` is an array of several keys, or the parameters do not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.triangular(random.key(0), 0.0, 1.0, 3.0, (100,)) < 3).all())
    True
    """
    return sample("triangular", _triangular, key, (left, mode, right), shape, dtype)


@functools.partial(jit, static_argnums=(2, 3))
def _wald(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = ops.random_split(key, shape=(2,))
    mu = jnp.broadcast_to(convert(mean, dtype), shape)
    y = e.integer_pow(normal(first, shape, dtype), y=2)
    z = uniform(second, shape, dtype)
    square = e.integer_pow(mu, y=2)
    root = e.sqrt(4 * mu * y + square * e.integer_pow(y, y=2))
    # The smaller root of a quadratic equation, whose other root is mu**2 / x. `z` chooses one of the two.
    x = mu + square * y / 2 - mu / 2 * root
    return jnp.where(z <= mu / (mu + x), x, square / x)


@takes_out_sharding
@docs_from(rayleigh)
def wald(
    key: Key,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random samples of the Wald (inverse Gaussian) distribution of this mean (Michael, Schucany and Haas, 1976).

    Args:
      mean: positive number or array; the shape parameter of the distribution is 1.
      shape: shape of the result, to which `mean` broadcasts; None: the shape of `mean`.

    Raises:
      ShapeError: `key` is an array of several keys, or `mean` does not broadcast to `shape`.

    >>> from phlox import random
    >>> bool((random.wald(random.key(0), 2.0, (100,)) > 0).all())
    True
    """
    return sample("wald", _wald, key, (mean,), shape, dtype)


@functools.partial(jit, static_argnums=(3, 4))
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    from ._choices import rademacher

    lengths, signs = ops.random_split(key, shape=(2,))
    return rademacher(signs, shape, dtype) * maxwell(lengths, shape, dtype) * scale + loc


def double_sided_maxwell(
    key: Key, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Random samples of the Maxwell distribution with random signs, times `scale`, plus `loc`.

    Args:
      key: one PRNG key, new-style or old-style.
      loc, scale: numbers or arrays that broadcast with each other.
      shape: leading axes of the result; () by default, which gives the broadcast shape of the parameters.
      dtype: a floating dtype, float32 by default (float64 in x64 mode).

    Returns:
      An array whose shape is `shape` followed by the broadcast shape of the parameters, of the promoted dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, or the parameters do not broadcast.

    >>> from phlox import random
    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (3,)).shape
    (3,)
    """
    key = check_key("double_sided_maxwell", key)
    dtype = _float("double_sided_maxwell", dtype)
    # As in JAX the shape of the parameters follows `shape`; without a shape it is there twice.
    common = _shape("double_sided_maxwell", None, loc, scale)
    whole = (*(as_shape(shape, "double_sided_maxwell") or common), *common)
    return _double_sided_maxwell(key, loc, scale, whole, dtype)
