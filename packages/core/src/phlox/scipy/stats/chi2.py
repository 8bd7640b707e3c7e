"""``phlox.scipy.stats.chi2``: the chi-squared distribution, which is a gamma distribution."""

from __future__ import annotations

from typing import Any

from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution
from .gamma import above, below, density, log_above, log_below, log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@distribution(example="0.5, 3.0")
def chi2(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The chi-squared distribution.

    Args:
      df: degrees of freedom, positive; they broadcast with `x`.
    """


logpdf = chi2.logpdf(lambda z, df, scale: log_density(0.5 * z, 0.5 * df, 2 * scale), result=-1.516)
pdf = chi2.pdf(lambda z, df, scale: density(0.5 * z, 0.5 * df, 2 * scale), result=0.22)
cdf = chi2.cdf(lambda z, df: below(0.5 * z, 0.5 * df), result=0.081)
sf = chi2.sf(lambda z, df: above(0.5 * z, 0.5 * df), result=0.919)
logcdf = chi2.logcdf(lambda z, df: log_below(0.5 * z, 0.5 * df), result=-2.512)
logsf = chi2.logsf(lambda z, df: log_above(0.5 * z, 0.5 * df), result=-0.085)

publish(__name__)
