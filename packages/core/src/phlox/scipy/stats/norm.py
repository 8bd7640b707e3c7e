"""``phlox.scipy.stats.norm``: the normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..._ops.elementwise.families import literal
from ..special import log_ndtr, ndtri
from ._shared import inverse, standardized

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


HALF_LOG_TWO_PI = math.log(2 * math.pi) / 2

#: terms of the series of `log_ndtr` far below 0, by which it is accurate to double precision
SERIES = 10


def _below(z: Any) -> Any:
    half = np.asarray(0.5, type_of(z).dtype)
    return half * lax.erfc(-z * literal(z, math.sqrt(0.5)))


@jit(inline=True)
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the normal distribution at `x` (as ``scipy.stats.norm.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5)), 3)
    -1.044
    """
    z, scale = standardized("norm.logpdf", x, loc, scale)
    # An array of bools and weak numbers are together weak; the result is only where `x` is a single number, as in jax.
    constant = np.asarray(HALF_LOG_TWO_PI, type_of(z).dtype) if type_of(x).shape else HALF_LOG_TWO_PI
    return -(0.5 * jnp.square(z) + (jnp.log(scale) + constant))


@jit(inline=True)
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the normal distribution at `x` (as ``scipy.stats.norm.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5)), 3)
    0.352
    """
    return jnp.exp(logpdf(x, loc, scale))


@jit(inline=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the normal distribution is at most `x` (as ``scipy.stats.norm.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5)), 3)
    0.691
    """
    z, scale = standardized("norm.cdf", x, loc, scale)
    return _below(z)


@jit(inline=True)
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the normal distribution is at most `x` (as
    ``scipy.stats.norm.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5)), 3)
    -0.369
    """
    z, scale = standardized("norm.logcdf", x, loc, scale)
    return log_ndtr(z, SERIES)


@jit(inline=True)
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the normal distribution is above `x` (as ``scipy.stats.norm.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5)), 3)
    0.309
    """
    z, scale = standardized("norm.sf", x, loc, scale)
    return _below(-z)


@jit(inline=True)
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the normal distribution is above `x` (as
    ``scipy.stats.norm.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5)), 3)
    -1.176
    """
    z, scale = standardized("norm.logsf", x, loc, scale)
    return log_ndtr(-z, SERIES)


@jit(inline=True)
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf` of the normal distribution (as ``scipy.stats.norm.ppf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(ppf(0.3)), 3)
    -0.524
    """
    q, loc, scale = inverse("norm.ppf", q, loc, scale)
    return ndtri(q) * scale + loc


@jit(inline=True)
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf` of the normal distribution (as ``scipy.stats.norm.isf``).

    Args:
      q: probabilities, an array of any shape; integers are converted to floats.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `q`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype; nan where `q` is not between 0 and 1.

    >>> round(float(isf(0.3)), 3)
    0.524
    """
    q, loc, scale = inverse("norm.isf", q, loc, scale)
    return loc - ndtri(q) * scale


publish(__name__)
