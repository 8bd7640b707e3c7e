"""The stabilized method of biconjugate gradients."""

from __future__ import annotations

from typing import Any

from .... import lax, numpy as jnp, tree
from ...._base.docstrings import docs_from
from ...._base.strictness import lenient
from ._cg import cg
from ._systems import Problem, axpy, dot, problem, real_dot, solved, sub, unknown_if_nan


def _iterate(p: Problem) -> Any:
    """H. A. van der Vorst, Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13 (1992), with a preconditioner on the right."""
    bound = p.bound()
    first = sub(p.b, p.operator(p.x0))

    def unfinished(state: Any) -> Any:
        *_, size, broken, count = state
        return (size > bound) & ~broken & (count < p.maxiter)

    def step(state: Any) -> Any:
        x, residual, direction, image, rho, alpha, omega, _, _, count = state
        new = dot(first, residual)
        direction = axpy(new / rho * alpha / omega, axpy(-omega, image, direction), residual)
        ahead = p.precondition(direction)
        image = p.operator(ahead)
        alpha = new / dot(first, image)
        half = axpy(-alpha, image, residual)
        # Where half a step is enough, the other half would divide by a residual of zero.
        enough = real_dot(half, half) <= bound
        correction = p.precondition(half)
        moved = p.operator(correction)
        omega = jnp.where(enough, 0, dot(moved, half) / jnp.where(enough, 1, dot(moved, moved)))
        x = axpy(omega, correction, axpy(alpha, ahead, x))
        residual = axpy(-omega, moved, half)
        broken = (new == 0) | (alpha == 0) | ((omega == 0) & ~enough)
        return x, residual, direction, image, new, alpha, omega, real_dot(residual, residual), broken, count + 1

    zero = tree.map(jnp.zeros_like, first)
    one = jnp.ones_like(dot(first, first))
    # With a direction of zeros the first new direction is the residual. The ones keep its factor from being 0 / 0.
    state = p.x0, first, zero, zero, one, one, one, real_dot(first, first), False, 0
    x, *_, size, _, _ = lax.while_loop(unfinished, step, state)
    return unknown_if_nan(x, size)


@lenient
@docs_from(cg)
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solves ``A x = b`` by stabilized biconjugate gradients (as ``scipy.sparse.linalg.bicgstab``).

    Derivatives are those of the solution: they solve another equation by the same method, and are as accurate as both
    solutions.

    Args:
      A: linear operator: a square matrix, an object with ``@``, or a function that takes a tree like `b` and returns
        one.
      M: preconditioner, in the same forms as `A`: it approximates the inverse of A.

    >>> x, _ = bicgstab(jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([6.0, 8.0]))
    >>> x.round()
    Array([1., 2.], dtype=float32)
    """
    return solved(problem("bicgstab", A, b, x0, tol, atol, maxiter, M), _iterate), None
