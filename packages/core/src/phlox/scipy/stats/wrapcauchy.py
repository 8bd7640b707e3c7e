"""``phlox.scipy.stats.wrapcauchy``: the wrapped Cauchy distribution, of angles from 0 to 2 pi."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ...typing import ArrayLike
from ._distribution import distribution

__all__ = ["logpdf", "pdf"]


@distribution(example="0.5, 0.3")
def wrapcauchy(x: ArrayLike, c: ArrayLike) -> Any:
    """The wrapped Cauchy distribution.

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      c: concentration, between 0 and 1; it broadcasts with `x`.
    """


def _log_density(x: Any, c: Any) -> Any:
    # 1 + c**2 - 2 c cos(x) without cancellation
    spread = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(0.5 * x))
    # log(1 - c**2) by its factors: the square would be rounded before the difference.
    out = jnp.log1p(-c) + jnp.log1p(c) - jnp.log(2 * np.pi * spread)
    end = np.asarray(2 * np.pi, type_of(x).dtype)
    return jnp.where((c > 0) & (c < 1), jnp.where((x < 0) | (x > end), -jnp.inf, out), jnp.nan)


logpdf = wrapcauchy.logpdf(_log_density, result=-1.359)
pdf = wrapcauchy.pdf(result=0.257)

publish(__name__)
