"""Linear operators, vectors that are trees, the tolerance and implicit derivatives of the iterative solvers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from .... import lax, numpy as jnp, tree
from ...._base.errors import ArgumentError, ShapeError, TreeError
from ...._base.strictness import users
from ...._ir import dtypes
from ...._ir.avals import typeof_value
from ...._operands.checks import array_like, check_one, type_of
from ...._operands.promotion import to_dtype

Linear = Callable[[Any], Any]


class Problem(NamedTuple):
    """``operator(x) = b``, and everything else that a solver needs."""

    operator: Linear
    b: Any
    x0: Any
    precondition: Linear
    maxiter: Any
    tol: Any
    atol: Any

    def bound(self) -> Any:
        """The square of the norm of a residual that is small enough.

        It depends on this right-hand side: equations of derivatives have others.
        """
        return jnp.maximum(jnp.square(self.tol) * real_dot(self.b, self.b), jnp.square(self.atol))


def problem(function: str, A: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: int | None, M: Any) -> Problem:
    """The checked arguments of a solver."""
    b, x0 = vectors(function, b, x0)
    if maxiter is None:
        maxiter = 10 * sum(type_of(x).size for x in tree.leaves(b))  # as SciPy
    precondition = identity if M is None else linear(function, "M", M)
    return Problem(linear(function, "A", A), b, x0, precondition, maxiter, tol, atol)


def identity(x: Any) -> Any:
    return x


def linear(function: str, name: str, operand: Any) -> Linear:
    """A matrix, an object with ``@`` or a function, as a function."""
    if callable(operand):
        return users(operand)
    shape = getattr(operand, "shape", None)
    if not hasattr(operand, "__matmul__") or shape is None:
        raise ArgumentError(
            f"{function}: {name} is neither a matrix nor a function, but a {type(operand).__name__}",
            instead="a square matrix, or a function that multiplies a vector by it",
            argument=name,
            value=operand,
        )
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"{function}: {name} must be a square matrix, and has shape {tuple(shape)}", shapes=[shape])
    if _is_array(operand):
        # In the default precision of GPUs and TPUs the residuals would not become small.
        return functools.partial(jnp.dot, operand, precision=lax.Precision.HIGHEST)
    return functools.partial(operator.matmul, operand)


def _is_array(x: Any) -> bool:
    return typeof_value(array_like(x)) is not None


def vectors(function: str, b: Any, x0: Any) -> tuple[Any, Any]:
    """`b` and the first guess as trees of floating arrays of the same structure and types."""
    b = tree.map(lambda x: _inexact(check_one(function, x)), b)
    if x0 is None:
        return b, tree.map(jnp.zeros_like, b)
    if tree.structure(x0) != tree.structure(b):
        raise TreeError(f"{function}: x0 is another tree than b: {tree.structure(x0)} and {tree.structure(b)}")

    def as_b(guess: Any, b: Any) -> Any:
        guess = check_one(function, guess)
        if type_of(guess).shape != type_of(b).shape:
            raise ShapeError(f"{function}: x0 has {type_of(guess).short} for {type_of(b).short} of b")
        return to_dtype(guess, type_of(b).dtype, type_of(b).weak_type)

    return b, tree.map(as_b, x0, b)


def _inexact(x: Any) -> Any:
    dtype = dtypes.to_inexact(type_of(x).dtype)
    return to_dtype(jnp.asarray(x), dtype, type_of(x).weak_type)


def add(x: Any, y: Any) -> Any:
    return tree.map(operator.add, x, y)


def sub(x: Any, y: Any) -> Any:
    return tree.map(operator.sub, x, y)


def axpy(a: Any, x: Any, y: Any) -> Any:
    """``a * x + y`` in the dtypes of `y`."""
    return tree.map(lambda x, y: to_dtype(a * x + y, type_of(y).dtype, type_of(y).weak_type), x, y)


def dot(x: Any, y: Any) -> Any:
    """The inner product of two trees, conjugate in the first."""
    product = functools.partial(jnp.vdot, precision=lax.Precision.HIGHEST)
    return sum(tree.leaves(tree.map(product, x, y)))


def real_dot(x: Any, y: Any) -> Any:
    """The real part of `dot`, which is all of it in the norms of definite operators."""

    def product(x: Any, y: Any) -> Any:
        real = jnp.vdot(jnp.real(x), jnp.real(y), precision=lax.Precision.HIGHEST)
        if not jnp.iscomplexobj(x):
            return real
        return real + jnp.vdot(jnp.imag(x), jnp.imag(y), precision=lax.Precision.HIGHEST)

    return sum(tree.leaves(tree.map(product, x, y)))


def unknown_if_nan(x: Any, size: Any) -> Any:
    """nan instead of the first guess where the residual is nan: an equation with nan in it has no solution."""
    return tree.map(lambda x: jnp.where(jnp.isnan(size), jnp.full_like(x, jnp.nan), x), x)


def solved(problem: Problem, solver: Callable[[Problem], Any], symmetric: bool = False) -> Any:
    """The solution, with the derivatives of the equation and not of the iteration.

    The transposed equation, of reverse mode, has a right-hand side for which `x0` says nothing: it begins at zero.
    """

    def solve(operator: Linear, b: Any, x0: Any = None) -> Any:
        x0 = tree.map(jnp.zeros_like, b) if x0 is None else x0
        return solver(problem._replace(operator=operator, b=b, x0=x0))

    # x0 is a guess of the solution, not of its cotangent: the transposed equation starts at 0.
    first = functools.partial(solve, x0=problem.x0)
    return lax.custom_linear_solve(problem.operator, problem.b, solve=first, transpose_solve=solve, symmetric=symmetric)
