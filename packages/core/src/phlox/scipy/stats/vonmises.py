"""``phlox.scipy.stats.vonmises``: the von Mises distribution of angles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import numpy as jnp
from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.public_names import publish
from ..._operands.promotion import promoted_inexact
from ..special import i0e, i1e

if TYPE_CHECKING:
    from ...typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density of the von Mises distribution of angles at `x` (as
    ``scipy.stats.vonmises.logpdf``).

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      kappa: concentration, not negative; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(logpdf(0.5, 1.5)), 3)
    -1.02
    """
    x, kappa = promoted_inexact("vonmises.logpdf", x, kappa)
    # cos(x) - 1 without cancellation
    height = -2 * jnp.square(jnp.sin(0.5 * x))
    return jnp.where(kappa >= 0, kappa * height - _log_normalizer(kappa), jnp.nan)


@custom_jvp
def _log_normalizer(kappa: Any) -> Any:
    """The logarithm of 2 pi exp(-kappa) I_0(kappa)."""
    return jnp.log(2 * np.pi * i0e(kappa))


@_log_normalizer.defjvp
def _log_normalizer_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    # Not by the derivative of i0e, which has a kink at 0, the end of the domain.
    (kappa,), (t,) = primals, tangents
    return _log_normalizer(kappa), t * (i1e(kappa) / i0e(kappa) - 1)


@jit(inline=True)
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density of the von Mises distribution of angles at `x` (as ``scipy.stats.vonmises.pdf``).

    Args:
      x: angles in radians, an array of any shape; integers are converted to floats.
      kappa: concentration, not negative; it broadcasts with `x`.

    Returns:
      An array of the broadcast shape, of the promoted floating dtype.

    >>> round(float(pdf(0.5, 1.5)), 3)
    0.36
    """
    return jnp.exp(logpdf(x, kappa))


publish(__name__)
