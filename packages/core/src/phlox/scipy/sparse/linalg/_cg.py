"""The method of conjugate gradients."""

from __future__ import annotations

from typing import Any

from .... import lax, tree
from ...._base.strictness import lenient
from ...._ir import dtypes
from ._systems import Problem, axpy, problem, real_dot, solved, sub, unknown_if_nan


def _iterate(p: Problem) -> Any:
    """The iteration with a preconditioner: Y. Saad, Iterative methods for sparse linear systems, 9.1."""
    bound = p.bound()
    residual = sub(p.b, p.operator(p.x0))
    towards = p.precondition(residual)

    def unfinished(state: Any) -> Any:
        _, _, _, _, size, step = state
        return (size > bound) & (step < p.maxiter)

    def step(state: Any) -> Any:
        x, residual, direction, energy, _, count = state
        image = p.operator(direction)
        # Both inner products are real for Hermitian operators, also of complex vectors.
        length = energy / real_dot(direction, image)
        x, residual = axpy(length, direction, x), axpy(-length, image, residual)
        towards = p.precondition(residual)
        new = real_dot(residual, towards)
        return x, residual, axpy(new / energy, direction, towards), new, real_dot(residual, residual), count + 1

    state = p.x0, residual, towards, real_dot(residual, towards), real_dot(residual, residual), 0
    x, *_, size, _ = lax.while_loop(unfinished, step, state)
    return unknown_if_nan(x, size)


@lenient
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solves ``A x = b`` for a positive definite A by conjugate gradients (as ``scipy.sparse.linalg.cg``).

    Derivatives are those of the solution: they solve another equation with A by the same method, and are as accurate as
    both solutions.

    Args:
      A: Hermitian positive definite operator: a square matrix, an object with ``@``, or a function that takes a tree
        like `b` and returns one.
      b: right-hand side: an array, or a tree of arrays that is one vector; integers are converted to floats.
      x0: first guess, a tree like `b`; zeros by default.
      tol, atol: the iteration ends when the norm of the residual is at most ``max(tol * norm(b), atol)``.
      maxiter: largest number of iterations, ten times the number of unknowns by default.
      M: preconditioner, in the same forms as `A`: it approximates the inverse of A, and is Hermitian positive definite.

    Returns:
      (x, None): the solution, a tree like `b`, and None in the place of a report. x is nan if a number in the equation
      is.

    Raises:
      ShapeError: a matrix is not square, or `x0` has other shapes than `b`.
      TreeError: `x0` has another structure than `b`.
      ArgumentError: `A` or `M` is neither a matrix nor a function.

    >>> x, _ = cg(jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([6.0, 7.0]))
    >>> x.round()
    Array([1., 2.], dtype=float32)
    """
    equation = problem("cg", A, b, x0, tol, atol, maxiter, M)
    # A complex Hermitian A is not its own transpose, which is conj(A).
    real = all(dtypes.kind(x.dtype) != "c" for x in tree.leaves(equation.b))
    return solved(equation, _iterate, symmetric=real), None
