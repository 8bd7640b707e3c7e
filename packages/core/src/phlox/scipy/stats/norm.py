"""``phlox.scipy.stats.norm``: the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.public_names import publish
from ..._operands.checks import type_of
from ..._ops.elementwise.families import literal
from ...typing import ArrayLike
from ..special import log_ndtr, ndtri
from ._distribution import distribution, probability

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@distribution(example="0.5")
def norm(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Any:
    """The normal distribution."""


HALF_LOG_TWO_PI = math.log(2 * math.pi) / 2


def log_density(z: Any, scale: Any) -> Any:
    # An array of bools and weak numbers are together weak; the result is only where `x` is a single number, as in jax.
    constant = np.asarray(HALF_LOG_TWO_PI, type_of(z).dtype) if type_of(z).shape else HALF_LOG_TWO_PI
    return -(0.5 * jnp.square(z) + (jnp.log(scale) + constant))


def _below(z: Any) -> Any:
    half = np.asarray(0.5, type_of(z).dtype)
    # Not 1 + erf, which loses its digits in the left tail
    return half * lax.erfc(-z * literal(z, math.sqrt(0.5)))


logpdf = norm.logpdf(log_density, result=-1.044)
pdf = norm.pdf(result=0.352)
cdf = norm.cdf(_below, result=0.691)
logcdf = norm.logcdf(log_ndtr, result=-0.369)
sf = norm.sf(lambda z: _below(-z), result=0.309)
logsf = norm.logsf(lambda z: log_ndtr(-z), result=-1.176)
ppf = norm.ppf(probability, lambda q, loc, scale: ndtri(q) * scale + loc, example="0.3", result=-0.524)
isf = norm.isf(probability, lambda q, loc, scale: loc - ndtri(q) * scale, example="0.3", result=0.524)

publish(__name__)
