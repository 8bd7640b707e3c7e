"""Covariances and correlation coefficients."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.errors import DtypeError, ObservationsError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, type_of
from ..._operands.promotion import common_dtype, promote_inexact
from ..._operands.short_floats import round_to, widen
from ..._ops.elementwise.arithmetic import complex_
from ...typing import Array, ArrayLike, DTypeLike
from .._creation.fill import full, zeros
from .._creation.from_data import astype
from .._elementwise.binary import divide, multiply, subtract
from .._elementwise.choose import clip
from .._elementwise.inexact import sqrt
from .._elementwise.unary import abs, conj, imag, is_kind, real
from .._indexing.reading import diagonal
from .._linalg.products import matmul
from .._manipulation.joining import concatenate
from .._manipulation.shapes import atleast_2d, squeeze, transpose
from . import reductions as r
from .moments import average


def _variables(function: str, x: Any, rowvar: bool) -> Any:
    """`x` as a matrix with one variable per row."""
    if type_of(x).ndim > 2:
        raise ShapeError(f"{function}: at most 2 axes, variables and observations, got {type_of(x).short}")
    return atleast_2d(x) if rowvar or type_of(x).ndim < 2 else transpose(x)


def _one_each(name: str, weights: Any, count: int) -> Any:
    weights = check_one("cov", weights)
    if type_of(weights).ndim != 1:
        raise ObservationsError(f"cov: {name} must be a vector, got {type_of(weights).short}")
    if type_of(weights).shape[0] != count:
        raise ObservationsError(f"cov: {type_of(weights).short} as {name} of {count} observations")
    return weights


@functools.partial(jit, inline=True, static_argnames=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables (as ``numpy.cov``).

    Args:
      m: observations: a vector for one variable, or a matrix with a variable in each row and an observation in each
        column; integers become floats.
      y: additional variables, in the same form.
      rowvar: True if rows of `m` and `y` are variables, False if columns are.
      bias: True divides by the number of observations N, False by N - 1.
      ddof: delta degrees of freedom: divides by N - `ddof`; None lets `bias` determine the divisor.
      fweights: frequency weights: vector of integers, the number of times each observation is repeated.
      aweights: weights of the observations: vector of numbers.
      dtype: float or complex dtype of the computation; by default the promoted dtype of `m` and `y`.

    Returns:
      A square matrix with a row and a column for each variable; an array of shape () for a single one.

    Raises:
      ShapeError: `m` or `y` has more than two axes.
      ObservationsError: `fweights` or `aweights` is not a vector with one element for each observation.
      DtypeError: `fweights` are not integers, or `dtype` is neither float nor complex.

    >>> jnp.cov(jnp.array([[0.0, 2.0], [1.0, 5.0]]))
    Array([[2., 4.],
           [4., 8.]], dtype=float32)
    """
    x = _observations("cov", m, y, rowvar, dtype)
    extra = () if aweights is None or dtype is not None else check("cov", aweights)
    result, _ = common_dtype(x, *extra)
    return round_to(_covariances(widen(x), bias, ddof, fweights, aweights, dtype), result)


def _observations(function: str, m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """All variables as rows of a matrix."""
    arrays = check(function, m) if y is None else check(function, m, y)
    arrays = promote_inexact(*arrays)
    if dtype is not None:
        dtype = dtypes.user_dtype(dtype, function)
        if not dtypes.is_inexact(dtype):
            raise DtypeError(
                f"{function}: dtype must be a subclass of float or complex, got {dtype.name}",
                instead="a float or complex dtype",
            )
        arrays = [astype(x, dtype) for x in arrays]
    # A `y` of one row is one variable, whatever `rowvar` is.
    rows = [_variables(function, x, rowvar or (i > 0 and type_of(x).shape[:1] == (1,))) for i, x in enumerate(arrays)]
    return rows[0] if len(rows) == 1 or type_of(rows[0]).shape[0] == 0 else concatenate(rows)


def _covariances(
    x: Any, bias: bool = False, ddof: int | None = None, fweights: Any = None, aweights: Any = None, dtype: Any = None
) -> Any:
    variables, count = type_of(x).shape
    if variables == 0:
        return zeros((0, 0))
    if ddof is None:
        ddof = 0 if bias else 1
    if count == 0:
        return full(() if variables == 1 else (variables, variables), np.nan, type_of(x).dtype)
    weights = None
    if fweights is not None:
        weights = _one_each("fweights", fweights, count)
        if not is_kind(weights, "iu"):
            raise DtypeError(f"cov: fweights must be integers, got {type_of(weights).short}", instead="aweights=...")
        weights = abs(weights)
    if aweights is not None:
        extra = widen(abs(_one_each("aweights", aweights, count)))
        weights = extra if weights is None else multiply(weights, extra)
    if dtype is not None and weights is not None:
        weights = astype(weights, type_of(x).dtype)
    middle, total = average(x, 1, weights, True)
    total = total[0]
    if weights is None:
        freedom: Any = count - ddof
    elif ddof == 0:
        freedom = total
    elif aweights is None:
        freedom = subtract(total, ddof)
    else:
        # NumPy's correction for weights of reliability: V1 - ddof V2 / V1, where V1 is the sum of all weights f a and
        # V2 the sum of f a².
        freedom = subtract(total, divide(multiply(ddof, r.sum(multiply(weights, extra))), total))
    centered = subtract(x, middle[:, None])
    other = centered if weights is None else multiply(centered, weights[None, :])
    return squeeze(divide(matmul(centered, conj(transpose(other))), freedom))


@functools.partial(jit, inline=True, static_argnames=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables: `cov` divided by the standard deviations (as ``numpy.corrcoef``).

    Args:
      x: observations: a vector for one variable, or a matrix with a variable in each row and an observation in each
        column; integers become floats.
      y: additional variables, in the same form.
      rowvar: True if rows of `x` and `y` are variables, False if columns are.
      dtype: float or complex dtype of the computation; by default the promoted dtype of `x` and `y`.

    Returns:
      A square matrix with a row and a column for each variable; an array of shape () for a single one. Elements lie
      between -1 and 1; for complex ones, both parts do.

    Raises:
      ShapeError: `x` or `y` has more than two axes.
      DtypeError: `dtype` is neither float nor complex.

    >>> jnp.corrcoef(jnp.array([[0.0, 2.0], [1.0, 5.0]])).round(3)
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    x = _observations("corrcoef", x, y, rowvar, dtype)
    return round_to(_correlations(_covariances(widen(x))), type_of(x).dtype)


def _correlations(c: Any) -> Any:
    """The correlations of variables with these covariances."""
    if not type_of(c).shape:
        # A correlation of 1, or nan if the variance is 0
        return divide(c, c)
    deviations = sqrt(real(diagonal(c)))
    # Two divisions, as the product of two small deviations may underflow.
    c = divide(divide(c, deviations[:, None]), deviations[None, :])
    if is_kind(c, "c"):
        # Rounding may lead out of [-1, 1]. Of complex numbers both parts are clipped, as in NumPy.
        return complex_(clip(real(c), -1, 1), clip(imag(c), -1, 1))
    return clip(c, -1, 1)
