"""``phlox.scipy.stats.uniform``: the uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ._shared import inverse, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the uniform distribution at `x` (as ``scipy.stats.uniform.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    0.0
    """
    z, scale = standardized("uniform.logpdf", x, loc, scale)
    return jnp.where((z < 0) | (z > 1), -jnp.inf, -jnp.log(scale) + 0 * z)


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the uniform distribution at `x` (as ``scipy.stats.uniform.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    1.0
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the uniform distribution is at most `x` (as ``scipy.stats.uniform.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.5
    """
    z, scale = standardized("uniform.cdf", x, loc, scale)
    return jnp.clip(z, 0, 1)


@jit(inline=True)
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the uniform distribution (as ``scipy.stats.uniform.ppf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(ppf(0.3)), 3)
    0.3
    """
    q, loc, scale = inverse("uniform.ppf", q, loc, scale)
    return loc + scale * q


publish(__name__)
