"""The `jit` primitive: the call of a Jaxpr as one unit, which is lowered to one private function of the module.

Each rule transforms the inner Jaxpr and calls the result. When no trace is current, the Jaxpr is compiled for the types
and placements of the operands, and run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ..._base import config
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import (
    ClosedJaxpr,
    JaxprEqn,
    Var,
    dependent_outputs,
    effects_inside,
    hoisted,
    memoized,
    narrowed,
    only,
)
from ..._ir.primitive import sharding_in_types, vma_in_types
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import ProgramPrimitive, call_with_refs
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, fill
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage, transpose_jaxpr
from ..._transform.residuals import is_light
from ..._transform.transpose import is_linear
from ..._xla.host_values import operand
from ..._xla.lower import call_function, lower_jaxpr
from ..._xla.program import keep, lower
from ..._xla.text import Function, Value
from .division import Policy, divide, divided_call
from .masked import masked_jaxpr

#: What the rule `steps` returns: a generator that yields (jaxpr, operands, name) and is sent the results.
Steps = Generator[tuple[ClosedJaxpr, Sequence[Any], str], list[Any], None]


def call(closed: ClosedJaxpr, args: Sequence[Any], *, name: str, inline: bool = False) -> list[Any]:
    """Calls a Jaxpr as one unit; its constants become leading arguments."""
    if closed.consts:
        args = [*closed.consts, *args]
        closed = hoisted(closed)
    return jit_p.bind(*args, jaxpr=closed, name=name, inline=inline)


def _jit_eager(*args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool) -> list[Any]:
    arrays = [operand(x) for x in args]
    keys = tuple(x._key for x in arrays)
    memo, key = jaxpr.jaxpr.memo, ("program", keys, config.current().executed)
    program = memo.get(key)
    if program is None:
        program = keep(memo, key, lower(jaxpr.jaxpr, name, keys).compile_for_calls(), name)
    return program.run(arrays)


def _jit_types(*avals: ShapedArray, jaxpr: ClosedJaxpr, name: str, inline: bool) -> list[ShapedArray]:
    return jaxpr.out_avals


def _jit_lower(f: Function, *args: Value, jaxpr: ClosedJaxpr, name: str, inline: bool) -> list[Value]:
    if inline or not jaxpr.eqns:
        return lower_jaxpr(f, jaxpr.jaxpr, args)
    return call_function(f, jaxpr, args, name)


def _jit_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, name: str, inline: bool
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    derived, present = jvp_jaxpr(jaxpr, nonzero)
    nonzero_tangents = [t for t in tangents if type(t) is not Zero]
    results = call(derived, [*primals, *nonzero_tangents], name=name, inline=inline)
    count = len(jaxpr.out_avals)
    return results[:count], fill(results[count:], present, jaxpr.out_avals)


def _jit_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, name: str, inline: bool
) -> tuple[list[Any], list[Any]]:
    nonzero = tuple(type(t) is not Zero for t in tangents)
    split = linearize_jaxpr(jaxpr, nonzero)
    results = call(split.primal, primals, name=name, inline=inline)
    sources = {"in": primals, "out": results}
    residuals = [sources[kind][i] for kind, i in split.residuals]
    nonzero_tangents = [t for t in tangents if type(t) is not Zero]
    outs = call(split.linear, [*residuals, *nonzero_tangents], name=name, inline=inline) if any(split.nonzero) else []
    return results[: len(jaxpr.out_avals)], fill(outs, split.nonzero, jaxpr.out_avals)


def _jit_transpose(cotangents: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool) -> list[Any]:
    linear = tuple(is_linear(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cotangents)
    derived, present = transpose_jaxpr(jaxpr, linear, nonzero)
    inputs = [x for x in args if not is_linear(x)] + [ct for ct in cotangents if type(ct) is not Zero]
    results = iter(call(derived, inputs, name=name, inline=inline))
    there = iter(present)
    return [(next(results) if next(there) else Zero(x.aval)) if is_linear(x) else None for x in args]


def _jit_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], jaxpr: ClosedJaxpr, name: str, inline: bool
) -> tuple[list[Any], list[Dim]]:
    derived, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
    return call(derived, args, name=name, inline=inline), out_dims


def _jit_masked(mask: Any, *args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool) -> list[Any]:
    return call(masked_jaxpr(jaxpr, typeof(mask)), [mask, *args], name=name, inline=inline)


def _jit_steps(*args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool) -> Steps:
    yield jaxpr, args, name


def _jit_checked(checks: Any, *args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool) -> list[Any]:
    program, tree = checks.program(jaxpr, [typeof(x) for x in args])
    return checks.results(call(program, [*checks.leaves, *args], name=name, inline=inline), tree)


def _jit_axes(params: dict[str, Any]) -> set[Any]:
    """Names of the mapped axes that collectives inside the call use."""
    return axes_used(params["jaxpr"])


def axes_used(closed: ClosedJaxpr) -> set[Any]:
    """Names of the mapped axes that collectives in a Jaxpr use."""

    def find() -> set[Any]:
        refs: set[Any] = set()
        for eqn in closed.eqns:
            if eqn.primitive.axes is not None:
                refs.update(eqn.primitive.axes(eqn.params))
        return refs

    return memoized(closed.jaxpr, "axes", find)


def narrow_call(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    """The rule `narrow` of primitives that run their parameter `jaxpr` once on their operands.

    Returns the equation without its unused results, and without operands that only those need.
    """
    if all(used):
        return eqn
    jaxpr, read = narrowed(eqn.params["jaxpr"], used)
    return eqn.replace(
        invars=only(eqn.invars, read), outvars=only(eqn.outvars, used), params={**eqn.params, "jaxpr": jaxpr}
    )


def dependent_call(operands: Sequence[bool], params: dict[str, Any]) -> list[bool]:
    """The rule `dependent` of primitives that run their parameter `jaxpr` once on their operands."""
    return dependent_outputs(params["jaxpr"].jaxpr, operands)


def _jit_divide(eqn: JaxprEqn, policy: Policy) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    return divided_call(eqn, divide(eqn.params["jaxpr"], policy), 0, lambda v: v.aval)


def without_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with all its calls inlined."""

    def fun(*xs: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *xs, run=_run_inlined)

    return restage(fun, closed.in_avals, closed.jaxpr)


