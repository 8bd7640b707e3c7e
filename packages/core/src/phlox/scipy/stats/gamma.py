"""``phlox.scipy.stats.gamma``: the gamma distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import gammainc, gammaincc, gammaln, xlogy
from ._shared import log_share, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@jit(inline=True)
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the gamma distribution at `x` (as ``scipy.stats.gamma.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 2.0)), 3)
    -1.193
    """
    z, a, scale = standardized("gamma.logpdf", x, a, loc, scale)
    y = jnp.where(z < 0, 1, z)
    out = jnp.where(y == jnp.inf, -jnp.inf, xlogy(a - 1, y) - y) - (gammaln(a) + jnp.log(scale))
    return jnp.where(a > 0, jnp.where(z < 0, -jnp.inf, out), jnp.nan)


@jit(inline=True)
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the gamma distribution at `x` (as ``scipy.stats.gamma.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 2.0)), 3)
    0.303
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the gamma distribution is at most `x` (as ``scipy.stats.gamma.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5, 2.0)), 3)
    0.09
    """
    z, a, scale = standardized("gamma.cdf", x, a, loc, scale)
    return jnp.where(a > 0, gammainc(a, jnp.where(z < 0, 0, z)), jnp.nan)


@jit(inline=True)
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the gamma distribution is at most `x` (as
    ``scipy.stats.gamma.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5, 2.0)), 3)
    -2.406
    """
    return log_share(cdf(x, a, loc, scale), sf(x, a, loc, scale))


@jit(inline=True)
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the gamma distribution is above `x` (as ``scipy.stats.gamma.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5, 2.0)), 3)
    0.91
    """
    z, a, scale = standardized("gamma.sf", x, a, loc, scale)
    return jnp.where(a > 0, gammaincc(a, jnp.where(z < 0, 0, z)), jnp.nan)


@jit(inline=True)
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the gamma distribution is above `x` (as
    ``scipy.stats.gamma.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5, 2.0)), 3)
    -0.095
    """
    return log_share(sf(x, a, loc, scale), cdf(x, a, loc, scale))


publish(__name__)
