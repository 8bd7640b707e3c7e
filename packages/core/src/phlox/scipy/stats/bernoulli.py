"""``phlox.scipy.stats.bernoulli``: the Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ...typing import ArrayLike
from ..special import xlog1py, xlogy
from ._distribution import distribution

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


@distribution(example="1, 0.3")
def bernoulli(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The Bernoulli distribution.

    Args:
      p: probability of 1; it broadcasts with `k`.
    """


# `cdf` has no `loc` in JAX.
@distribution(example="1, 0.3")
def _unshifted(k: ArrayLike, p: ArrayLike) -> Any:
    """The Bernoulli distribution.

    Args:
      p: probability of 1; it broadcasts with `k`.
    """


def _probability(q: ArrayLike, p: ArrayLike) -> Any:
    """The parameters of `ppf`."""


def _where_valid(x: Any, p: Any, out: Any) -> Any:
    return jnp.where((p >= 0) & (p <= 1) & (x == x), out, jnp.nan)


def _log_mass(k: Any, p: Any) -> Any:
    inside = (k >= 0) & (k <= 1)
    out = xlogy(jnp.where(inside, k, 0), p) + xlog1py(1 - jnp.where(inside, k, 0), -p)
    return _where_valid(k, p, jnp.where(inside, out, -jnp.inf))


def _below(k: Any, p: Any) -> Any:
    return _where_valid(k, p, jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, _one_for(k))))


def _quantile(q: Any, p: Any) -> Any:
    one = _one_for(q)
    # 0 * one and not zeros, which would not have the weak type of `one`
    out = jnp.where(q > 1 - p, one, 0 * one)
    return _where_valid(q, p, jnp.where((q < 0) | (q > 1), jnp.nan, out))


def _one_for(x: Any) -> Any:
    """1 for each element of promoted `x`. Only a Python number leaves the type of the result weak, as in jax."""
    aval = type_of(x)
    return jnp.ones(aval.shape, aval.dtype) if aval.shape else jnp.ones_like(x)


logpmf = bernoulli.logpmf(_log_mass, result=-1.204)
pmf = bernoulli.pmf(result=0.3)
cdf = _unshifted.cdf(_below, result=1.0)
ppf = bernoulli.ppf(_probability, _quantile, example="0.8, 0.3", result=1.0)

publish(__name__)
