"""``phlox.scipy.stats.geom``: the geometric distribution, of trials up to the first success."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ..special import xlog1py
from ._distribution import distribution

__all__ = ["logpmf", "pmf"]


@distribution(example="2, 0.3")
def geom(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Any:
    """The geometric distribution.

    Args:
      p: probability of success of each trial; it broadcasts with `k`.
    """


def _log_mass(k: Any, p: Any) -> Any:
    inside = k > 0
    out = jnp.where(inside, xlog1py(jnp.where(inside, k, 1) - 1, -p) + jnp.log(p), -jnp.inf)
    return jnp.where((p >= 0) & (p <= 1) & (k == k), out, jnp.nan)


logpmf = geom.logpmf(_log_mass, result=-1.561)
pmf = geom.pmf(result=0.21)

publish(__name__)
