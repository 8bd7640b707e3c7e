"""``phlox.scipy.stats.pareto``: the Pareto distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ._shared import inverse, log1mexp, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log(z: Any) -> Any:
    """log(z) of where the density is; 0 below."""
    return jnp.log(jnp.where(z < 1, 1, z))


@jit(inline=True)
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Pareto distribution at `x` (as ``scipy.stats.pareto.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(2.5, 2.0)), 3)
    -2.056
    """
    z, b, scale = standardized("pareto.logpdf", x, b, loc, scale)
    return jnp.where(z < 1, -jnp.inf, jnp.log(b) - jnp.log(scale) - (b + 1) * _log(z))


@jit(inline=True)
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Pareto distribution at `x` (as ``scipy.stats.pareto.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(2.5, 2.0)), 3)
    0.128
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Pareto distribution is at most `x` (as ``scipy.stats.pareto.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(2.5, 2.0)), 3)
    0.84
    """
    z, b, scale = standardized("pareto.cdf", x, b, loc, scale)
    return jnp.where(b > 0, -jnp.expm1(-b * _log(z)), jnp.nan)


@jit(inline=True)
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the Pareto distribution is at most `x` (as
    ``scipy.stats.pareto.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(2.5, 2.0)), 3)
    -0.174
    """
    z, b, scale = standardized("pareto.logcdf", x, b, loc, scale)
    inside = z > 1
    out = jnp.where(z <= 1, -jnp.inf, log1mexp(jnp.where(inside, b * _log(z), 1)))
    return jnp.where((b > 0) & (z == z), out, jnp.nan)


@jit(inline=True)
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Pareto distribution is above `x` (as ``scipy.stats.pareto.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(2.5, 2.0)), 3)
    0.16
    """
    z, b, scale = standardized("pareto.sf", x, b, loc, scale)
    return jnp.where(b > 0, jnp.exp(-b * _log(z)), jnp.nan)


@jit(inline=True)
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the Pareto distribution is above `x` (as
    ``scipy.stats.pareto.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(2.5, 2.0)), 3)
    -1.833
    """
    z, b, scale = standardized("pareto.logsf", x, b, loc, scale)
    return jnp.where(b > 0, -b * _log(z), jnp.nan)


@jit(inline=True)
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the Pareto distribution (as ``scipy.stats.pareto.ppf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      b: shape parameter, positive; it broadcasts with `q`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(ppf(0.3, 2.0)), 3)
    1.195
    """
    q, b, loc, scale = inverse("pareto.ppf", q, b, loc, scale)
    return jnp.where(b > 0, loc + scale * jnp.exp(-jnp.log1p(-q) / b), jnp.nan)


publish(__name__)
