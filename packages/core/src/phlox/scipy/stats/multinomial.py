"""``phlox.scipy.stats.multinomial``: the multinomial distribution, of counts of outcomes."""

from __future__ import annotations

from typing import Any

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError
from ..._base.public_names import publish
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_dtypes, promote_inexact
from ..._ops.elementwise.large_parameters import STIRLING
from ...typing import Array, ArrayLike
from ..special import gammaln, xlogy
from ._large_parameters import log_gamma_density

__all__ = ["logpmf", "pmf"]


@jit(inline=True)
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts `x` (as ``scipy.stats.multinomial.logpmf``).

    Args:
      x: counts of outcomes, integers, in the last axis.
      n: number of trials, an integer or an array of integers of the shape of `x` without its last axis.
      p: probabilities of the outcomes, in the last axis; they broadcast with `x`.

    Returns:
      An array of the shape of `x` without its last axis, of the floating dtype of `p`; -inf where the counts do not
      sum to `n`.

    Raises:
      ArgumentError: `x` or `n` are not integers.

    >>> round(float(logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5]))), 3)
    -0.981
    """
    (p,) = promote_inexact(*check("multinomial.logpmf", p))
    x, n = promote_dtypes(*check("multinomial.logpmf", x, n))
    if dtypes.kind(type_of(x).dtype) not in "iu":
        raise ArgumentError(f"multinomial: x and n must be integers, got {type_of(x).short} and {type_of(n).short}")
    dtype = type_of(p).dtype
    complete = jnp.sum(x, axis=-1) == n
    inside = jnp.all(x >= 0, axis=-1)
    counts, trials = jnp.maximum(x, 0).astype(dtype), jnp.asarray(n).astype(dtype)
    return jnp.where(complete & inside, _log_mass(counts, trials, p), -jnp.inf)


def _log_mass(counts: Any, trials: Any, p: Any) -> Any:
    # 1 stands in for the probability 0 of what was never counted, of which the derivative is 0 and not 0 / 0.
    y = jnp.where((p > 0) | (counts > 0), p, 1)
    near = gammaln(trials + 1) + jnp.sum(xlogy(counts, y) - gammaln(counts + 1), axis=-1)
    # The probabilities of Poisson distributions, divided by the one of their sum. They are those of `p` divided by its
    # sum, which is 1 but for rounding errors: `near` has these times the number of trials.
    is_large = (trials >= STIRLING) & (jnp.abs(jnp.sum(p, axis=-1) - 1) < 1e-6) & jnp.all(y > 0, axis=-1)
    means = lax.stop_gradient(jnp.expand_dims(trials, -1) * p)
    far = jnp.sum(log_gamma_density(means, counts + 1), axis=-1) - log_gamma_density(trials, trials + 1)
    # The derivative by p is that of `near`, as in the Dirichlet distribution.
    positive = jnp.where(p > 0, p, 1)
    slope = jnp.sum(xlogy(counts, positive) - xlogy(counts, lax.stop_gradient(positive)), axis=-1)
    return jnp.where(is_large, far + slope, near)


@jit(inline=True)
@docs_from(logpmf)
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts `x` (as ``scipy.stats.multinomial.pmf``).

    Returns:
      An array of the shape of `x` without its last axis, of the floating dtype of `p`; 0 where the counts do not sum
      to `n`.

    >>> round(float(pmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5]))), 3)
    0.375
    """
    return jnp.exp(logpmf(x, n, p))


publish(__name__)
