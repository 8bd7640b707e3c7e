"""``phlox.scipy.stats.beta``: the beta distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ..special import betainc
from ._distribution import distribution
from ._large_parameters import log_beta_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@distribution(example="0.4, 2.0, 3.0")
def beta(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The beta distribution.

    Args:
      a, b: shape parameters, positive; they broadcast with `x`.
    """


def _where_valid(a: Any, b: Any, out: Any) -> Any:
    return jnp.where((a > 0) & (b > 0), out, jnp.nan)


def _log_density(z: Any, a: Any, b: Any, scale: Any) -> Any:
    outside = (z < 0) | (z > 1)
    # Points outside are replaced by one inside, so that derivatives there are 0 and not nan.
    y = jnp.where(outside, 0.5, z)
    out = log_beta_density(y, a, b) - jnp.log(scale)
    return _where_valid(a, b, jnp.where(outside, -jnp.inf, out))


def _below(z: Any, a: Any, b: Any) -> Any:
    # As for the density: the derivative at the ends may be infinite.
    inside = (z > 0) & (z < 1)
    share = betainc(a, b, jnp.where(inside, z, 0.5))
    return _where_valid(a, b, jnp.where(inside, share, jnp.where(z <= 0, 0, jnp.where(z >= 1, 1, jnp.nan))))


def _above(z: Any, a: Any, b: Any) -> Any:
    # I(b, a, 1 - z) = 1 - I(a, b, z). Above the mean the first has the digits of a small tail; far below it 1 - z is
    # rounded to 1, where the slope is another.
    low = z < a / (a + b)
    share = _below(jnp.where(low, z, 1 - z), jnp.where(low, a, b), jnp.where(low, b, a))
    return jnp.where(low, 1 - share, share)


logpdf = beta.logpdf(_log_density, result=0.547)
pdf = beta.pdf(result=1.728)
cdf = beta.cdf(_below, result=0.525)
sf = beta.sf(_above, result=0.475)
logcdf = beta.logcdf(result=-0.645)
logsf = beta.logsf(result=-0.744)

publish(__name__)
