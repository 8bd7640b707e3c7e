"""Systems of linear equations: solve, inverses, least squares, powers."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import Any

from ..._api.derivatives.custom import custom_jvp
from ..._api.derivatives.differentiate import jvp
from ..._api.jit.jit import jit
from ..._base.errors import OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import max_dim, value_of
from ..._operands.checks import check, check_one, check_square, integer, matrix_shape, type_of
from ..._operands.promotion import promote_inexact
from ..._ops.elementwise.arithmetic import stop_gradient
from ..._ops.linalg.lu import lu, lu_solve
from ..._ops.linalg.matrices import adjoint, hermitian_part, product, swapped
from ...typing import Array, ArrayLike
from .._creation.fill import eye, zeros
from .._creation.from_data import array, asarray
from .._elementwise.choose import where
from .._elementwise.unary import conj, real
from .._manipulation.broadcasting import broadcast_shapes, broadcast_to
from .._manipulation.shapes import expand_dims, moveaxis, ravel, reshape
from .._statistics.reductions import any, max, sum
from .decompositions import svd
from .products import matmul


def _solve_square(a: Any, b: Any) -> Any:
    """The solution of ``a x = b``, as `custom_linear_solve`, so that derivatives reuse the LU factors."""
    from ...lax._solves import custom_linear_solve  # here, so that `import phlox.numpy.linalg` does not import lax

    factors, _, order = lu(stop_gradient(a))
    return custom_linear_solve(
        lambda x: product(a, x),
        b,
        solve=lambda _, b: lu_solve(factors, order, b),
        transpose_solve=lambda _, b: lu_solve(factors, order, b, trans=1),
    )


@jit
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solution x of ``a @ x = b`` (as ``numpy.linalg.solve``).

    Args:
      a: array of shape (..., m, m): a stack of square matrices; integers become floats.
      b: a vector of m elements, or an array of shape (..., m, n); stacks are broadcast.

    Returns:
      An array of floats or complex numbers, of shape (..., m) for a vector `b`, else (..., m, n). For singular matrices
      it is not finite.

    Raises:
      ShapeError: matrices are not square, or the shape of `b` does not match.

    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    a, b = promote_inexact(*check("solve", a, b))
    rows, columns = matrix_shape("solve", a)
    left, right = type_of(a).shape, type_of(b).shape
    vector = len(right) == 1
    if not right or rows != columns or right[-1 if vector else -2] != rows:
        raise ShapeError(
            f"solve: {type_of(a).short} and {type_of(b).short} do not fit",
            instead="a of shape [..., m, m], and b of shape [m] or [..., m, n]; b[..., None] makes columns of vectors",
            shapes=[left, right],
        )
    if vector:
        b = b[:, None]
    elif len(left) == 2 < len(right):
        # One matrix for a stack of right hand sides: solve once, with these side by side.
        moved = type_of(moveaxis(b, -2, 0)).shape
        x = _solve_square(a, reshape(moveaxis(b, -2, 0), (rows, math.prod(moved[1:]))))
        return moveaxis(reshape(x, moved), 0, -2)
    stack = broadcast_shapes(left[:-2], type_of(b).shape[:-2])
    a, b = (broadcast_to(x, (*stack, *type_of(x).shape[-2:])) for x in (a, b))
    x = _solve_square(a, b)
    return x[..., 0] if vector else x


@jit
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices (as ``numpy.linalg.inv``); `solve` is more accurate than a product with them.

    Args:
      a: array of shape (..., m, m): a stack of square matrices; integers become floats.

    Returns:
      An array of the shape of `a`, of floats or complex numbers; not finite for singular matrices.

    Raises:
      ShapeError: matrices are not square.

    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = check_one("inv", a)
    rows = check_square("inv", a)
    # LU and two triangular solves, for which reverse mode reuses the factors
    return solve(a, broadcast_to(eye(rows, dtype=type_of(a).dtype), type_of(a).shape))


def _one_of(function: str, first: str, x: Any, second: str, y: Any) -> Any:
    """The value of an option that has two names, of which at most one may be used."""
    if x is not None and y is not None:
        raise OptionError(f"{function}: only one of {first} and {second} may be specified", instead=f"{first} alone")
    return y if x is None else x


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The Moore-Penrose pseudo-inverses of matrices (as ``numpy.linalg.pinv``).

    Args:
      a: array of shape (..., m, n): a stack of matrices; integers become floats.
      rtol: relative tolerance: singular values up to this fraction of the largest one are treated as zero; a number, or
        an array with one for each matrix; None is ``10 * max(m, n) * eps``.
      hermitian: True promises that the matrices are Hermitian, which allows a faster method.
      rcond: another name for `rtol`.

    Returns:
      An array of floats or complex numbers, of shape (..., n, m).

    Raises:
      OptionError: both `rtol` and `rcond` are given.
      ShapeError: `a` has fewer than two axes.

    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0], [0.0, 4.0]])).round(3) + 0
    Array([[0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.25]], dtype=float32)
    """
    a, limit = check_one("pinv", a), _one_of("pinv", "rtol", rtol, "rcond", rcond)
    if limit is not None:
        # A stack of tolerances for one matrix gives a stack of inverses.
        stack = broadcast_shapes(type_of(a).shape[:-2], type_of(check_one("pinv", limit)).shape)
        a = broadcast_to(a, (*stack, *matrix_shape("pinv", a)))
    return _pinv(a, limit, hermitian)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
