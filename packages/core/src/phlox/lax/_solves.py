"""`custom_root` and `custom_linear_solve`: solutions of equations with implicit derivatives.

The solver is a function of the user and is not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._api.derivatives.closures import linear_transpose
from .._api.derivatives.differentiate import linearize
from .._api.jit.bodies import Staged, operands_of
from .._api.jit.user_functions import user_call
from .._base import pytree
from .._base.errors import DtypeError, FunctionTreeError, ShapeError
from .._base.pytree import PyTreeDef
from .._ir.avals import ShapedArray
from .._ir.jaxpr import ClosedJaxpr
from .._ops.control.custom import custom_jvp_call
from .._ops.control.custom_rules import Rule
from .._ops.elementwise.arithmetic import neg
from .._ops.linalg.solve import LinearSolve, linear_solve
from .._ops.structure.shape import as_array_or_tracer
from .._trace.interpret import eval_jaxpr
from .._trace.staging import stage
from .._trace.trace import typeof
from .._transform.array_operations import Zero, instantiate, zero_tangent
from .._transform.jvp import jvp

Solver = Callable[[Callable[..., Any], Any], Any]


class _Unknown:
    """The unknown of an equation: the structure and the types that the user's functions must return."""

    def __init__(self, function: str, argument: str, value: Any, fun: Callable[..., Any]):
        self.function, self.argument = function, argument
        self.leaves, self.in_tree = operands_of(function, fun, (value,))
        self.tree = pytree.tree_structure(value)
        self.avals = [typeof(x) for x in self.leaves]

    def stage(self, role: str, fun: Callable[..., Any], has_aux: bool = False, same_dtype: bool = True) -> Staged:
        """Traces `fun` of the unknown. Raises unless its result has the unknown's type (with `has_aux` also an aux)."""
        program = Staged(self.function, role, fun, self.in_tree, self.avals)
        self.check(role, program, has_aux, same_dtype)
        return program

    def check(self, role: str, program: Staged, has_aux: bool = False, same_dtype: bool = True) -> None:
        tree = program.out_tree
        if has_aux:
            parts = pytree.treedef_children(tree)
            if len(parts) != 2:
                raise FunctionTreeError(
                    f"{self.function}: {role} must return a pair (solution, aux) because of has_aux=True, got {tree}",
                    instead=program.advice(role, "solution, aux"),
                )
            tree = parts[0]
        what = f"{self.function}: the {role}() output"
        unlike = f"{what} pytree is unlike {self.argument}"
        pytree.check_same(self.tree, tree, unlike, program.advice(role, f"a tree like {self.argument}"))
        expected = self.argument, self.avals
        _check_types(what, tree, expected, program.out_avals[: len(self.avals)], same_dtype)


def _check_types(
    what: str,
    tree: PyTreeDef,
    expected: tuple[str, Sequence[ShapedArray]],
    got: Sequence[ShapedArray],
    same_dtype: bool,
) -> None:
    argument, avals = expected
    for path, want, have in zip(pytree.named_paths(tree), avals, got, strict=True):
        place = f" at result{pytree.keystr(path)}" if path else ""
        types = f"unlike {argument}: {have.short}{place} for {want.short}"
        if have.shape != want.shape:
            raise ShapeError(f"{what} shapes are {types}", shapes=[have.shape, want.shape])
        if same_dtype and have.dtype != want.dtype:
            raise DtypeError(f"{what} dtypes are {types}", instead=f"a result of type {want.short}")


@user_call
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """``solve(matvec, b)``, the x with ``matvec(x) = b``, differentiated as the solution of this equation (as
    ``jax.lax.custom_linear_solve``).

    The derivative solves with `matvec` again; `solve` may be anything that finds x, a `while_loop` for example. What
    `matvec` closes over has derivatives too.

    Args:
      matvec: linear function: takes a pytree like `b` and returns one.
      b: right-hand side, a pytree of arrays.
      solve: function ``solve(matvec, b) -> x`` that solves ``matvec(x) = b``.
      transpose_solve: function ``transpose_solve(vecmat, b) -> x`` that solves the transposed equation, as reverse mode
        requires; None if it is not available.
      symmetric: whether `matvec` is symmetric, so that `solve` also solves the transposed equation.
      has_aux: whether `solve` and `transpose_solve` return a pair (x, aux); aux is not differentiated.

    Returns:
      The solution, a pytree like `b`; with `has_aux` the pair (x, aux).

    Raises:
      TreeError: a function returns a pytree of another structure than `b`, or with `has_aux` no pair.
      ShapeError: a function returns other shapes than those of `b`.
      DtypeError: a function returns other dtypes than those of `b`.
      DerivativeError: reverse mode needs the transpose, and there is neither `transpose_solve` nor `symmetric`.

    >>> by_two = lambda b: custom_linear_solve(lambda x: 2 * x, b, lambda f, b: b / 2, symmetric=True)
    >>> by_two(3.0), phlox.grad(by_two)(3.0)
    (Array(1.5, dtype=float32, weak_type=True), Array(0.5, dtype=float32, weak_type=True))
    """
    unknown = _Unknown("custom_linear_solve", "b", b, matvec)
    transposer = solve if transpose_solve is None and symmetric else transpose_solve
    forward = unknown.stage("matvec", matvec)
    solver = unknown.stage("solve", partial(solve, matvec), has_aux)
    backward = transposed = None
    if transposer is not None:
        vecmat = matvec if symmetric else lambda ct: linear_transpose(matvec, b)(ct)[0]
        backward = forward if symmetric else unknown.stage("the transpose of matvec", vecmat)
        transposed = unknown.stage("transpose_solve", partial(transposer, vecmat), has_aux)
    programs = (forward, backward, solver, transposed)
    consts = [[] if p is None else p.consts for p in programs]
    # The operation keeps all programs, because its derivatives are solves with the same operator: dx = A⁻¹ (db - dA x).
    outs = linear_solve.bind(
        *(c for each in consts for c in each),
        *unknown.leaves,
        const_lengths=LinearSolve(*map(len, consts)),
        jaxprs=LinearSolve(*(None if p is None else p.closed for p in programs)),
    )
    return solver.out_tree.unflatten([as_array_or_tracer(x) for x in outs])


