"""The `custom_linear_solve` primitive: solves A x = b by the user's function, and is differentiated implicitly.

    A x = b     gives     dx = A⁻¹ (db - dA x)     and for cotangents     b̄ = A⁻ᵀ x̄

Its parameters hold four jaxprs: the products with A and with its transpose, and the solvers for both. Its operands are
the constants of each, then b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..._base.errors import DerivativeError
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, hoisted
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands, ProgramPrimitive
from ..._transform.array_operations import Zero, add, instantiate, zero_tangent
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes
from ..._transform.jaxprs import batch_jaxpr
from ..._transform.jvp import jvp
from ..._transform.padding import Padding
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from ..control.turns import carry_fixed_point, split_by
from ..elementwise.arithmetic import neg


class LinearSolve(NamedTuple):
    """One item for each of the four jaxprs. If `transpose_solve` is None, so is `vecmat`."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self) -> LinearSolve:
        return LinearSolve(self.vecmat, self.matvec, self.transpose_solve, self.solve)

    @classmethod
    def of(cls, function: Callable[..., Any], *each: LinearSolve) -> LinearSolve:
        """Applies `function` to corresponding items; the result is None where there is no jaxpr."""
        return cls(*(None if parts[0] is None else function(*parts) for parts in zip(*each, strict=True)))


def _solve_split(args: Sequence[Any], const_lengths: LinearSolve) -> tuple[LinearSolve, list[Any]]:
    """(the constants of each program, b)."""
    *parts, b = split_by(args, (*const_lengths, len(args)))
    return LinearSolve(*parts), b


def _solve_bind(consts: LinearSolve, b: Sequence[Any], jaxprs: LinearSolve) -> list[Any]:
    """Binds `custom_linear_solve`; the constants of the programs become operands."""
    params = {"const_lengths": LinearSolve(*map(len, consts)), "jaxprs": jaxprs}
    operands = [x for part in consts for x in part]
    return linear_solve.rebind([*operands, *b], params, [closed for closed in jaxprs if closed is not None])


def _solve_rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    consts, b = _solve_split(args, params["const_lengths"])
    derived = iter(programs)
    jaxprs = LinearSolve.of(lambda _: next(derived), params["jaxprs"])
    consts = LinearSolve(
        *(old if new is None else [*new.consts, *old] for new, old in zip(jaxprs, consts, strict=True))
    )
    lengths = LinearSolve(*map(len, consts))
    changes = {"const_lengths": lengths, "jaxprs": LinearSolve.of(hoisted, jaxprs)}
    return [*(x for part in consts for x in part), *b], {**params, **changes}


def _solve_eager(*args: Any, const_lengths: LinearSolve, jaxprs: LinearSolve) -> list[Any]:
    consts, b = _solve_split(args, const_lengths)
    # Only `solve` runs: the other programs are for derivatives.
    return eval_jaxpr(jaxprs.solve.jaxpr, jaxprs.solve.consts, *consts.solve, *b)


def _solve_types(*avals: ShapedArray, const_lengths: LinearSolve, jaxprs: LinearSolve) -> list[ShapedArray]:
    _, b = _solve_split(avals, const_lengths)
    return [*b, *jaxprs.solve.out_avals[len(b) :]]


def _solve_lower(f: Function, *args: Value, const_lengths: LinearSolve, jaxprs: LinearSolve) -> list[Value]:
    consts, b = _solve_split(args, const_lengths)
    return lower_jaxpr(f, jaxprs.solve.jaxpr, [*consts.solve, *b])


def _solve_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], const_lengths: LinearSolve, jaxprs: LinearSolve
) -> tuple[list[Any], list[Any]]:
    consts, b = _solve_split(primals, const_lengths)
    const_tangents, rhs = _solve_split(tangents, const_lengths)
    outs = _solve_bind(consts, b, jaxprs)
    x, aux = outs[: len(b)], outs[len(b) :]
    if any(type(t) is not Zero for t in const_tangents.matvec):
        matvec = partial(eval_jaxpr, jaxprs.matvec.jaxpr, jaxprs.matvec.consts)
        # dA x is the derivative of the product by its constants, at a fixed x.
        at_x = [*const_tangents.matvec, *map(zero_tangent, x)]
        _, moved = jvp(matvec, [*consts.matvec, *x], at_x)
        rhs = [add(t, m if type(m) is Zero else neg(m)) for t, m in zip(rhs, moved, strict=True)]
    no_aux = list(map(zero_tangent, aux))
    if all(type(t) is Zero for t in rhs):
        return outs, [*map(zero_tangent, x), *no_aux]
    return outs, [*_solve_bind(consts, list(map(instantiate, rhs)), jaxprs)[: len(b)], *no_aux]


def _solve_transpose(
    cotangents: Sequence[Any], *args: Any, const_lengths: LinearSolve, jaxprs: LinearSolve
) -> list[Any]:
    consts, b = _solve_split(args, const_lengths)
    if jaxprs.transpose_solve is None:
        raise DerivativeError(
            "transpose_solve required for reverse-mode differentiation of custom_linear_solve",
            instead="transpose_solve=..., or symmetric=True",
        )
    if any(is_linear(x) for part in consts for x in part):
        raise DerivativeError("custom_linear_solve is linear in b alone, not in its matrix")
    b_cotangents = _solve_bind(consts.transpose(), [instantiate(ct) for ct in cotangents[: len(b)]], jaxprs.transpose())
    b_cts = [ct if is_linear(x) else None for x, ct in zip(b, b_cotangents, strict=False)]
    return [None] * sum(const_lengths) + b_cts


def _solve_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], const_lengths: LinearSolve, jaxprs: LinearSolve
) -> tuple[list[Any], list[Dim]]:
    consts, b = _solve_split(args, const_lengths)
    const_dims, b_dims = _solve_split(dims, const_lengths)

    def batched(
        closed: ClosedJaxpr, part_dims: Sequence[Dim], known: tuple[bool, ...]
    ) -> tuple[ClosedJaxpr, list[Dim]]:
        extra = (False,) * (len(closed.out_avals) - len(known))
        in_dims = (*part_dims, *batch_dims(known))
        return batch_jaxpr(closed, axis, in_dims, (*known, *extra))

    def after(known: tuple[bool, ...]) -> list[bool]:
        out_dims = [batched(*pair, known)[1] for pair in zip(jaxprs, const_dims, strict=True) if pair[0] is not None]
        return [any(ds[i] is not None for ds in out_dims) for i in range(len(known))]

    # x and b have the same types, and each jaxpr maps one to the other, so that both must have the same dims.
    known = carry_fixed_point([d is not None for d in b_dims], after)
    derived = LinearSolve.of(lambda closed, part_dims: batched(closed, part_dims, known)[0], jaxprs, const_dims)
    out_dims = batched(jaxprs.solve, const_dims.solve, known)[1]
    return _solve_bind(consts, place_axes(axis, b, b_dims, known), derived), out_dims


def _solve_pad(padding: Padding, eqn: JaxprEqn, *args: Any) -> list[Any]:
    consts, b = _solve_split(args, eqn.params["const_lengths"])
    return padding.run(eqn.params["jaxprs"].solve, [*consts.solve, *b])


linear_solve = ProgramPrimitive(
    "custom_linear_solve",
    rebuild=_solve_rebuild,
    vma=None,
    types=_solve_types,
    lower=_solve_lower,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    pad=_solve_pad,
    eager=_solve_eager,
    effects=lambda params: params["jaxprs"].solve.effects,
    nan_checked=True,
)
