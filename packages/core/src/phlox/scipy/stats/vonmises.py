"""``phlox.scipy.stats.vonmises``: the von Mises distribution of angles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.promotion import promoted_inexact
from ..special import i0e

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density of the von Mises distribution of angles at `x` (as
    ``scipy.stats.vonmises.logpdf``).

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      kappa: concentration, not negative; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 1.5)), 3)
    -1.02
    """
    x, kappa = promoted_inexact("vonmises.logpdf", x, kappa)
    # cos(x) - 1 without cancellation
    height = -2 * jnp.square(jnp.sin(0.5 * x))
    return jnp.where(kappa >= 0, kappa * height - jnp.log(2 * np.pi * i0e(kappa)), jnp.nan)


@jit(inline=True)
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density of the von Mises distribution of angles at `x` (as ``scipy.stats.vonmises.pdf``).

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      kappa: concentration, not negative; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 1.5)), 3)
    0.36
    """
    return jnp.exp(logpdf(x, kappa))


publish(__name__)
