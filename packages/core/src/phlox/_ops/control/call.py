"""The `jit` primitive: the call of a Jaxpr as one unit, which is lowered to one private function of the module.

`runs_once` (once.py) adds the rules for jvp, linearize, transpose and batching, which transform the inner Jaxpr and
call the result. When no trace is current, the Jaxpr is compiled for the types and placements of the operands, and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base import config
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, hoisted
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands
from ..._transform.jaxprs import restage
from ..._transform.residuals import is_light
from ..._xla.host_values import operand
from ..._xla.lower import call_function, lower_jaxpr
from ..._xla.program import keep, lower
from ..._xla.text import Function, Value, quoted
from .division import divide, divided_call
from .once import runs_once


def call(closed: ClosedJaxpr, args: Sequence[Any], *, name: str, inline: bool = False) -> list[Any]:
    """Calls a Jaxpr as one unit; its constants become leading arguments."""
    if closed.consts:
        args = [*closed.consts, *args]
        closed = hoisted(closed)
    return jit_p.bind(*args, jaxpr=closed, name=name, inline=inline)


def _jit_eager(*args: Any, jaxpr: ClosedJaxpr, name: str, inline: bool | str) -> list[Any]:
    arrays = [operand(x) for x in args]
    keys = tuple(x._placement for x in arrays)
    # Compiled programs are kept on the Jaxpr, and die with it.
    memo, key = jaxpr.jaxpr.memo, ("program", keys, config.current().execution_fingerprint)
    program = memo.get(key)
    if program is None:
        program = keep(memo, key, lower(jaxpr.jaxpr, name, keys).compile_for_calls(), name)
    return program.run(arrays)


def _jit_lower(f: Function, *args: Value, jaxpr: ClosedJaxpr, name: str, inline: bool | str) -> list[Value]:
    if inline is True or not jaxpr.eqns:
        return lower_jaxpr(f, jaxpr.jaxpr, args)
    # A string names the pass in which XLA inlines the call.
    attributes = f" {{mhlo.frontend_attributes = {{inlineable = {quoted(inline)}}}}}" if inline else ""
    return call_function(f, jaxpr, args, name, attributes)


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


def _jit_show(eqn: Any, printer: Any) -> dict[str, Any]:
    printer.name_alike(eqn.params["jaxpr"].jaxpr, eqn)
    return {name: eqn.params[name] for name in ("name", "jaxpr")}


def rebuild_call(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """The function `rebuild` of primitives that run their parameter `jaxpr` once on all operands."""
    (program,) = programs
    return [*program.consts, *carried, *args], {**params, "jaxpr": hoisted(program)}


jit_p = runs_once(
    "jit",
    program="jaxpr",
    rebuild=rebuild_call,
    lower=_jit_lower,
    unfold=lambda *args, jaxpr, **_: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args),
    eager=_jit_eager,
    divide=lambda eqn, policy: divided_call(eqn, divide(eqn.params["jaxpr"], policy), lambda v: v.aval),
    show=_jit_show,
    light=lambda params: all(map(is_light, params["jaxpr"].jaxpr.eqns)),
)
