"""``phlox.scipy.stats.chi2``: the chi-squared distribution, which is a gamma distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.promotion import promoted_inexact
from . import gamma

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@jit(inline=True)
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the chi-squared distribution at `x` (as ``scipy.stats.chi2.logpdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 3.0)), 3)
    -1.516
    """
    x, df, loc, scale = promoted_inexact("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, 0.5 * df, loc, 2 * scale)


@jit(inline=True)
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the chi-squared distribution at `x` (as ``scipy.stats.chi2.pdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 3.0)), 3)
    0.22
    """
    x, df, loc, scale = promoted_inexact("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, 0.5 * df, loc, 2 * scale)


@jit(inline=True)
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the chi-squared distribution is at most `x` (as ``scipy.stats.chi2.cdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(cdf(0.5, 3.0)), 3)
    0.081
    """
    x, df, loc, scale = promoted_inexact("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, 0.5 * df, loc, 2 * scale)


@jit(inline=True)
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the chi-squared distribution is at most `x` (as
    ``scipy.stats.chi2.logcdf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logcdf(0.5, 3.0)), 3)
    -2.512
    """
    x, df, loc, scale = promoted_inexact("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, 0.5 * df, loc, 2 * scale)


@jit(inline=True)
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability that a number of the chi-squared distribution is above `x` (as ``scipy.stats.chi2.sf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(sf(0.5, 3.0)), 3)
    0.919
    """
    x, df, loc, scale = promoted_inexact("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, 0.5 * df, loc, 2 * scale)


@jit(inline=True)
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the probability that a number of the chi-squared distribution is above `x` (as
    ``scipy.stats.chi2.logsf``).

    Args:
      x: real array of any shape; integers are converted to floats.
      df: degrees of freedom, positive; they broadcast with `x`.
      loc, scale: where the distribution is shifted to, and by what it is stretched (positive); they broadcast with
        `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logsf(0.5, 3.0)), 3)
    -0.085
    """
    x, df, loc, scale = promoted_inexact("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, 0.5 * df, loc, 2 * scale)


publish(__name__)
