"""``phlox.scipy.stats.laplace``: the Laplace distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ._shared import standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Laplace distribution at `x` (as ``scipy.stats.laplace.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -1.193
    """
    z, scale = standardized("laplace.logpdf", x, loc, scale)
    return -(jnp.abs(z) + jnp.log(2 * scale))


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Laplace distribution at `x` (as ``scipy.stats.laplace.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.303
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the Laplace distribution is at most `x` (as ``scipy.stats.laplace.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.697
    """
    z, scale = standardized("laplace.cdf", x, loc, scale)
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z > 0, 1 - half, half)


publish(__name__)
