"""The method of generalized minimal residuals, with restarts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import lax, numpy as jnp, tree
from ...._base.docstrings import docs_from
from ...._base.errors import OptionError
from ...._base.strictness import lenient
from ...._ir import dtypes
from ...._operands.checks import integer, type_of
from ...._operands.promotion import to_dtype
from ....flatten_util import ravel_pytree
from ...linalg import solve_triangular
from ._bicgstab import bicgstab
from ._systems import Problem, add, problem, real_dot, solved, sub, unknown_if_nan

_HIGHEST = lax.Precision.HIGHEST


def _orthogonal(basis: Any, v: Any) -> tuple[Any, Any]:
    """`v` without its part in the span of the rows of `basis`, and the coefficients of that part.

    Once is not enough where the rest is small; twice is (L. Giraud et al., Numer. Math. 101, 2005).
    """
    coefficients: Any = 0
    for _ in range(2):
        some = jnp.matmul(jnp.conj(basis), v, precision=_HIGHEST)
        v = v - jnp.matmul(some, basis, precision=_HIGHEST)
        coefficients = coefficients + some
    return v, coefficients


def _rotate(column: Any, k: Any, cos: Any, sin: Any) -> Any:
    """`column` with its elements k and k + 1 rotated."""
    first, second = column[k], column[k + 1]
    column = column.at[k].set(jnp.conj(cos) * first + jnp.conj(sin) * second)
    return column.at[k + 1].set(cos * second - sin * first)


def _normal(v: Any, size: Any) -> Any:
    return v / jnp.where(size > 0, size, 1)


def _cycle(p: Problem, x: Any, restart: int, enough: Any) -> Any:
    """The best x in the Krylov space of `restart` dimensions at `x`.

    Arnoldi's process gives the basis and a Hessenberg matrix, which rotations make triangular as it grows. So the
    residual of each step is known, and the cycle ends when it is at most `enough`.
    """
    start, unravel = ravel_pytree(p.precondition(sub(p.b, p.operator(x))))
    dtype, size = type_of(start).dtype, jnp.linalg.norm(start)
    eps = np.asarray(dtypes.finfo(dtypes.real_part(dtype)).eps, dtypes.real_part(dtype))
    basis = jnp.zeros((restart + 1, *type_of(start).shape), dtype).at[0].set(_normal(start, size))

    def unfinished(state: Any) -> Any:
        *_, error, k = state
        return (k < restart) & (error > enough)

    def step(state: Any) -> Any:
        basis, triangle, turns, projected, _, k = state
        v = ravel_pytree(p.precondition(p.operator(unravel(basis[k]))))[0]
        before = jnp.linalg.norm(v)
        v, column = _orthogonal(basis, v)
        after = jnp.linalg.norm(v)
        # A rest as small as the rounding error has no meaningful direction.
        after = jnp.where(after > eps * before, after, 0)
        basis = basis.at[k + 1].set(jnp.where(after > 0, _normal(v, after), 0))
        column = column.at[k + 1].set(to_dtype(after, dtype))
        column = lax.fori_loop(0, k, lambda i, column: _rotate(column, i, turns[i, 0], turns[i, 1]), column)
        length = to_dtype(jnp.hypot(jnp.abs(column[k]), after), dtype)
        turn = jnp.where(length == 0, jnp.array([1, 0], dtype), jnp.stack([column[k], column[k + 1]]) / length)
        column, projected = (_rotate(y, k, turn[0], turn[1]) for y in (column, projected))
        # A space that A maps into itself holds the solution: nothing is left.
        error = jnp.where(after > 0, jnp.abs(projected[k + 1]), 0)
        return basis, triangle.at[:, k].set(column[:-1]), turns.at[k].set(turn), projected, error, k + 1

    first = jnp.zeros(restart + 1, dtype).at[0].set(to_dtype(size, dtype))
    # Columns that are not reached stay those of the identity, so that the triangle can be solved.
    state = basis, jnp.eye(restart, dtype=dtype), jnp.zeros((restart, 2), dtype), first, size, 0
    basis, triangle, _, projected, _, k = lax.while_loop(unfinished, step, state)
    y = solve_triangular(triangle, jnp.where(jnp.arange(restart) < k, projected[:-1], 0))
    return add(x, unravel(jnp.matmul(y, basis[:-1], precision=_HIGHEST)))


def _iterate(p: Problem, restart: int, every: bool) -> Any:
    bound = p.bound()
    goal = jnp.sqrt(bound)

    def residual(x: Any) -> Any:
        rest = sub(p.b, p.operator(x))
        return real_dot(rest, rest)

    def unfinished(state: Any) -> Any:
        _, size, k = state
        return (size > bound) & (k < p.maxiter)

    def cycle(state: Any) -> Any:
        x, size, k = state
        # The rotated residual is that of the preconditioned equation, whose norm stands to the other's as now.
        rest = p.precondition(sub(p.b, p.operator(x)))
        scale = jnp.sqrt(real_dot(rest, rest) / jnp.where(size > 0, size, 1))
        x = _cycle(p, x, restart, 0 if every else goal * scale)
        return x, residual(x), k + 1

    x, size, _ = lax.while_loop(unfinished, cycle, (p.x0, residual(p.x0), 0))
    return unknown_if_nan(x, size)


@lenient
@docs_from(bicgstab)
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """Solves ``A x = b`` by generalized minimal residuals (as ``scipy.sparse.linalg.gmres``).

    Derivatives are those of the solution: they solve another equation by the same method, and are as accurate as both
    solutions.

    Args:
      restart: number of dimensions of the Krylov space, from which the method then starts again. More of them make a
        step longer, and fewer steps necessary.
      maxiter: largest number of restarts, ten times the number of unknowns by default.
      solve_method: 'batched' builds the whole space before the residual is looked at; 'incremental' ends within a space
        when the residual is small enough.

    Returns:
      (x, info): the solution, a tree like `b`, and 0, or -1 if x is nan, as it is if a number in the equation is.

    Raises:
      OptionError: an unknown `solve_method`.

    >>> x, info = gmres(jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([6.0, 8.0]))
    >>> x.round()
    Array([1., 2.], dtype=float32)
    """
    if solve_method not in ("incremental", "batched"):
        raise OptionError(f"gmres: solve_method={solve_method!r}", instead="'incremental' or 'batched'")
    equation = problem("gmres", A, b, x0, tol, atol, maxiter, M)
    size = sum(type_of(x).size for x in tree.leaves(equation.b))
    restart = min(integer("gmres", "restart", restart), size)
    x = solved(equation, lambda p: _iterate(p, restart, solve_method == "batched"))
    failed = sum(jnp.isnan(leaf).any() for leaf in tree.leaves(x)) > 0
    return x, jnp.where(failed, -1, 0)
