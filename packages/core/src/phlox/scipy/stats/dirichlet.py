"""``phlox.scipy.stats.dirichlet``: the Dirichlet distribution, of shares that sum to 1."""

from __future__ import annotations

from typing import Any

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ShapeError
from ..._base.public_names import publish
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_inexact
from ..._ops.elementwise.large_parameters import STIRLING
from ...typing import Array, ArrayLike
from ..special import gammaln, xlogy
from ._large_parameters import log_gamma_density

__all__ = ["logpdf", "pdf"]


@jit(inline=True)
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density of the Dirichlet distribution at `x` (as ``scipy.stats.dirichlet.logpdf``).

    Args:
      x: shares, real, in the first of any number of axes; the last share may be left out.
      alpha: concentrations, a vector of positive numbers.

    Returns:
      An array of the shape of `x` without its first axis, of the promoted floating dtype: -inf where a share is
      negative or the shares do not sum to 1.

    Raises:
      ShapeError: `alpha` is not a vector, or `x` has another number of shares.

    >>> round(float(logpdf(jnp.array([0.2, 0.8]), jnp.array([2.0, 3.0]))), 3)
    0.429
    """
    x, alpha = promote_inexact(*check("dirichlet.logpdf", x, alpha))
    x_shape, shape = type_of(x).shape, type_of(alpha).shape
    if len(shape) != 1:
        raise ShapeError(f"dirichlet: alpha must be a vector, got {type_of(alpha).short}", shapes=[shape])
    count = x_shape[0] if x_shape else None
    if count not in (shape[0], shape[0] - 1):
        raise ShapeError(
            f"dirichlet: x must have as many rows as alpha has elements, or one less; got {type_of(x).short} and "
            f"{type_of(alpha).short}",
            shapes=[x_shape, shape],
        )
    if count != shape[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    if len(x_shape) > 1:
        alpha = jnp.reshape(alpha, (-1,) + (1,) * (len(x_shape) - 1))
    out = _log_density(x, alpha)
    # The sum is 1 up to rounding errors. The bound is JAX's.
    inside = jnp.all(x >= 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)
    return jnp.where(inside, out, -jnp.inf)


def _log_density(x: Any, alpha: Any) -> Any:
    # Not `where`: the sums of the other formula take 40 times as long.
    return lax.cond(jnp.sum(alpha) >= STIRLING, _log_density_of_large, _log_density_of_small, x, alpha)


def _log_density_of_small(x: Any, alpha: Any) -> Any:
    return jnp.sum(xlogy(alpha - 1, x), axis=0) - (jnp.sum(gammaln(alpha)) - gammaln(jnp.sum(alpha)))


def _log_density_of_large(x: Any, alpha: Any) -> Any:
    # The densities of gamma distributions at `x` times any scale, divided by the one of their sum. With the sum of
    # alpha as the scale none of them is far from its mean.
    y, total = jnp.where(x > 0, x, 1), jnp.sum(alpha)
    scale, point = lax.stop_gradient(total), lax.stop_gradient(y)
    out = jnp.sum(log_gamma_density(scale * point, alpha), axis=0) - log_gamma_density(scale, total)
    # The derivative by x is that of the plain formula: the other one is right only between shares that sum to 1.
    slope = jnp.sum(xlogy(alpha - 1, y) - xlogy(alpha - 1, point), axis=0)
    out = out + (len(x) - 1) * jnp.log(scale) + slope
    return jnp.where(jnp.all(x > 0, axis=0), out, _log_density_of_small(x, alpha))


@jit(inline=True)
@docs_from(logpdf)
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density of the Dirichlet distribution at `x` (as ``scipy.stats.dirichlet.pdf``).

    Returns:
      An array of the shape of `x` without its first axis, of the promoted floating dtype: 0 where a share is negative
      or the shares do not sum to 1.

    >>> round(float(pdf(jnp.array([0.2, 0.8]), jnp.array([2.0, 3.0]))), 3)
    1.536
    """
    return jnp.exp(logpdf(x, alpha))


publish(__name__)
