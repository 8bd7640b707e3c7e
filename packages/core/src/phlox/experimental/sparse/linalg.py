"""``phlox.experimental.sparse.linalg``: systems of equations with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._api.debug.callbacks import pure_callback
from ..._api.derivatives.custom import custom_vjp
from ..._api.jit.programs import ShapeDtypeStruct
from ..._base.public_names import publish

__all__ = ["spsolve"]


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

    Source: scipy.sparse.linalg.spsolve.

    >>> spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))

    def solved(data: Any, b: Any, transposed: bool) -> Any:
        def on_host(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
            from scipy.sparse import csr_matrix
            from scipy.sparse.linalg import spsolve

            matrix = csr_matrix(tuple(map(np.asarray, (data, indices, indptr))), shape=(len(b), len(b)))
            order = "COLAMD" if reorder else "NATURAL"
            solution = spsolve(matrix.T.tocsc() if transposed else matrix.tocsc(), np.asarray(b), order)
            return np.asarray(solution, b.dtype)

        out = ShapeDtypeStruct(b.shape, b.dtype)
        return pure_callback(on_host, out, data, indices, indptr, b, vmap_method="sequential")

    @custom_vjp
    def solve(data: Any, b: Any) -> Any:
        return solved(data, b, False)

    def forward(data: Any, b: Any) -> Any:
        x = solve(data, b)
        return x, (data, x)

    def backward(residuals: Any, cotangent: Any) -> Any:
        data, x = residuals
        y = solved(data, cotangent, True)
        rows = jnp.searchsorted(indptr, jnp.arange(data.shape[0]), side="right") - 1
        return -y[rows] * x[indices], y

    solve.defvjp(forward, backward)
    return solve(data, b)


publish(__name__)
