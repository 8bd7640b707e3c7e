"""``phlox.scipy.stats.t``: Student's t distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..special import betaln
from ._shared import standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of Student's t distribution at `x` (as ``scipy.stats.t.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 3.0)), 3)
    -1.161
    """
    z, df, scale = standardized("t.logpdf", x, df, loc, scale)
    half = 0.5 * (df + 1)
    ratio = jnp.abs(z) / jnp.sqrt(df)
    # Beyond it the 1 of 1 + ratio**2 is less than the rounding error.
    large = ratio > (1e9 if type_of(ratio).dtype == np.float64 else 1e4)
    square = jnp.where(
        large, 2 * jnp.log(jnp.where(large, ratio, 1)), jnp.log1p(jnp.square(jnp.where(large, 0, z)) / df)
    )
    return -half * square - (betaln(0.5, 0.5 * df) + 0.5 * jnp.log(df) + jnp.log(scale))


@jit(inline=True)
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of Student's t distribution at `x` (as ``scipy.stats.t.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 3.0)), 3)
    0.313
    """
    return jnp.exp(logpdf(x, df, loc, scale))


publish(__name__)
