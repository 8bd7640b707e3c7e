"""Primitives that run one of their programs once: calls, and branches.

Each rule transforms the programs and binds the operation with the results. If there are several programs, as those of a
branch, the results are made uniform: where one has a tangent, a batch axis or a cotangent, all get one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from ..._ir.avals import ShapedArray
from ..._ir.dependence import dependent_outputs
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var, hoist_consts, narrowed, only, without
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Body, ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, fill
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import (
    batch_jaxpr,
    jvp_jaxpr,
    linearize_jaxpr,
    separate_jaxpr,
    transpose_jaxpr,
)
from ..._transform.manual_axes import vary_also
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value

#: The rule `steps` returns a generator that yields (jaxpr, operands, name) and is sent the results.
Steps = Generator[tuple[ClosedJaxpr, Sequence[Any], str], list[Any], None]

Params = dict[str, Any]


def program_rules(program: str) -> Params:
    """Rules of a primitive whose results are those of its parameter `program` on all operands."""

    def types(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return params[program].out_avals

    def lower(f: Function, *args: Value, **params: Any) -> list[Value]:
        return lower_jaxpr(f, params[program].jaxpr, args)

    def eager(*args: Any, **params: Any) -> list[Any]:
        return eval_jaxpr(params[program].jaxpr, params[program].consts, *args)

    def steps(*args: Any, **params: Any) -> Steps:
        closed = params[program]
        yield closed, args, params.get("name") or closed.jaxpr.name or "call"

    def bodies(params: Params) -> list[Body]:
        return [Body(params[program])]

    rules: Params = {"types": types, "lower": lower, "eager": eager, "steps": steps, "bodies": bodies}
    return {**rules, "program": program}


def runs_once(name: str, *, program: str | None = None, selectors: int = 0, **statement: Any) -> ProgramPrimitive:
    """A primitive that runs one of its programs once.

    Args:
      name: see `Primitive`.
      program: the parameter with the program, if there is one program only.
      selectors: the number of first operands, which choose the program; it takes the others.
      **statement: further arguments of `ProgramPrimitive`.
    """
    prim = ProgramPrimitive(name, **{**(program_rules(program) if program else {}), **statement})
    for rule, function in {**_RULES, **(_RULES_OF_ONE_PROGRAM if program else {})}.items():
        if getattr(prim, rule) is None and rule not in statement:
            setattr(prim, rule, partial(function, prim, selectors))
    return prim


def any_of(columns: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    """The elementwise `or` of several lists of flags."""
    return tuple(any(column) for column in zip(*columns, strict=True))


def _uniform(
    derive: Callable[[ClosedJaxpr, Any], tuple[ClosedJaxpr, Sequence[Any]]], bodies: Sequence[Body]
) -> tuple[list[ClosedJaxpr], Sequence[Any]]:
    """The programs ``derive(program, keep)``, and their flags (of results or inputs), which are made equal.

    `keep` is None, or has the flags that must be set.
    """
    derived = [derive(body.program, None) for body in bodies]
    if len(derived) == 1:
        return [derived[0][0]], derived[0][1]
    # The programs are derived twice: first to find the flags that any of them has, then with all of these.
    flags = any_of([[flag is not None and flag is not False for flag in flags] for _, flags in derived])
    derived = [derive(body.program, flags) for body in bodies]
    return [program for program, _ in derived], derived[0][1]


def _once_jvp(
    prim: ProgramPrimitive, selectors: int, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    bodies = prim.bodies(params)
    nonzero = tuple(type(t) is not Zero for t in tangents[selectors:])
    moving = only(tangents[selectors:], nonzero)
    # The types of the programs say along which axes of a `shard_map` values vary; tangents may vary along more.
    still = only(primals[selectors:], nonzero)
    more = [typeof(t).vma - typeof(p).vma for p, t in zip(still, moving, strict=True)]
    varying: frozenset[Any] = frozenset().union(*more)
    programs, present = _uniform(lambda closed, keep: jvp_jaxpr(closed, nonzero, keep, varying), bodies)
    outs = prim.rebind([*primals, *[vary_also(t, varying) for t in moving]], params, programs)
    return _with_tangents(outs, outs[len(present) :], present)


def _with_tangents(outs: list[Any], tangents: list[Any], present: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The results, the first of `outs`, and all of their tangents. `tangents` has those marked in `present`."""
    results = outs[: len(present)]
    return results, fill(tangents, present, [typeof(x) for x in results])


