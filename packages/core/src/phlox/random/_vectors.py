"""Random vectors and matrices: multivariate_normal, orthogonal."""

from __future__ import annotations

import functools
from typing import Any

from .. import numpy as jnp
from .._api.devices.out_sharding import OutSharding, takes_out_sharding
from .._api.jit.jit import jit
from .._base.errors import OptionError, ShapeError
from .._ir import dtypes
from .._operands.checks import as_shape, check, integer, type_of
from .._operands.promotion import promote_inexact, to_dtype
from ..typing import Array, ArrayLike, DTypeLike, Key, Shape
from ._keys import check_key
from ._samplers import _float, normal

_METHODS = ("cholesky", "eigh", "svd")


def _factor(cov: Any, method: str) -> Any:
    """A matrix F with F Fᵀ = `cov`."""
    if method == "cholesky":
        return jnp.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
    else:
        vectors, values, _ = jnp.linalg.svd(cov)
    return vectors * jnp.sqrt(values[..., None, :])


@functools.partial(jit, static_argnums=(3, 4, 5))
def _multivariate_normal(key: Any, mean: Any, cov: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    drawn = normal(key, (*shape, type_of(mean).shape[-1]), dtype)
    moved = jnp.einsum("...ij,...j->...i", _factor(cov, method), drawn)
    return jnp.add(*jnp.broadcast_arrays(mean, moved))


@takes_out_sharding
def multivariate_normal(
    key: Key,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random vectors of the normal distribution with mean `mean` and covariance matrix `cov`.

    Args:
      key: one PRNG key, new-style or old-style.
      mean: mean vectors, of shape [..., n]; leading axes are independent distributions.
      cov: covariance matrices, of shape [..., n, n].
      shape: shape of the result without its last axis; None means the broadcast shape of the leading axes of the
        parameters.
      dtype: floating dtype of the normal samples; None means the promoted dtype of the parameters.
      method: decomposition of `cov`: 'cholesky', for positive definite matrices only; 'eigh' or 'svd', for singular
        ones too.

    Returns:
      An array of shape ``(*shape, n)``, of the dtype promoted from `dtype` and those of the parameters.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is not floating.
      ShapeError: `key` is an array of several keys, or shapes are incompatible.
      OptionError: `method` is unknown.

    >>> from phlox import random
    >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2), (5,)).shape
    (5, 2)
    """
    key = check_key("multivariate_normal", key)
    mean, cov = promote_inexact(*check("multivariate_normal", mean, cov))
    if method not in _METHODS:
        raise OptionError(f"multivariate_normal: unknown method {method!r}", instead=f"one of {_METHODS}")
    centre, spread = type_of(mean), type_of(cov)
    dtype = _float("multivariate_normal", centre.dtype if dtype is None else dtype)
    if not centre.ndim or spread.ndim < 2 or spread.shape[-2:] != (centre.shape[-1],) * 2:
        raise ShapeError(
            f"multivariate_normal: a mean {centre.short} takes covariances of shape [..., n, n], got {spread.short}",
            instead="vectors of length n and matrices of n times n",
            shapes=[centre.shape, spread.shape],
        )
    batch = jnp.broadcast_shapes(centre.shape[:-1], spread.shape[:-2])
    out_shape = batch if shape is None else as_shape(shape, "multivariate_normal")
    if jnp.broadcast_shapes(batch, out_shape) != out_shape:
        raise ShapeError(f"multivariate_normal: parameters of shape {batch} do not broadcast to shape {out_shape}")
    return _multivariate_normal(key, mean, cov, out_shape, dtype, method)


@functools.partial(jit, static_argnums=(1, 2, 3, 4))
def _orthogonal(key: Any, n: int, m: int, shape: tuple[int, ...], dtype: Any) -> Any:
    wide = dtypes.float32 if dtypes.bits(dtype) < 32 else dtype  # there are no routines for narrow floats
    q, r = jnp.linalg.qr(normal(key, (*shape, max(n, m), min(n, m)), wide))
    # With positive diagonal of R the factor is unique, so that it is uniformly distributed.
    q = q * jnp.expand_dims(jnp.sign(jnp.linalg.diagonal(r)), -2)
    return to_dtype(q.mT if n < m else q, dtype)


@takes_out_sharding
def orthogonal(
    key: Key,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Random n × m matrices with orthonormal columns (rows, if m > n), uniformly distributed over all such matrices.

    Args:
      key: one PRNG key, new-style or old-style.
      n, m: numbers of rows and columns; `m` is equal to `n` by default.
      shape: shape of the array of matrices.
      dtype: floating, float32 by default (float64 in x64 mode), narrower ones rounded from it; or complex, which gives
        unitary matrices.

    Returns:
      An array of shape ``(*shape, n, m)`` and this dtype.

    Raises:
      DtypeError: `key` is not a PRNG key, or `dtype` is neither floating nor complex.
      ShapeError: `key` is an array of several keys.

    >>> from phlox import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
    True
    """
    key = check_key("orthogonal", key)
    dtype = dtypes.float_dtype(dtype, "orthogonal")
    rows = integer("orthogonal", "n", n)
    columns = rows if m is None else integer("orthogonal", "m", m)
    return _orthogonal(key, rows, columns, as_shape(shape, "orthogonal"), dtype)
