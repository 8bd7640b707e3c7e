"""``phlox.scipy.stats.vonmises``: the von Mises distribution of angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._base.public_names import publish
from ..._ops.elementwise.special import bessel_i0e_slope
from ...typing import ArrayLike
from ..special import i0e
from ._distribution import distribution

__all__ = ["logpdf", "pdf"]


@distribution(example="0.5, 1.5")
def vonmises(x: ArrayLike, kappa: ArrayLike) -> Any:
    """The von Mises distribution of angles.

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      kappa: concentration, not negative; it broadcasts with `x`.
    """


@custom_jvp
def _log_normalizer(kappa: Any) -> Any:
    """The logarithm of 2 pi exp(-kappa) I_0(kappa)."""
    return jnp.log(2 * np.pi * i0e(kappa))


# Not the derivative of i0e, which has a kink at 0, the end of the domain.
_log_normalizer.defjvps(lambda t, out, kappa: t * bessel_i0e_slope(kappa) / i0e(kappa))


def _log_density(x: Any, kappa: Any) -> Any:
    # cos(x) - 1 without cancellation
    height = -2 * jnp.square(jnp.sin(0.5 * x))
    return jnp.where(kappa >= 0, kappa * height - _log_normalizer(kappa), jnp.nan)


logpdf = vonmises.logpdf(_log_density, result=-1.02)
pdf = vonmises.pdf(result=0.36)

publish(__name__)
