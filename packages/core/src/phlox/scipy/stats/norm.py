"""``phlox.scipy.stats.norm``: the normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._operands.checks import type_of
from ..._operands.promotion import promoted_inexact
from ..._ops.elementwise.families import literal

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the normal distribution at `x` (as ``scipy.stats.norm.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: mean and standard deviation, numbers or arrays that broadcast with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> logpdf(0.0)
    Array(-0.9189385, dtype=float32, weak_type=True)
    """
    x, loc, scale = promoted_inexact("norm.logpdf", x, loc, scale)
    variance = jnp.square(scale)
    return (jnp.log(literal(x, 2 * np.pi) * variance) + jnp.square(x - loc) / variance) / literal(x, -2)


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the normal distribution at `x` (as ``scipy.stats.norm.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: mean and standard deviation, numbers or arrays that broadcast with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> pdf(0.0)
    Array(0.3989423, dtype=float32, weak_type=True)
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a normal number is at most `x` (as ``scipy.stats.norm.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: mean and standard deviation, numbers or arrays that broadcast with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    Raises:
      DtypeError: an argument is complex.

    >>> cdf(0.0)
    Array(0.5, dtype=float32)
    """
    x, loc, scale = promoted_inexact("norm.cdf", x, loc, scale)
    half = np.asarray(0.5, type_of(x).dtype)
    return half * lax.erfc((loc - x) / scale * literal(x, math.sqrt(0.5)))


def __dir__() -> list[str]:
    return __all__
