"""``phlox.scipy.stats.t``: student's t distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ...typing import ArrayLike
from ..special import betaln
from ._distribution import distribution
from .norm import log_density as normal_log_density

__all__ = ["logpdf", "pdf"]


@distribution(example="0.5, 3.0")
def t(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """Student's t distribution.

    Args:
      df: degrees of freedom, positive; they broadcast with `x`.
    """


def _log_density(z: Any, df: Any, scale: Any) -> Any:
    # inf - inf would be nan: of endless degrees of freedom it is the normal distribution.
    endless = df == jnp.inf
    df = jnp.where(endless, 1, df)
    half = 0.5 * (df + 1)
    ratio = jnp.abs(z) / jnp.sqrt(df)
    # Beyond it the 1 of 1 + ratio**2 is less than the rounding error.
    large = ratio > (1e9 if type_of(ratio).dtype == np.float64 else 1e4)
    square = jnp.where(
        large, 2 * jnp.log(jnp.where(large, ratio, 1)), jnp.log1p(jnp.square(jnp.where(large, 0, z)) / df)
    )
    # By betaln, as gammaln((df + 1) / 2) - gammaln(df / 2) cancels for large df
    out = -half * square - (betaln(0.5, 0.5 * df) + 0.5 * jnp.log(df) + jnp.log(scale))
    return jnp.where(endless, normal_log_density(z, scale), out)


logpdf = t.logpdf(_log_density, result=-1.161)
pdf = t.pdf(result=0.313)

publish(__name__)
