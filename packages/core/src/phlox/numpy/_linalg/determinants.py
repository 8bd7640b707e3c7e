"""Determinants, and the logarithms of their absolute values."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ..._api.derivatives.custom import custom_jvp
from ..._api.jit.jit import jit
from ..._base.errors import OptionError, UnsupportedError
from ..._ir import dtypes
from ..._operands.checks import type_of
from ..._ops.elementwise.arithmetic import stop_gradient
from ..._ops.linalg.householder import geqrf
from ..._ops.linalg.lu import lu
from ..._ops.linalg.matrices import diagonal_of, take_rows
from ..._ops.linalg.triangular import solve_triangular
from ...typing import Array, ArrayLike
from .._creation.fill import arange, ones, ones_like, zeros_like
from .._elementwise.choose import where
from .._elementwise.floats import frexp, ldexp
from .._elementwise.inexact import exp, log
from .._elementwise.unary import abs, is_kind, isfinite, real, sign
from .._statistics.reductions import any, argmin, count_nonzero, max, prod, sum
from .decompositions import square_matrix
from .products import trace
from .solving import solve


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Any
    logabsdet: Any


def _parity(pivots: Any, more: Any = 0) -> Any:
    """1 where the number of row exchanges of LU plus `more` is even, else -1."""
    # LU exchanges row i with row pivots[i]; equal numbers are no exchange.
    moved = count_nonzero(pivots != arange(type_of(pivots).shape[-1], dtype=np.int32), axis=-1)
    return 1 - 2 * ((moved + more) % 2)


def _small(a: Any) -> Any:
    """The determinant of matrices with one, two or three rows, by explicit formulas."""
    n = type_of(a).shape[-1]
    if n == 1:
        return a[..., 0, 0]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    turns = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    falling = [a[..., 0, i] * a[..., 1, j] * a[..., 2, k] for i, j, k in turns]
    rising = [a[..., 0, k] * a[..., 1, j] * a[..., 2, i] for i, j, k in turns]
    return falling[0] + falling[1] + falling[2] - rising[0] - rising[1] - rising[2]


def _log_tangents(x: Any, dlog: Any, sign_: Any) -> tuple[Any, Any]:
    """Tangents of sign and logarithm; for a complex determinant the imaginary part of `dlog` is that of the phase."""
    if not is_kind(x, "c"):
        return zeros_like(sign_), dlog
    return (dlog - real(dlog).astype(type_of(dlog).dtype)) * sign_, real(dlog)


def _scale(a: Any) -> tuple[Any, Any]:
    """A power of two for each matrix, and its exponent. Of matrices that are multiplied by it, the products of two
    elements are in range. Matrices of which they are so keep their elements: the power is 1."""
    largest = max(abs(a), axis=(-2, -1), keepdims=True)
    bound = dtypes.finfo(type_of(largest).dtype).maxexp // 4
    exponent = frexp(largest)[1]
    exponent = where(abs(exponent) > bound, -exponent, 0)
    return ldexp(ones_like(largest), exponent), exponent[..., 0, 0]


@custom_jvp
def _slogdet_small(a: Any) -> tuple[Any, Any]:
    if type_of(a).shape[-1] == 1:
        return sign(a[..., 0, 0]), log(abs(a[..., 0, 0]))
    scale, exponent = _scale(a)
    det = _small(a * scale)
    logs = log(abs(det))
    return sign(det), logs - exponent.astype(type_of(logs).dtype) * (2 * math.log(2))


@_slogdet_small.defjvp
def _slogdet_small_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (dx,) = primals, tangents
    out = _slogdet_small(x)
    if type_of(x).shape[-1] == 1:
        dlog = dx[..., 0, 0] / x[..., 0, 0]
    else:
        scale, _ = _scale(x)
        x, dx = x * scale, dx * scale
        change = dx[..., 0, 0] * x[..., 1, 1] - dx[..., 0, 1] * x[..., 1, 0]
        change = change - dx[..., 1, 0] * x[..., 0, 1] + dx[..., 1, 1] * x[..., 0, 0]
        dlog = change / _small(x)
    return out, _log_tangents(x, dlog, out[0])


@custom_jvp
def _slogdet_lu(a: Any) -> tuple[Any, Any]:
    factors, pivots, _ = lu(a)
    diagonal = diagonal_of(factors)
    dtype = type_of(a).dtype
    logs = log(abs(diagonal))
    # Tested on the logarithms, because XLA would read the diagonal twice.
    singular = any(logs == -np.inf, axis=-1)
    if is_kind(a, "c"):
        signs = prod(sign(diagonal), axis=-1) * _parity(pivots).astype(dtype)
    else:  # counting negative elements is cheaper than multiplying signs
        signs = _parity(pivots, count_nonzero(diagonal < 0, axis=-1)).astype(dtype)
    total = sum(logs, axis=-1)
    return where(singular, dtype.type(0), signs), where(singular, type_of(total).dtype.type(-np.inf), total)


@custom_jvp
def _slogdet_qr(a: Any) -> tuple[Any, Any]:
    if is_kind(a, "c"):
        raise UnsupportedError("slogdet: method='qr' of complex matrices", instead="method='lu'")
    reflections, taus = geqrf(a)
    diagonal = diagonal_of(reflections)
    # The determinant of each Householder reflection with tau != 0 is -1.
    turned = prod(where(taus[..., : type_of(a).shape[-1] - 1] != 0, -1, 1), axis=-1)
    signs = prod(sign(diagonal), axis=-1)
    return signs * turned.astype(type_of(signs).dtype), sum(log(abs(diagonal)), axis=-1)


def _slogdet_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (dx,) = primals, tangents
    out = slogdet(x)
    # Jacobi's formula: d log det x = trace(x⁻¹ dx)
    return (out.sign, out.logabsdet), _log_tangents(x, trace(solve(x, dx), axis1=-1, axis2=-2), out.sign)


_slogdet_lu.defjvp(_slogdet_jvp)
_slogdet_qr.defjvp(_slogdet_jvp)


@functools.partial(jit, static_argnames=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants (as ``numpy.linalg.slogdet``).

    Args:
      a: stack of square matrices, ``(..., n, n)``.
      method: factorization that is used: 'lu' (default) or 'qr'.

    Returns:
      A `SlogdetResult` of two arrays ``(...,)``: `sign`, of the dtype of `a` (a complex number of absolute value 1 for
      complex matrices), and the float `logabsdet`. A singular matrix has sign 0 and logarithm -inf.
      Integers become floats.

    Raises:
      ShapeError: the matrices are not square.
      OptionError: `method` is not one of the listed names.
      UnsupportedError: 'qr' of complex matrices.

    >>> jnp.linalg.slogdet(-jnp.eye(3))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    a = square_matrix("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise OptionError(f"slogdet: there is no method {method!r}", instead="'lu' or 'qr'")
    if method == "qr":
        return SlogdetResult(*_slogdet_qr(a))
    return SlogdetResult(*(_slogdet_small if type_of(a).shape[-1] in (1, 2) else _slogdet_lu)(a))


# --- the determinant itself -----------------------------------------------------------------------------


@custom_jvp
def _det(a: Any) -> Any:
    out = slogdet(a)
    # By logarithms, as a part of the product of the diagonal may overflow where the determinant does not.
    return out.sign * exp(out.logabsdet).astype(type_of(out.sign).dtype)


@_det.defjvp
def _det_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (dx,) = primals, tangents
    det, solved = _times_cofactors(x, dx)
    return det, trace(solved, axis1=-1, axis2=-2)


def _times_cofactors(a: Any, b: Any) -> tuple[Any, Any]:
    """det(a), and det(a) a⁻¹ b, finite also where one singular value of `a` is zero.

    a⁻¹ divides by the least diagonal element of U, which may be zero; its product with the determinant does not.
    """
    n = type_of(a).shape[-1]
    if n < 2:
        return (a[..., 0, 0] if n else ones(type_of(a).shape[:-2], type_of(a).dtype)), b
    factors, pivots, order = lu(a)
    dtype = type_of(a).dtype
    diagonal = diagonal_of(factors)
    is_least = arange(n) == argmin(abs(diagonal), axis=-1, keepdims=True)
    # det divided by the least element of the diagonal is the product of the others.
    others = prod(where(is_least, 1, diagonal), axis=-1) * _parity(pivots).astype(dtype)
    det = others * sum(where(is_least, diagonal, 0), axis=-1)
    # The result does not depend on the number that takes its place.
    r = stop_gradient(max(abs(diagonal), axis=-1)[..., None, None]).astype(dtype)
    factors = where(is_least[..., None] & (arange(n)[:, None] == arange(n)), r, factors)
    # Where the rank is less than n - 1, the cofactors are zero.
    probe = solve_triangular(factors, ones((*type_of(b).shape[:-1], 1), dtype), lower=False)
    deficient = any(~isfinite(probe), axis=(-2, -1), keepdims=True)
    x = where(deficient, zeros_like(b), b)
    x = solve_triangular(factors, take_rows(x, order), unit_diagonal=True)
    # By the formula of Sherman and Morrison, with V for U after the replacement and e for the unit vector of its row:
    # det U⁻¹ x = V⁻¹ (det x + (others r - det) e q x), where q = r eᵀ V⁻¹.
    q = solve_triangular(factors, is_least[..., None] * r, lower=False, transpose_a=True)
    qx = sum(q * x, axis=-2, keepdims=True)
    change = others[..., None, None] * r - det[..., None, None]
    x = det[..., None, None] * x + where(is_least[..., None], change * qx, 0)
    x = solve_triangular(factors, x, lower=False)
    return det, where(deficient, zeros_like(x), x)


@jit
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices (as ``numpy.linalg.det``).

    Args:
      a: stack of square matrices, ``(..., n, n)``.

    Returns:
      An array ``(...,)`` of the dtype of `a`; integers become floats.

    Raises:
      ShapeError: the matrices are not square.

    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    a = square_matrix("det", a)
    return _small(a) if type_of(a).shape[-1] in (2, 3) else _det(a)
