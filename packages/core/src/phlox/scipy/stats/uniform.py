"""``phlox.scipy.stats.uniform``: the uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution, probability

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


@distribution(example="0.5")
def uniform(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The uniform distribution."""


# 0 * z gives the result the shape of z, and its nan.
logpdf = uniform.logpdf(lambda z, scale: jnp.where((z < 0) | (z > 1), -jnp.inf, -jnp.log(scale) + 0 * z), result=0.0)
pdf = uniform.pdf(result=1.0)
cdf = uniform.cdf(lambda z: jnp.clip(z, 0, 1), result=0.5)
ppf = uniform.ppf(probability, lambda q, loc, scale: loc + scale * q, example="0.3", result=0.3)

publish(__name__)
