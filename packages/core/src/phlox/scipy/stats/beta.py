"""``phlox.scipy.stats.beta``: the beta distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..special import betainc, betaln, xlog1py, xlogy
from ._shared import log_share, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@jit(inline=True)
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the beta distribution at `x` (as ``scipy.stats.beta.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a, b: shape parameters, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 2.0, 3.0)), 3)
    0.405
    """
    z, a, b, scale = standardized("beta.logpdf", x, a, b, loc, scale)
    outside = (z < 0) | (z > 1)
    y = jnp.where(outside, 0.5, z)
    out = xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b) - jnp.log(scale)
    return jnp.where((a > 0) & (b > 0), jnp.where(outside, -jnp.inf, out), jnp.nan)


@jit(inline=True)
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the beta distribution at `x` (as ``scipy.stats.beta.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a, b: shape parameters, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 2.0, 3.0)), 3)
    1.5
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the beta distribution is at most `x` (as ``scipy.stats.beta.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a, b: shape parameters, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5, 2.0, 3.0)), 3)
    0.687
    """
    z, a, b, scale = standardized("beta.cdf", x, a, b, loc, scale)
    return jnp.where((a > 0) & (b > 0), betainc(a, b, jnp.clip(z, 0, 1)), jnp.nan)


@jit(inline=True)
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the beta distribution is at most `x` (as
    ``scipy.stats.beta.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a, b: shape parameters, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5, 2.0, 3.0)), 3)
    -0.375
    """
    return log_share(cdf(x, a, b, loc, scale), sf(x, a, b, loc, scale))


@jit(inline=True)
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the beta distribution is above `x` (as ``scipy.stats.beta.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a, b: shape parameters, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5, 2.0, 3.0)), 3)
    0.313
    """
    z, a, b, scale = standardized("beta.sf", x, a, b, loc, scale)
    return jnp.where((a > 0) & (b > 0), betainc(b, a, 1 - jnp.clip(z, 0, 1)), jnp.nan)


@jit(inline=True)
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the beta distribution is above `x` (as
    ``scipy.stats.beta.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      a, b: shape parameters, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5, 2.0, 3.0)), 3)
    -1.163
    """
    return log_share(sf(x, a, b, loc, scale), cdf(x, a, b, loc, scale))


publish(__name__)