@functools.partial(jit, static_argnames=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    (a,) = promote_inexact(*check("pinv", a))
    m, n = matrix_shape("pinv", a)
    aval = type_of(a)
    if m == 0 or n == 0:
        return zeros((*aval.shape[:-2], n, m), aval.dtype)
    # JAX's default; NumPy's is 1e-15 for all dtypes.
    if rtol is None:
        rtol = 10.0 * value_of(max_dim(m, n)) * dtypes.finfo(aval.dtype).eps
    # With the factors of the conjugate, the pseudo-inverse needs their transposes without conjugation.
    u, s, vh = svd(conj(a), full_matrices=False, hermitian=hermitian)
    rtol = asarray(rtol)[..., None]
    rtol = rtol.reshape((1,) * (type_of(s).ndim - rtol.ndim) + rtol.shape)
    # Division by infinity makes small singular values 0.
    inverse = where(s > rtol * s[..., :1], s, math.inf).astype(aval.dtype)
    return product(swapped(vh), swapped(u) / inverse[..., None]).astype(aval.dtype)


@_pinv.defjvp
def _pinv_jvp(hermitian: bool, primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    """dP = -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P, by Golub and Pereyra (1973)."""
    (a, rtol), (da, _) = primals, tangents
    p = _pinv(a, rtol, hermitian)
    if hermitian:
        a, da = hermitian_part(a), hermitian_part(da)
    back, p_adjoint = adjoint(da), adjoint(p)
    m, n = matrix_shape("pinv", a)
    if m >= n:  # the order of products with smaller intermediate results
        s, t = product(product(p, p_adjoint), back), product(product(back, p_adjoint), p)
        return p, -product(product(p, da), p) + s - product(product(s, a), p) + t - product(product(p, a), t)
    s, t = product(p, product(p_adjoint, back)), product(back, product(p_adjoint, p))
    return p, -product(p, product(da, p)) + s - product(s, product(a, p)) + t - product(p, product(a, t))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The least-squares solution x of ``a @ x = b`` (as ``numpy.linalg.lstsq``).

    Args:
      a: matrix of shape (m, n); integers become floats.
      b: vector of m elements, or a matrix of shape (m, k), whose columns are solved for independently.
      rcond: singular values below this fraction of the largest one are treated as zero; None is ``max(m, n) * eps``;
        for a negative number eps is used.
      numpy_resid: True returns empty residuals where NumPy does, which depends on the rank and is not possible under
        `jit`.

    Returns:
      A tuple (x, residuals, rank, singular values): x of shape (n,) or (n, k), the residuals as sums of squares.

    Raises:
      ShapeError: `a` is not a matrix, or the shape of `b` does not match.

    >>> x, _, rank, _ = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> round(float(x[0]), 4), int(rank)
    (2.0, 1)
    """
    a, b = check("lstsq", a, b)
    return (_lstsq if numpy_resid else _jitted_lstsq)(a, b, rcond, numpy_resid)


def _lstsq(a: Any, b: Any, rcond: Any, numpy_resid: bool) -> tuple[Any, Any, Any, Any]:
    a, b = promote_inexact(a, b)
    if type_of(a).ndim != 2 or type_of(b).ndim not in (1, 2) or type_of(a).shape[0] != type_of(b).shape[0]:
        raise ShapeError(
            f"lstsq: {type_of(a).short} and {type_of(b).short} do not fit",
            instead="a of shape [m, n], and b of shape [m] or [m, k]",
            shapes=[type_of(a).shape, type_of(b).shape],
        )
    vector = type_of(b).ndim == 1
    columns = b[:, None] if vector else asarray(b)
    (m, n), dtype = type_of(a).shape, type_of(a).dtype
    if m == 0 or n == 0:
        s, rank, x = zeros(0, dtype), array(0, int), zeros((n, type_of(columns).shape[1]), dtype)
    else:
        eps = dtypes.finfo(dtype).eps
        # As in NumPy, a negative rcond stands for the machine precision.
        limit = float(eps) * value_of(max_dim(m, n)) if rcond is None else where(rcond < 0, eps, rcond)
        x, rank, s = _minimizer(a, columns, limit)
    # NumPy returns no residuals here. Their shape depends on the rank, so that `lstsq` does not jit this case.
    if numpy_resid and (rank < n or m <= n):
        residuals = asarray([])
    else:
        # The residual is a difference of nearly equal numbers, for which reduced precision would leave no digits.
        rest = columns - matmul(a, x, precision="highest")
        residuals = sum(real(rest * conj(rest)), axis=0)
    return ravel(x) if vector else x, residuals, rank, s


def _truncated(a: Any, b: Any, limit: Any) -> tuple[Any, Any, Any]:
    """The least-squares solution of ``a x = b`` with the smallest norm, the rank and the singular values of `a`."""
    u, s, vh = svd(a, full_matrices=False)
    is_significant = (s > 0) & (s >= asarray(limit, type_of(s).dtype) * s[0])
    inverse = where(is_significant, 1 / where(is_significant, s, 1).astype(type_of(a).dtype), 0)
    return product(adjoint(vh), inverse[:, None] * product(adjoint(u), b)), sum(is_significant), s


_minimizer = custom_jvp(_truncated)


@_minimizer.defjvp
def _minimizer_jvp(primals: tuple[Any, Any, Any], tangents: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """The derivative of the pseudo-inverse P b; through the decomposition where `limit` cuts what is above zero."""
    # `limit` may be traced, but nothing depends on it smoothly.
    (a, b, limit), (da, db, _) = primals, tangents
    x, rank, s = _minimizer(a, b, limit)
    p, back = _pinv(a, limit, False), adjoint(da)
    _, ds = jvp(lambda a: svd(a, compute_uv=False), (a,), (da,))
    normal = product(adjoint(p), x)
    dx = product(p, db - product(da, x) + product(adjoint(p), product(back, b - product(a, x))))
    dx = dx + product(back, normal) - product(p, product(a, product(back, normal)))
    _, through = jvp(lambda a, b: _truncated(a, b, limit)[0], (a, b), (da, db))
    # Singular values below this are rounding errors of 0, and not cut off by the limit.
    zero = value_of(max_dim(*type_of(a).shape)) * float(dtypes.finfo(type_of(s).dtype).eps)
    cut = (s > zero * s[0]) & (s < asarray(limit, type_of(s).dtype) * s[0])
    dx = where(cut.any(), through, dx)
    return (x, rank, s), (dx, zeros(type_of(rank).shape, dtypes.float0), ds)


_jitted_lstsq = functools.partial(jit, static_argnames=("numpy_resid",))(_lstsq)


@functools.partial(jit, static_argnames=("hermitian",))
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The rank of matrices: the number of singular values that are not zero (as ``numpy.linalg.matrix_rank``).

    Args:
      M: array of shape (..., m, n): a stack of matrices. A vector has rank 1 unless all its elements are 0.
      rtol: absolute tolerance: singular values up to it are treated as zero; a number, or an array with one for each
        matrix; None is ``max(m, n) * eps`` times the largest singular value.
      hermitian: True promises that the matrices are Hermitian, which allows a faster method.
      tol: another name for `rtol`.

    Returns:
      An array of integers of shape (...).

    Raises:
      OptionError: both `rtol` and `tol` are given.

    >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    (m,) = promote_inexact(*check("matrix_rank", M))
    limit = _one_of("matrix_rank", "rtol", rtol, "tol", tol)
    if type_of(m).ndim < 2:
        return any(m != 0).astype(dtypes.int32)
    s = svd(m, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if limit is None:
        dtype = type_of(s).dtype
        limit = max(s, -1) * asarray(value_of(max_dim(*type_of(m).shape[-2:])), dtype) * dtypes.finfo(dtype).eps
    limit = check_one("matrix_rank", limit)
    return sum(s > expand_dims(limit, type_of(limit).ndim), axis=-1)


@functools.partial(jit, static_argnames=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices raised to an integer power (as ``numpy.linalg.matrix_power``).

    Args:
      a: array of shape (..., m, m): a stack of square matrices.
      n: exponent, an integer, not traced; 0 gives identity matrices, negative exponents are powers of the inverse.

    Returns:
      An array of the shape and dtype of `a`; of floats for negative powers of integers.

    Raises:
      ShapeError: matrices are not square.
      ArgumentError: `n` is not an integer.

    >>> jnp.linalg.matrix_power(jnp.array([[1.0, 1.0], [0.0, 1.0]]), 5)
    Array([[1., 5.],
           [0., 1.]], dtype=float32)
    """
    a = check_one("matrix_power", a)
    rows = check_square("matrix_power", a)
    power = integer("matrix_power", "n", n)
    if power == 0:
        return broadcast_to(eye(rows, dtype=type_of(a).dtype), type_of(a).shape)
    square = inv(a) if power < 0 else a
    power = builtins.abs(power)
    result: Any = None
    if power == 3:  # (a a) a, as NumPy does
        return matmul(matmul(square, square), square)
    while True:
        power, odd = divmod(power, 2)
        if odd:
            result = square if result is None else matmul(result, square)
        if not power:
            return result
        square = matmul(square, square)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a map from its last axes to the first `ind` ones (as ``numpy.linalg.tensorinv``).

    Args:
      a: array in which the product of the lengths of the first `ind` axes equals that of the other axes.
      ind: number of leading axes, not traced.

    Returns:
      An array of floats or complex numbers, with the last axes of `a` first, then the others.

    Raises:
      OptionError: `ind` is not positive.
      ShapeError: the product of the lengths of the first `ind` axes differs from that of the others.

    >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    a = check_one("tensorinv", a)
    split = integer("tensorinv", "ind", ind)
    if split <= 0:
        raise OptionError(f"tensorinv: ind must be a positive integer, got {ind}")
    shape = type_of(a).shape
    first, second = shape[:split], shape[split:]
    if math.prod(first) != math.prod(second):
        raise ShapeError(f"tensorinv: {type_of(a).short} is not square when cut after {split} axes", shapes=[shape])
    square = reshape(a, (math.prod(first), math.prod(second)))
    return reshape(inv(square), (*second, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The solution x of ``tensordot(a, x, x.ndim) = b`` (as ``numpy.linalg.tensorsolve``).

    Args:
      a: array of shape ``b.shape + x.shape``, where x has as many elements as `b`.
      b: array of any shape.
      axes: axes of `a` that are moved to its end before solving; None moves no axes.

    Returns:
      An array of floats or complex numbers, of the shape of the last axes of `a`.

    Raises:
      ShapeError: `a` does not begin with the shape of `b`, or its remaining axes do not have as many elements as `b`.

    >>> jnp.linalg.tensorsolve(jnp.eye(6).reshape(2, 3, 6), jnp.ones((2, 3))).shape
    (6,)
    """
    a, b = check("tensorsolve", a, b)
    if axes is not None:
        a = moveaxis(a, tuple(axes), tuple(range(-len(axes), 0)))
    shape, right_shape = type_of(a).shape, type_of(b).shape
    out = shape[len(right_shape) :]
    if shape[: len(right_shape)] != right_shape or math.prod(out) != math.prod(right_shape):
        raise ShapeError(
            f"tensorsolve: {type_of(a).short} does not begin with the shape of {type_of(b).short}, "
            "or does not go on with as many elements",
            shapes=[shape, right_shape],
        )
    return reshape(solve(reshape(a, (math.prod(right_shape), math.prod(out))), ravel(b)), out)
