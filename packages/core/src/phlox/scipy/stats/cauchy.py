"""``phlox.scipy.stats.cauchy``: the Cauchy distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ._shared import inverse, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_one_plus_square(z: Any) -> Any:
    """log(1 + z**2), where the square may be too large for the dtype."""
    large = jnp.abs(z) > 1e4
    return jnp.where(
        large,
        2 * jnp.log(jnp.where(large, jnp.abs(z), 1)) + jnp.square(1 / jnp.where(large, z, 1)),
        jnp.log1p(jnp.square(jnp.where(large, 0, z))),
    )


def _log_below(z: Any) -> Any:
    """The logarithm of `cdf`, from the smaller of the two tails."""
    share = jnp.arctan2(jnp.ones_like(z), jnp.abs(z)) / np.pi
    return jnp.where(z > 0, jnp.log1p(-share), jnp.log(share))


def _quantile(q: Any) -> Any:
    """tan(pi * (q - 1/2)); far from the middle from the distance to the nearer end, which floats have exactly."""
    middle = jnp.abs(q - 0.5) < 0.25
    near = jnp.tan(np.pi * jnp.where(middle, q - 0.5, 0))
    tail = 1 / jnp.tan(np.pi * jnp.where(middle, 0.25, jnp.minimum(q, 1 - q)))
    return jnp.where(middle, near, jnp.where(q < 0.5, -tail, tail))


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Cauchy distribution at `x` (as ``scipy.stats.cauchy.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -1.368
    """
    z, scale = standardized("cauchy.logpdf", x, loc, scale)
    return -(_log_one_plus_square(z) + jnp.log(np.pi * scale))


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Cauchy distribution at `x` (as ``scipy.stats.cauchy.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.255
    """
    z, scale = standardized("cauchy.pdf", x, loc, scale)
    return 1 / (np.pi * scale * (1 + jnp.square(z)))


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Cauchy distribution is at most `x` (as ``scipy.stats.cauchy.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.648
    """
    z, scale = standardized("cauchy.cdf", x, loc, scale)
    return jnp.arctan2(jnp.ones_like(z), -z) / np.pi


@jit(inline=True)
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the Cauchy distribution is at most `x` (as
    ``scipy.stats.cauchy.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5)), 3)
    -0.435
    """
    z, scale = standardized("cauchy.logcdf", x, loc, scale)
    return _log_below(z)


@jit(inline=True)
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Cauchy distribution is above `x` (as ``scipy.stats.cauchy.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5)), 3)
    0.352
    """
    z, scale = standardized("cauchy.sf", x, loc, scale)
    return jnp.arctan2(jnp.ones_like(z), z) / np.pi


@jit(inline=True)
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the Cauchy distribution is above `x` (as
    ``scipy.stats.cauchy.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5)), 3)
    -1.043
    """
    z, scale = standardized("cauchy.logsf", x, loc, scale)
    return _log_below(-z)


@jit(inline=True)
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the Cauchy distribution (as ``scipy.stats.cauchy.ppf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(ppf(0.3)), 3)
    -0.727
    """
    q, loc, scale = inverse("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)


@jit(inline=True)
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf` of the Cauchy distribution (as ``scipy.stats.cauchy.isf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(isf(0.3)), 3)
    0.727
    """
    q, loc, scale = inverse("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)


publish(__name__)
