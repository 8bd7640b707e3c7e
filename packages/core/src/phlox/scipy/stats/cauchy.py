"""``phlox.scipy.stats.cauchy``: the Cauchy distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution, probability

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@distribution(example="0.5")
def cauchy(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The Cauchy distribution."""


def _log_one_plus_square(z: Any) -> Any:
    """log(1 + z**2), where the square may be too large for the dtype."""
    large = jnp.abs(z) > 1e4
    return jnp.where(
        large,
        # log1p(1 / z**2) is 1 / z**2 to rounding here.
        2 * jnp.log(jnp.where(large, jnp.abs(z), 1)) + jnp.square(1 / jnp.where(large, z, 1)),
        jnp.log1p(jnp.square(jnp.where(large, 0, z))),
    )


def _log_below(z: Any) -> Any:
    """The logarithm of `cdf`, from the smaller of the two tails."""
    share = jnp.arctan2(jnp.ones_like(z), jnp.abs(z)) / np.pi
    return jnp.where(z >= 0, jnp.log1p(-share), jnp.log(share))


def _quantile(q: Any) -> Any:
    """tan(pi * (q - 1/2)); far from the middle from the distance to the nearer end, which floats have exactly."""
    middle = jnp.abs(q - 0.5) < 0.25
    near = jnp.tan(np.pi * jnp.where(middle, q - 0.5, 0))
    tail = 1 / jnp.tan(np.pi * jnp.where(middle, 0.25, jnp.minimum(q, 1 - q)))
    return jnp.where(middle, near, jnp.where(q < 0.5, -tail, tail))


logpdf = cauchy.logpdf(lambda z, scale: -(_log_one_plus_square(z) + jnp.log(np.pi * scale)), result=-1.368)
pdf = cauchy.pdf(lambda z, scale: 1 / (np.pi * scale * (1 + jnp.square(z))), result=0.255)
# arctan2(1, z) / pi is the tail above z. 1/2 - arctan(z) / pi, the usual form, cancels far from 0.
cdf = cauchy.cdf(lambda z: jnp.arctan2(jnp.ones_like(z), -z) / np.pi, result=0.648)
logcdf = cauchy.logcdf(_log_below, result=-0.435)
sf = cauchy.sf(lambda z: jnp.arctan2(jnp.ones_like(z), z) / np.pi, result=0.352)
logsf = cauchy.logsf(lambda z: _log_below(-z), result=-1.043)
ppf = cauchy.ppf(probability, lambda q, loc, scale: loc + scale * _quantile(q), example="0.3", result=-0.727)
isf = cauchy.isf(probability, lambda q, loc, scale: loc - scale * _quantile(q), example="0.3", result=0.727)

publish(__name__)
