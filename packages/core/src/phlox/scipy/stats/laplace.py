"""``phlox.scipy.stats.laplace``: the Laplace distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ..._base.public_names import publish
from ...typing import ArrayLike
from ._distribution import distribution

__all__ = ["cdf", "logpdf", "pdf"]


@distribution(example="0.5")
def laplace(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The Laplace distribution."""


def _below(z: Any) -> Any:
    # The smaller tail is computed: it keeps its digits, and 1 less at most 1/2 does not cancel.
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z >= 0, 1 - half, half)


logpdf = laplace.logpdf(lambda z, scale: -(jnp.abs(z) + jnp.log(2 * scale)), result=-1.193)
pdf = laplace.pdf(result=0.303)
cdf = laplace.cdf(_below, result=0.697)

publish(__name__)