def _run_inlined(eqn: JaxprEqn, values: Sequence[Any]) -> Any:
    """Runs an equation; for a call, runs the equations of the called jaxpr."""
    if eqn.primitive is not jit_p:
        return eqn.primitive.bind(*values, **eqn.params)
    inner = eqn.params["jaxpr"]
    return eval_jaxpr(inner.jaxpr, inner.consts, *values, run=_run_inlined)


def decomposes(closed: ClosedJaxpr) -> bool:
    """Whether a Jaxpr computes eigenvectors or singular vectors."""

    def find() -> bool:
        return any(eqn.primitive.decomposes is not None and eqn.primitive.decomposes(eqn.params) for eqn in closed.eqns)

    return memoized(closed.jaxpr, "decomposes", find)


def checked_as(run: Callable[..., list[Any]], checks: Any, args: Sequence[Any]) -> list[Any]:
    """The results of `run`, which computes an operation by others, with the checks of these."""
    avals = [typeof(x) for x in args]
    jaxpr, consts = stage(run, avals)
    program, tree = checks.program(ClosedJaxpr(jaxpr, consts), avals)
    return checks.results(call(program, [*checks.leaves, *args], name="checked"), tree)


def _jit_show(eqn: Any, printer: Any) -> dict[str, Any]:
    printer.name_alike(eqn.params["jaxpr"].jaxpr, eqn)
    return {name: eqn.params[name] for name in ("name", "jaxpr")}


jit_p = ProgramPrimitive(
    "jit",
    pass_refs=call_with_refs("jaxpr"),
    multiple_results=True,
    types=_jit_types,
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=_jit_lower,
    jvp=_jit_jvp,
    linearize=_jit_linearize,
    decomposes=lambda params: decomposes(params["jaxpr"]),
    unfold=lambda *args, jaxpr, **_: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args),
    transpose=_jit_transpose,
    batch=_jit_batch,
    extend=lambda params, trailing, *avals: params,
    masked=_jit_masked,
    steps=_jit_steps,
    eager=_jit_eager,
    axes=_jit_axes,
    effects=effects_inside,
    narrow=narrow_call,
    dependent=dependent_call,
    divide=_jit_divide,
    show=_jit_show,
    checked=_jit_checked,
    light=lambda params: all(map(is_light, params["jaxpr"].jaxpr.eqns)),
    program="jaxpr",
)
