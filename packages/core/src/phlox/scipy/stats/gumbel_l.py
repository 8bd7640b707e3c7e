"""``phlox.scipy.stats.gumbel_l``: the Gumbel distribution of minima."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ._shared import inverse, log1mexpexp, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_density(z: Any, scale: Any) -> Any:
    # At infinity z - exp(z) would be inf - inf.
    return jnp.where(z == jnp.inf, -jnp.inf, jnp.where(z == jnp.inf, 0, z) - jnp.exp(z) - jnp.log(scale))


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Gumbel distribution of minima at `x` (as
    ``scipy.stats.gumbel_l.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -1.149
    """
    z, scale = standardized("gumbel_l.logpdf", x, loc, scale)
    return _log_density(z, scale)


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Gumbel distribution of minima at `x` (as ``scipy.stats.gumbel_l.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.317
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the Gumbel distribution of minima is at most `x` (as
    ``scipy.stats.gumbel_l.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5)), 3)
    -0.214
    """
    z, scale = standardized("gumbel_l.logcdf", x, loc, scale)
    return log1mexpexp(z)


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Gumbel distribution of minima is at most `x` (as
    ``scipy.stats.gumbel_l.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.808
    """
    z, scale = standardized("gumbel_l.cdf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(z))


@jit(inline=True)
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the Gumbel distribution of minima (as ``scipy.stats.gumbel_l.ppf``).

    Args:
      p: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `p`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `p` is not between 0 and 1.

    >>> round(float(ppf(0.3)), 3)
    -1.031
    """
    p, loc, scale = inverse("gumbel_l.ppf", p, loc, scale)
    return loc + scale * jnp.log(-jnp.log1p(-p))


@jit(inline=True)
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Gumbel distribution of minima is above `x` (as
    ``scipy.stats.gumbel_l.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5)), 3)
    0.192
    """
    z, scale = standardized("gumbel_l.sf", x, loc, scale)
    return jnp.exp(-jnp.exp(z))


@jit(inline=True)
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the Gumbel distribution of minima is above `x` (as
    ``scipy.stats.gumbel_l.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5)), 3)
    -1.649
    """
    z, scale = standardized("gumbel_l.logsf", x, loc, scale)
    return -jnp.exp(z)


publish(__name__)
