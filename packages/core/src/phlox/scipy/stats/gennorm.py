"""``phlox.scipy.stats.gennorm``: the generalized normal distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.promotion import promoted_inexact
from ..special import gammaincc, gammaln

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density of the generalized normal distribution at `x` (as
    ``scipy.stats.gennorm.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      beta: shape parameter, positive: 1 gives the Laplace and 2 the normal distribution; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 1.5)), 3)
    -0.944
    """
    x, beta = promoted_inexact("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - gammaln(1 / beta) - jnp.abs(x) ** beta


@jit(inline=True)
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability that a number of the generalized normal distribution is at most `x` (as
    ``scipy.stats.gennorm.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      beta: shape parameter, positive: 1 gives the Laplace and 2 the normal distribution; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5, 1.5)), 3)
    0.742
    """
    x, beta = promoted_inexact("gennorm.cdf", x, beta)
    half = 0.5 * gammaincc(1 / beta, jnp.abs(x) ** beta)
    return jnp.where(x > 0, 1 - half, half)


@jit(inline=True)
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density of the generalized normal distribution at `x` (as ``scipy.stats.gennorm.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      beta: shape parameter, positive: 1 gives the Laplace and 2 the normal distribution; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 1.5)), 3)
    0.389
    """
    return jnp.exp(logpdf(x, beta))


publish(__name__)
