"""``phlox.scipy.stats.multivariate_normal``: the normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from ... import lax, numpy as jnp
from ..._base.docstrings import docs_from
from ..._base.errors import ShapeError, UnsupportedError
from ..._base.public_names import publish
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_inexact
from ...typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def _log_density(function: str, x: Any, mean: Any, cov: Any) -> Any:
    x, mean, cov = promote_inexact(*check(f"multivariate_normal.{function}", x, mean, cov))
    log_two_pi = math.log(2 * math.pi)
    shape, cov_shape = type_of(mean).shape, type_of(cov).shape
    if not shape:
        return -0.5 * (jnp.square(x - mean) / cov + (log_two_pi + jnp.log(cov)))
    n = shape[-1]
    if cov_shape and (len(cov_shape) < 2 or cov_shape[-2:] != (n, n)):
        raise ShapeError(
            f"multivariate_normal: cov must be a number or matrices of {n} rows and columns, got {type_of(cov).short} "
            f"for the mean {type_of(mean).short}",
            shapes=[shape, cov_shape],
        )
    both = jnp.broadcast_shapes(type_of(x).shape, shape)
    y = jnp.broadcast_to(x, both) - jnp.broadcast_to(mean, both)
    if not cov_shape:
        return -0.5 * (jnp.sum(jnp.square(y), axis=-1) / cov + n * (log_two_pi + jnp.log(cov)))
    factor = lax.linalg.cholesky(cov)
    log_root = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    if len(cov_shape) == 2:
        # One matrix for all points: they are the rows of a single system, instead of a stack of systems.
        rows = jnp.reshape(y, (-1, n))
    else:
        stack = jnp.broadcast_shapes(both[:-1], cov_shape[:-2])
        factor = jnp.broadcast_to(factor, (*stack, n, n))
        rows = jnp.expand_dims(jnp.broadcast_to(y, (*stack, n)), -2)
    # With cov = L Lᵀ, the quadratic form is the squared length of L⁻¹ y. For vectors z and y in rows it is z Lᵀ = y.
    white = lax.linalg.triangular_solve(factor, rows, lower=True, transpose_a=True)
    white = jnp.reshape(white, both if len(cov_shape) == 2 else (*stack, n))
    return -0.5 * (jnp.sum(jnp.square(white), axis=-1) + n * log_two_pi) - log_root


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density of a multivariate normal distribution (as ``scipy.stats.multivariate_normal.pdf``).

    Args:
      x: vectors, real, in the last axis.
      mean: means, vectors in the last axis; or a number, by which all of `x` are numbers of one normal distribution.
      cov: covariance matrices of shape [..., n, n], positive definite; or a number, the variance of each element.

    Returns:
      An array of the shape of `x` without its last axis, broadcast with those of `mean` and `cov`, of the promoted
      floating dtype; nan where a matrix is not positive definite.

    Raises:
      ShapeError: the shapes do not fit each other.

    >>> round(float(pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 3)
    0.159
    """
    return jnp.exp(_log_density("pdf", x, mean, cov))


@docs_from(pdf)
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density of a multivariate normal distribution (as
    ``scipy.stats.multivariate_normal.logpdf``).

    Args:
      allow_singular: must be None; singular matrices are not supported.

    Raises:
      UnsupportedError: `allow_singular` is given.

    >>> round(float(logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 3)
    -1.838
    """
    if allow_singular is not None:
        raise UnsupportedError(
            f"multivariate_normal: allow_singular={allow_singular!r} is not there", instead="allow_singular=None"
        )
    return _log_density("logpdf", x, mean, cov)


publish(__name__)
