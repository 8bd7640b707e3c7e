"""``phlox.experimental.sparse.linalg``: systems of equations and largest eigenvalues of sparse matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.debug.callbacks import pure_callback
from ..._api.jit.programs import ShapeDtypeStruct
from ..._base.errors import DtypeError, ShapeError
from ..._base.public_names import publish
from ..._operands.checks import check
from ..._operands.promotion import promote_inexact
from ...typing import Array
from ._base import is_sparse
from ._plain import CSR

__all__ = ["lobpcg_standard", "spsolve"]


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """The solution x of A x = b, for a matrix A stored by rows. SciPy computes it on the host.

    Args:
      data: stored elements of A.
      indices: their columns.
      indptr: where each row starts among them.
      b: the right-hand side, one vector.
      tol: not used.
      reorder: order of elimination: 0 as given, otherwise one that keeps the factors sparse.

    Returns:
      The vector x. It is differentiable by `data` and `b`.

    Raises:
      ShapeError: `b` is not a vector.

    Source: scipy.sparse.linalg.spsolve.

    >>> spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    data, b = promote_inexact(*check("spsolve", data, b))
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    if b.ndim != 1:
        raise ShapeError(
            f"spsolve: b has shape {b.shape}", instead="a vector; phlox.vmap for several", shapes=[b.shape]
        )
    matrix = CSR((data, indices, indptr), shape=(b.size, b.size))

    def on_host(data: Any, indices: Any, indptr: Any, b: Any, *, transposed: bool) -> Any:
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import spsolve

        host_matrix = csr_matrix(tuple(map(np.asarray, (data, indices, indptr))), shape=(len(b), len(b)))
        order = "COLAMD" if reorder else "NATURAL"
        solution = spsolve(host_matrix.T.tocsc() if transposed else host_matrix.tocsc(), np.asarray(b), order)
        return np.asarray(solution, b.dtype)

    def solve(_: Any, b: Any, transposed: bool = False) -> Any:
        out, called = ShapeDtypeStruct(b.shape, b.dtype), functools.partial(on_host, transposed=transposed)
        return pure_callback(called, out, data, indices, indptr, b, vmap_method="sequential")

    # Derivatives of all orders, in both modes, are those of the products with the matrix.
    return lax.custom_linear_solve(
        lambda x: matrix @ x, b, solve, transpose_solve=functools.partial(solve, transposed=True)
    )


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: float | Array | None = None) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric or Hermitian matrix, by products with it alone.

    Args:
      A: matrix of shape (n, n), sparse or not; or a function that multiplies an array of shape (n, j) by it.
      X: array of shape (n, k) with linearly independent columns, where the search begins; 5 k < n.
      m: the largest number of iterations.
      tol: a pair is converged when ``norm(A u - theta u)`` is below ``tol * 10 * n * (abs(theta) + norm(A u))``. None
        stands for the machine epsilon of the dtype.

    Returns:
      (the k eigenvalues, largest first; their eigenvectors as columns; the number of iterations).

    Raises:
      DtypeError: `A` and `X` have different dtypes.
      ShapeError: their shapes do not go together, or k is 0 or too large.

    Source: Knyazev, Toward the optimal preconditioned eigensolver: LOBPCG, SIAM J. Sci. Comput. 23 (2001).

    >>> A = jnp.diag(jnp.arange(1.0, 13.0))
    >>> theta, U, count = lobpcg_standard(A, jnp.ones((12, 1)))
    >>> round(float(theta[0]), 3)
    12.0
    """
    X = jnp.asarray(X)
    product: Callable[[Any], Any] = A if callable(A) and not is_sparse(A) else lambda x: A @ x
    _check_search(A, X)
    n, k = X.shape
    relative = 10 * n * jnp.asarray(jnp.finfo(X.dtype).eps if tol is None else tol, X.real.dtype)

    def pairs(basis: Any) -> tuple[Any, Any, Any]:
        """The best eigenpairs in the span of orthonormal columns, and the products with their vectors."""
        image = product(basis)
        values, vectors = jnp.linalg.eigh(basis.conj().T @ image)
        # eigh returns eigenvalues in ascending order. The last k, from the end on, are the largest in descending order.
        best = vectors[:, : -k - 1 : -1]
        return values[: -k - 1 : -1], best, image @ best

    def residuals(theta: Any, U: Any, image: Any) -> tuple[Any, Any]:
        rest = image - theta * U
        size = jnp.linalg.norm(rest, axis=0)
        converged = size < relative * (jnp.abs(theta) + jnp.linalg.norm(image, axis=0))
        return rest, converged.all()

    def step(state: Any) -> Any:
        theta, U, last, rest, _, count = state
        # Householder's QR gives orthonormal columns also where residuals and last directions nearly vanish.
        basis = jnp.linalg.qr(jnp.concatenate([U, _unit(rest), _unit(last)], 1))[0]
        theta, best, image = pairs(basis)
        U, last = basis @ best, basis[:, k:] @ best[k:]
        return theta, U, last, *residuals(theta, U, image), count + 1

    start = jnp.linalg.qr(X)[0]
    theta, best, image = pairs(start)
    U = start @ best
    state = theta, U, jnp.zeros_like(U), *residuals(theta, U, image), jnp.int32(0)
    theta, U, _, _, _, count = lax.while_loop(lambda state: ~state[4] & (state[5] < m), step, state)
    return theta, U, count


def _check_search(A: Any, X: Any) -> None:
    if X.ndim != 2 or not 0 < 5 * X.shape[1] < X.shape[0]:
        raise ShapeError(
            f"lobpcg_standard: X of shape {X.shape}", instead="(n, k), 0 < 5 k < n; phlox.numpy.linalg.eigh for more"
        )
    if not jnp.issubdtype(X.dtype, jnp.inexact):
        raise DtypeError(f"lobpcg_standard: X of dtype {X.dtype.name}", instead="X.astype(float)", dtype=X.dtype)
    if callable(A) and not is_sparse(A):
        return
    if A.shape != (X.shape[0], X.shape[0]):
        raise ShapeError(f"lobpcg_standard: A of shape {A.shape} for X of shape {X.shape}", shapes=[A.shape, X.shape])
    if A.dtype != X.dtype:
        raise DtypeError(f"lobpcg_standard: A of dtype {A.dtype.name}, X of dtype {X.dtype.name}", dtype=A.dtype)


def _unit(x: Any) -> Any:
    """The columns with length one; zeros stay zeros."""
    size = jnp.linalg.norm(x, axis=0)
    return x / jnp.where(size == 0, 1, size)


publish(__name__)
