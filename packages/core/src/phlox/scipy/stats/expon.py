"""``phlox.scipy.stats.expon``: the exponential distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ._shared import inverse, log1mexp, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the exponential distribution at `x` (as ``scipy.stats.expon.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -0.5
    """
    z, scale = standardized("expon.logpdf", x, loc, scale)
    return jnp.where(z < 0, -jnp.inf, -z - jnp.log(scale))


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the exponential distribution at `x` (as ``scipy.stats.expon.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.607
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the exponential distribution is at most `x` (as ``scipy.stats.expon.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.393
    """
    z, scale = standardized("expon.cdf", x, loc, scale)
    return -jnp.expm1(-jnp.where(z < 0, 0, z))


@jit(inline=True)
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the exponential distribution is at most `x` (as
    ``scipy.stats.expon.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5)), 3)
    -0.933
    """
    z, scale = standardized("expon.logcdf", x, loc, scale)
    return jnp.where(z < 0, -jnp.inf, log1mexp(jnp.where(z < 0, 1, z)))


@jit(inline=True)
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the exponential distribution is above `x` (as ``scipy.stats.expon.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5)), 3)
    0.607
    """
    z, scale = standardized("expon.sf", x, loc, scale)
    return jnp.exp(-jnp.where(z < 0, 0, z))


@jit(inline=True)
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the exponential distribution is above `x` (as
    ``scipy.stats.expon.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5)), 3)
    -0.5
    """
    z, scale = standardized("expon.logsf", x, loc, scale)
    return -jnp.where(z < 0, 0, z)


@jit(inline=True)
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the exponential distribution (as ``scipy.stats.expon.ppf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(ppf(0.3)), 3)
    0.357
    """
    q, loc, scale = inverse("expon.ppf", q, loc, scale)
    return loc - scale * jnp.log1p(-q)


publish(__name__)
