"""The polar decomposition by QDWH, an iteration of matrix products and factorizations alone.

See Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition",
SIAM J. Matrix Anal. Appl. 31 (2010).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .. import numpy as jnp
from .._api.jit import jit
from .._base.errors import ShapeError
from .._ir import dtypes
from .._ops.cholesky import cholesky
from .._ops.matrices import adjoint, conjugated, product
from .._ops.qr import qr
from .._ops.triangular import solve_triangular
from ..numpy._promote import check_one, type_of
from ._loops import fori_loop, while_loop
from ._structural import dynamic_slice

if TYPE_CHECKING:
    from ..typing import Array, ArrayLike

Coefficients = tuple[float, float, float]

#: Above this coefficient a step is done with QR, which loses less than Cholesky does.
_CUTOFF = 100


def _schedule(eps: float, limit: int) -> tuple[list[Coefficients], list[Coefficients]]:
    """The coefficients (a, b, c) of all steps: those of QR, and those of Cholesky.

    They are the best ones for singular values between l and 1, an interval that each step maps to a smaller one.
    """
    exact: list[Coefficients] = []
    quick: list[Coefficients] = []
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
    stack = jnp.zeros((type_of(u).shape[0] + n, n), u.dtype).at[: type_of(u).shape[0]].set(root * u)
    # The identity stands below the rows that there are.
    places = jnp.arange(n)
    stack = stack.at[rows + places, places].add(1)
    q = qr(stack, pivoting=False, full_matrices=False, use_magma=None)[0]
    top = _masked(q[: type_of(u).shape[0]], rows, columns)
    bottom = _masked(dynamic_slice(q, (rows, 0), (n, n)), columns, columns)
    return share * u + factor * product(top, adjoint(bottom))


def _cholesky_step(u: Any, size: Any, weights: Any) -> Any:
    n = type_of(u).shape[1]
    _, columns = size
    factor, c, share = weights
    one = jnp.eye(n, dtype=u.dtype)
    inner = c * product(adjoint(u), u) + one
    places = jnp.arange(n)
    inside = (places[:, None] < columns) & (places < columns)
    y = cholesky(jnp.where(inside, inner, one))
    z = conjugated(solve_triangular(y, u.T, conjugate_a=dtypes.kind(u.dtype) == "c"))
    z = adjoint(solve_triangular(y, z, transpose_a=True, conjugate_a=dtypes.kind(u.dtype) == "c"))
    return share * u + factor * z


def _masked(x: Any, rows: Any, columns: Any) -> Any:
    """`x` with zeros outside of the first `rows` and `columns`."""
    shape = type_of(x).shape
    return jnp.where((jnp.arange(shape[0])[:, None] < rows) & (jnp.arange(shape[1]) < columns), x, 0)


def _quick_weights(a: Any, b: Any, c: Any) -> Coefficients:
    return a - b / c, c, b / c


def _exact_weights(a: float, b: float, c: float) -> Coefficients:
    return (a - b / c) / c**0.5, c**0.5, b / c


def _iterate(x: Any, size: Any, limit: int, eps: float) -> tuple[Any, Any, Any, Any]:
    tolerance = (5.0 * eps) ** (1 / 3)
    one, inf = (jnp.linalg.norm(x, ord=kind) for kind in (1, jnp.inf))
    scale = jnp.where(one == 0, 1, 1 / (jnp.sqrt(one) * jnp.sqrt(inf)))
    u = x * scale.astype(x.dtype)
    exact, quick = _schedule(eps, limit)
    moving: Any = jnp.asarray(True)

    def step(u: Any, weights: Any) -> tuple[Any, Any]:
        new = _cholesky_step(u, size, weights)
        return new, jnp.linalg.norm(new - u) > tolerance

    if exact:
        table = jnp.array([_exact_weights(*each) for each in exact]).astype(x.dtype)
        u = fori_loop(0, len(exact), lambda k, u: _qr_step(u, size, table[k]), u)
    if quick:
        others = jnp.array([_quick_weights(*each) for each in quick]).astype(x.dtype)
        u, moving = fori_loop(0, len(quick), lambda k, state: step(state[0], others[k]), (u, moving))
    # Near the end the best coefficients are those of Halley's method.
    last = _quick_weights(3, 1, 3)
    count, u, moving = while_loop(
        lambda state: state[2] & (state[0] < limit),
        lambda state: (state[0] + 1, *step(state[1], last)),
        (len(exact) + len(quick), u, moving),
    )
    u = 1.5 * u - 0.5 * product(u, product(adjoint(u), u))  # one Newton-Schulz step, for the last digits
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
      max_iterations: the largest number of steps; None means 10.
      eps: how near to zero the smallest singular value may be, relatively; also how exact the result is to be. None
        means the machine precision of the dtype.
      dynamic_shape: numbers of rows and columns, where `x` is a smaller matrix in the corner of a larger one; None
        where it is all of it.

    Returns:
      The tuple (u, h, steps, converged): u of the shape of `x`, h square with its columns, an int32 and a bool.

    Raises:
      ShapeError: `x` is not one matrix, or has more columns than rows.

    >>> import phlox.numpy as jnp
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
