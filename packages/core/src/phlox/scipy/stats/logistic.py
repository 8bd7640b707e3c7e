"""``phlox.scipy.stats.logistic``: the logistic distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import expit, logit
from ._shared import inverse, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the logistic distribution at `x` (as ``scipy.stats.logistic.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -1.448
    """
    z, scale = standardized("logistic.logpdf", x, loc, scale)
    distance = jnp.abs(z)
    return -distance - 2 * jnp.log1p(jnp.exp(-distance)) - jnp.log(scale)


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the logistic distribution at `x` (as ``scipy.stats.logistic.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.235
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the logistic distribution (as ``scipy.stats.logistic.ppf``).

    Args:
      x: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `x` is not between 0 and 1.

    >>> round(float(ppf(0.5)), 3)
    0.0
    """
    q, loc, scale = inverse("logistic.ppf", x, loc, scale)
    return loc + scale * logit(q)


@jit(inline=True)
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the logistic distribution is above `x` (as ``scipy.stats.logistic.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5)), 3)
    0.378
    """
    z, scale = standardized("logistic.sf", x, loc, scale)
    return expit(-z)


@jit(inline=True)
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf` of the logistic distribution (as ``scipy.stats.logistic.isf``).

    Args:
      x: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `x` is not between 0 and 1.

    >>> round(float(isf(0.5)), 3)
    0.0
    """
    q, loc, scale = inverse("logistic.isf", x, loc, scale)
    return loc - scale * logit(q)


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the logistic distribution is at most `x` (as ``scipy.stats.logistic.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.622
    """
    z, scale = standardized("logistic.cdf", x, loc, scale)
    return expit(z)


publish(__name__)
