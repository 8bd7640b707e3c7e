"""`fixed_point`: solutions of ``x = f(x)``, with the derivative of the implicit function theorem."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api.jit import arguments
from .._api.jit.user_functions import user_call
from .._base import pytree
from .._base.errors import DtypeError, OptionError
from .._ir import dtypes
from .._operands.checks import integer
from .._operands.promotion import to_dtype
from .._ops.elementwise.arithmetic import abs_
from .._ops.elementwise.logic import or_
from .._trace.trace import typeof
from ._loops import while_loop
from ._solves import custom_linear_solve, custom_root

Tree = Any


@user_call
def fixed_point(
    f: Callable[..., Tree], x0: Tree, args: Sequence[Any] = (), *, tol: float | None = None, max_steps: int = 1000
) -> Tree:
    """The x with ``x = f(x, *args)``, found by repeating ``x = f(x, *args)`` from `x0` (as
    ``scipy.optimize.fixed_point``; JAX does not have it).

    For Newton's method, Sinkhorn's, self-consistent fields, and layers that are equations. The derivative is that of
    the implicit function theorem, ``dx = (I - ∂f/∂x)⁻¹ ∂f/∂a da``. Its linear equation is solved by the same
    iteration, with products of the Jacobian and vectors only. No iteration is stored, and the derivative does not
    depend on `x0`.

    Args:
      f: function ``f(x, *args)`` that returns a pytree like `x0`. Repeating it must converge.
      x0: start of the iteration, a pytree of floating or complex arrays.
      args: tuple of further arguments of `f`, pytrees. Values that `f` closes over have derivatives too.
      tol: the iteration ends when no element of x changes by more than ``tol * (1 + abs(x))``. None means the machine
        epsilon of the dtype to the power 3/4: 6e-6 for float32, 2e-12 for float64.
      max_steps: largest number of iterations, for the solution and for each linear equation of the derivative.

    Returns:
      The last x, a pytree like `x0`.

    Raises:
      ArgumentError: `f` is not callable.
      DtypeError: an array of `x0` is not floating or complex.
      OptionError: `max_steps` is less than 1.
      TreeError: `f` returns a pytree of another structure than `x0`.
      ShapeError: `f` returns other shapes than those of `x0`.

    >>> root = lambda a: fixed_point(lambda x: (x + a / x) / 2, 1.0, tol=1e-6)
    >>> root(4.0), phlox.grad(root)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    arguments.check_callable("fixed_point", f)
    if integer("fixed_point", "max_steps", max_steps) < 1:
        raise OptionError(f"fixed_point: max_steps={max_steps} is less than 1")
    for path, x in zip(pytree.named_paths(pytree.tree_structure(x0)), pytree.tree_leaves(x0), strict=True):
        if not dtypes.is_inexact(typeof(x).dtype):
            raise DtypeError(
                f"fixed_point: x0{pytree.keystr(path)} is {typeof(x).short}", instead="a floating or complex array"
            )

    def residual(x: Tree) -> Tree:
        return pytree.tree_map(lambda new, old: new - old, f(x, *args), x)

    def solve(g: Callable[[Tree], Tree], y: Tree) -> Tree:
        # g = J - I for the Jacobian J of f. x = J x - y converges, because repeating f does.
        def turn(x: Tree) -> Tree:
            return pytree.tree_map(lambda x, gx, y: x + gx - y, x, g(x), y)

        return _repeated(turn, pytree.tree_map(lambda y: y * 0, y), tol, max_steps)

    def tangent_solve(g: Callable[[Tree], Tree], y: Tree) -> Tree:
        # The iteration of the transposed equation converges as well, since Jᵀ has the eigenvalues of J.
        return custom_linear_solve(g, y, solve, solve)

    return custom_root(residual, x0, lambda _, x: _repeated(lambda x: f(x, *args), x, tol, max_steps), tangent_solve)


def _repeated(f: Callable[[Tree], Tree], start: Tree, tol: float | None, max_steps: int) -> Tree:
    """The fixed point of `f`, by iteration."""

    def moves(new: Any, old: Any) -> Any:
        dtype = typeof(old).dtype
        # Rounding in `f` can keep the last digits in motion for ever, so that steps of the size of eps would be too
        # strict an end.
        bound = float(dtypes.finfo(dtype).eps) ** 0.75 if tol is None else tol
        return (abs_(new - old) > bound * (1 + abs_(new))).any()

    def turn(carry: Any) -> Any:
        x, _ = carry
        # The carry of a loop has one type, and a start such as 1.0 is weakly typed where f(x) may not be.
        new = pytree.tree_map(lambda y, x: to_dtype(y, typeof(x).dtype, typeof(x).weak_type), f(x), x)
        flags = pytree.tree_leaves(pytree.tree_map(moves, new, x))
        return new, functools.reduce(or_, flags, np.False_)

    return while_loop(lambda carry: carry[1], turn, (start, np.True_), max_steps=max_steps)[0]
