"""The polar decomposition by QDWH, an iteration of matrix products and factorizations.

See Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition",
SIAM J. Matrix Anal. Appl. 31 (2010).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._api.jit.jit import jit
from .._base.errors import ShapeError
from .._ir import dtypes
from .._operands.broadcasting import where
from .._operands.checks import check_one, type_of
from .._ops.elementwise import arithmetic as e
from .._ops.linalg.cholesky import cholesky
from .._ops.linalg.matrices import adjoint, conjugated, identity, product
from .._ops.linalg.qr import qr
from .._ops.linalg.triangular import solve_triangular
from ..typing import Array, ArrayLike
from ._conveniences import dynamic_index_in_dim, full
from ._loops import fori_loop, while_loop
from ._slices import dynamic_slice
from ._structural import broadcasted_iota, concatenate

Coefficients = tuple[float, float, float]

#: If the coefficient c is greater, a step uses QR, which is more accurate than Cholesky.
_CUTOFF = 100


def _schedule(eps: float, limit: int) -> tuple[list[Coefficients], list[Coefficients]]:
    """The coefficients (a, b, c) of the QR steps, and those of the Cholesky steps.

    They are optimal for singular values between l and 1; each step increases l.
    """
    exact: list[Coefficients] = []
    quick: list[Coefficients] = []
    # `low` bounds the singular values of the iterate from below. Each step maps [low, 1] closer to 1, with coefficients
    # that are optimal for this interval.
    low = eps
    while low + 5.0 * eps < 1 and len(exact) + len(quick) < limit:
        square = low * low
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1.0 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low = low * (a + b * square) / (1 + c * square)
        (exact if c > _CUTOFF else quick).append((a, b, c))
    return exact, quick


def _qr_step(u: Any, size: Any, weights: Any) -> Any:
    n = type_of(u).shape[1]
    rows, columns = size
    factor, root, share = weights
    # u (a + b uᴴu) (1 + c uᴴu)⁻¹ = (b / c) u + (a - b / c) / √c Q1 Q2ᴴ for the QR decomposition of √c u above 1, in
    # which no condition number is squared.
    stack = concatenate([root * u, full((n, n), 0, u.dtype)], 0)
    # The identity is placed below the valid rows.
    row_indices = broadcasted_iota(np.int32, (n,), 0)
    stack = stack.at[rows + row_indices, row_indices].add(1)
    q = qr(stack, pivoting=False, full_matrices=False, use_magma=None)[0]
    top = _masked(q[: type_of(u).shape[0]], rows, columns)
    bottom = _masked(dynamic_slice(q, (rows, 0), (n, n)), columns, columns)
    return share * u + factor * product(top, adjoint(bottom))


def _cholesky_step(u: Any, size: Any, weights: Any) -> Any:
    n = type_of(u).shape[1]
    _, columns = size
    factor, c, share = weights
    one = identity((n, n), u.dtype)
    # The same with 1 + c uᴴu = Wᴴ W: the second summand is (a - b / c) u W⁻¹ W⁻ᴴ.
    inner = c * product(adjoint(u), u) + one
    # Outside of the valid part is the identity, so that the factorization exists.
    y = cholesky(where(_inside((n, n), columns, columns), inner, one))
    z = conjugated(solve_triangular(y, u.T, conjugate_a=dtypes.kind(u.dtype) == "c"))
    z = adjoint(solve_triangular(y, z, transpose_a=True, conjugate_a=dtypes.kind(u.dtype) == "c"))
    return share * u + factor * z


def _masked(x: Any, rows: Any, columns: Any) -> Any:
    """`x` with zeros outside of the first `rows` and `columns`."""
    return where(_inside(type_of(x).shape, rows, columns), x, 0)


def _inside(shape: tuple[int, ...], rows: Any, columns: Any) -> Any:
    """Where a position of a matrix is in its first `rows` and `columns`."""
    return (broadcasted_iota(np.int32, shape, 0) < rows) & (broadcasted_iota(np.int32, shape, 1) < columns)


def _norm(x: Any) -> Any:
    return e.sqrt((abs(x) ** 2).sum())


def _quick_weights(a: Any, b: Any, c: Any) -> Coefficients:
    return a - b / c, c, b / c


def _exact_weights(a: float, b: float, c: float) -> Coefficients:
    return (a - b / c) / c**0.5, c**0.5, b / c


def _iterate(x: Any, size: Any, limit: int, eps: float) -> tuple[Any, Any, Any, Any]:
    # Convergence is cubic: after a step of this size the error is of the size of rounding.
    tolerance = (5.0 * eps) ** (1 / 3)
    # The 2-norm is at most the root of 1-norm times inf-norm: all singular values become at most 1.
    one, inf = (abs(x).sum(axis).max(initial=0) for axis in (0, 1))
    # A matrix of zeros stays as it is: 1 / 0 times 0 would be nan.
    scale = where(one == 0, 1, 1 / (e.sqrt(one) * e.sqrt(inf)))
    u = x * scale.astype(x.dtype)
    exact, quick = _schedule(eps, limit)
    moving: Any = np.asarray(True)

    def step(u: Any, weights: Any) -> tuple[Any, Any]:
        new = _cholesky_step(u, size, weights)
        return new, _norm(new - u) > tolerance

    if exact:
        table = np.array([_exact_weights(*each) for each in exact], x.dtype)
        u = fori_loop(0, len(exact), lambda k, u: _qr_step(u, size, dynamic_index_in_dim(table, k, keepdims=False)), u)
    if quick:
        others = np.array([_quick_weights(*each) for each in quick], x.dtype)

        def quick_step(k: Any, state: Any) -> tuple[Any, Any]:
            return step(state[0], dynamic_index_in_dim(others, k, keepdims=False))

        u, moving = fori_loop(0, len(quick), quick_step, (u, moving))
    # When l is close to 1, the optimal coefficients are those of Halley's method.
    last = _quick_weights(3, 1, 3)
    count, u, moving = while_loop(
        lambda state: state[2] & (state[0] < limit),
        lambda state: (state[0] + 1, *step(state[1], last)),
        (len(exact) + len(quick), u, moving),
    )
    u = 1.5 * u - 0.5 * product(u, product(adjoint(u), u))  # a Newton-Schulz step removes rounding errors
    h = product(adjoint(u), x)
    return u, (h + adjoint(h)) / 2, count, ~moving


@functools.partial(jit, static_argnames=("is_hermitian", "max_iterations", "eps"))
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition ``x = u h``, u with orthonormal columns, h positive semidefinite (as
    ``jax.lax.linalg.qdwh``).

    Args:
      x: matrix of floats or complex numbers, of full rank, with no more columns than rows.
      is_hermitian: without effect, as in JAX.
      max_iterations: largest number of iterations; None means 10.
      eps: how near to zero the smallest singular value may be, relatively; also how exact the result is to be. None
        means the machine precision of the dtype.
      dynamic_shape: numbers of rows and columns of the matrix if `x` is a larger array that has it in its upper left
        corner; None if the matrix is all of `x`.

    Returns:
      The tuple (u, h, steps, converged): u of the shape of `x`, h square with its columns, an int32 and a bool.

    Raises:
      ShapeError: `x` is not one matrix, or has more columns than rows.

    >>> u, h, _, converged = qdwh(jnp.array([[2.0, 0.0], [0.0, -3.0]]))
    >>> bool(converged), bool(jnp.allclose(u @ h, jnp.array([[2.0, 0.0], [0.0, -3.0]]), atol=1e-5))
    (True, True)
    """
    x = check_one("qdwh", x)
    shape = type_of(x).shape
    if len(shape) != 2 or shape[0] < shape[1]:
        raise ShapeError(f"qdwh: takes one matrix with no more columns than rows, got {type_of(x).short}")
    size = shape if dynamic_shape is None else dynamic_shape
    x = x if dynamic_shape is None else _masked(x, *size)
    precision = float(dtypes.finfo(type_of(x).dtype).eps) if eps is None else eps
    return _iterate(x, size, 10 if max_iterations is None else max_iterations, precision)