@user_call
def custom_root(
    f: Callable[..., Any], initial_guess: Any, solve: Solver, tangent_solve: Solver, has_aux: bool = False
) -> Any:
    """``solve(f, initial_guess)``, an x with ``f(x) = 0``, differentiated with respect to what `f` closes over (as
    ``jax.lax.custom_root``).

    With ``f(x, a) = 0`` for all a, ``∂f/∂x dx = -∂f/∂a da``: a linear equation for dx, solved by `tangent_solve`.

    Args:
      f: function whose root is sought: takes a pytree like `initial_guess` and returns one.
      initial_guess: initial value for `solve`, a pytree of arrays; it does not affect the derivative.
      solve: function ``solve(f, initial_guess) -> x`` that finds x with ``f(x) = 0``.
      tangent_solve: function ``tangent_solve(g, y) -> x`` that solves ``g(x) = y`` for a linear function `g`. For
        scalars it is ``lambda g, y: y / g(1.0)``.
      has_aux: whether `solve` returns a pair (x, aux); aux is not differentiated.

    Returns:
      The solution, a pytree like `initial_guess`; with `has_aux` the pair (x, aux).

    Raises:
      TreeError: a function returns a pytree of another structure than `initial_guess`, or `solve` returns no pair with
        `has_aux`.
      ShapeError: a function returns other shapes than those of `initial_guess`.

    >>> def root(a):
    ...     return custom_root(lambda x: x**2 - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / g(1.0))
    >>> root(4.0), phlox.grad(root)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    unknown = _Unknown("custom_root", "initial_guess", initial_guess, f)
    # Other dtypes are allowed, because the initial guess may be an integer.
    equation = unknown.stage("f", f, same_dtype=False)
    solver = unknown.stage("solve", partial(solve, f), has_aux, same_dtype=False)
    count = len(unknown.avals)

    def linearize_and_solve(x: Any, y: Any) -> Any:
        return tangent_solve(linearize(f, x)[1], y)

    both = pytree.treedef_tuple((unknown.tree, unknown.tree))
    tangents = Staged("custom_root", "tangent_solve", linearize_and_solve, both, [*unknown.avals, *unknown.avals])
    unknown.check("tangent_solve", tangents, same_dtype=False)
    first, second = len(equation.consts), len(equation.consts) + len(solver.consts)
    third = second + len(tangents.consts)

    def rule(primals: Sequence[Any], tangents_in: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = _bind(primals)
        x, aux = outs[:count], outs[count:]
        at_x = list(map(zero_tangent, x))
        # 0 = df = (∂f/∂x) dx + (∂f/∂θ) dθ. `moved` is the second term, with x fixed, and `tangent_solve` divides by
        # ∂f/∂x.
        _, moved = jvp(
            partial(eval_jaxpr, equation.closed.jaxpr, []), [*primals[:first], *x], [*tangents_in[:first], *at_x]
        )
        no_aux = list(map(zero_tangent, aux))
        if all(type(t) is Zero for t in moved):
            return outs, [*at_x, *no_aux]
        results = eval_jaxpr(tangents.closed.jaxpr, [], *primals[second:third], *x, *map(instantiate, moved))
        return outs, [*map(neg, results), *no_aux]

    args = [*equation.consts, *solver.consts, *tangents.consts, *unknown.leaves]

    def run(*xs: Any) -> list[Any]:
        return eval_jaxpr(solver.closed.jaxpr, [], *xs[first:second], *xs[third:])

    closed = ClosedJaxpr(stage(run, [typeof(x) for x in args], name=solver.name)[0])

    def _bind(primals: Sequence[Any]) -> list[Any]:
        return custom_jvp_call.bind(
            *primals, call_jaxpr=closed, jvp=Rule(rule, f"custom_root of {equation.name}", True), num_consts=0
        )

    return solver.out_tree.unflatten([as_array_or_tracer(x) for x in _bind(args)])