def _once_linearize(
    prim: ProgramPrimitive, selectors: int, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    (body,) = prim.bodies(params)
    nonzero = tuple(type(t) is not Zero for t in tangents)
    split = linearize_jaxpr(body.program, nonzero)
    results = prim.rebind(primals, params, [split.primal])
    sources = {"in": primals, "out": results}
    residuals = [sources[kind][i] for kind, i in split.residuals]
    moving = only(tangents, nonzero)
    outs = prim.rebind([*residuals, *moving], params, [split.linear]) if any(split.nonzero) else []
    return _with_tangents(results, outs, split.nonzero)


def once_transpose(
    prim: ProgramPrimitive, selectors: int, cotangents: Sequence[Any], *args: Any, **params: Any
) -> list[Any]:
    operands = args[selectors:]
    linear = tuple(map(is_linear, operands))
    nonzero = tuple(type(ct) is not Zero for ct in cotangents)
    programs, present = _uniform(
        lambda closed, keep: transpose_jaxpr(closed, linear, nonzero, keep), prim.bodies(params)
    )
    known = [x for x in operands if not is_linear(x)]
    results = iter(prim.rebind([*args[:selectors], *known, *only(cotangents, nonzero)], params, programs))
    flags = iter(present)
    cts = [(next(results) if next(flags) else Zero(x.aval.cotangent())) if is_linear(x) else None for x in operands]
    return [*[None] * selectors, *cts]


def once_batch(
    prim: ProgramPrimitive, selectors: int, axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any
) -> tuple[list[Any], list[Dim]]:
    in_dims = tuple(dims[selectors:])
    programs, out_dims = _uniform(lambda closed, keep: batch_jaxpr(closed, axis, in_dims, keep), prim.bodies(params))
    return prim.rebind(args, params, programs), list(out_dims)


def once_drop_unused(prim: ProgramPrimitive, selectors: int, eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    """The equation without its unused results, and without operands that only those need."""
    if all(used):
        return eqn
    programs, read = _uniform(lambda closed, keep: narrowed(closed, used, keep), prim.bodies(eqn.params))
    assert prim.rebuild is not None
    invars = [*eqn.invars[:selectors], *only(eqn.invars[selectors:], read)]
    operands, params = prim.rebuild(invars, eqn.params, programs)
    return eqn.replace(invars=list(operands), outvars=only(eqn.outvars, used), params=params)


def _once_dependent(prim: ProgramPrimitive, selectors: int, operands: Sequence[bool], params: Params) -> list[bool]:
    bodies = prim.bodies(params)
    if any(operands[:selectors]):
        return [True] * len(bodies[0].program.out_avals)
    return list(any_of([dependent_outputs(body.program.jaxpr, operands[selectors:]) for body in bodies]))


def _once_separate(
    prim: ProgramPrimitive, selectors: int, eqn: JaxprEqn, operands: Sequence[bool]
) -> tuple[JaxprEqn | None, JaxprEqn]:
    (body,) = prim.bodies(eqn.params)
    # Most calls are wholly linear. Effects may be those of values that are known.
    if not eqn.effects and all(dependent_outputs(body.program.jaxpr, operands)):
        return None, eqn
    split = separate_jaxpr(body.program, tuple(operands))
    if not split.primal.eqns and all(split.nonzero):
        return None, eqn
    known = without(eqn.invars, operands)
    outvars = without(eqn.outvars, split.nonzero)
    outvars += [Var(aval) for aval in split.primal.out_avals[len(outvars) :]]
    sources = {"in": known, "out": outvars}
    residuals = [sources[kind][i] for kind, i in split.residuals]

    def half(program: ClosedJaxpr, invars: Sequence[Any], outvars: Sequence[Any]) -> JaxprEqn:
        assert prim.rebuild is not None
        constants = [Literal(x, typeof(x)) for x in program.consts]
        operands, params = prim.rebuild([*constants, *invars], eqn.params, [ClosedJaxpr(hoist_consts(program.jaxpr))])
        return eqn.replace(invars=list(operands), outvars=list(outvars), params=params)

    return (
        half(split.primal, known, outvars),
        half(split.linear, [*residuals, *only(eqn.invars, operands)], only(eqn.outvars, split.nonzero)),
    )


_RULES: dict[str, Callable[..., Any]] = {
    "jvp": _once_jvp,
    "linearize": _once_linearize,
    "transpose": once_transpose,
    "batch": once_batch,
    "drop_unused": once_drop_unused,
    "dependent": _once_dependent,
}

_RULES_OF_ONE_PROGRAM: dict[str, Callable[..., Any]] = {"separate": _once_separate}
