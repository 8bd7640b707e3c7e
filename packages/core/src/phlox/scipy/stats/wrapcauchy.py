"""``phlox.scipy.stats.wrapcauchy``: the wrapped Cauchy distribution, of angles from 0 to 2 pi."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..._operands.promotion import promoted_inexact

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density of the wrapped Cauchy distribution at `x` (as
    ``scipy.stats.wrapcauchy.logpdf``).

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      c: concentration, between 0 and 1; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 0.3)), 3)
    -1.359
    """
    x, c = promoted_inexact("wrapcauchy.logpdf", x, c)
    # 1 + c**2 - 2 c cos(x) without cancellation
    spread = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(0.5 * x))
    out = jnp.log1p(-c) + jnp.log1p(c) - jnp.log(2 * np.pi * spread)
    end = np.asarray(2 * np.pi, type_of(x).dtype)
    return jnp.where((c > 0) & (c < 1), jnp.where((x < 0) | (x > end), -jnp.inf, out), jnp.nan)


@jit(inline=True)
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density of the wrapped Cauchy distribution at `x` (as ``scipy.stats.wrapcauchy.pdf``).

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      c: concentration, between 0 and 1; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 0.3)), 3)
    0.257
    """
    return jnp.exp(logpdf(x, c))


publish(__name__)
