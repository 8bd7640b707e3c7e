"""Linearization: one pass that computes a function and records its derivative as a linear program.

It is forward mode with the tangents left unknown. `TangentTrace` sits below the jvp rules: an operation that
touches a tangent is recorded, every other one is done at once by the outer trace. What the recorded
operations read of the computed values (the residuals) become constants of the linear program.

A primitive that holds a Jaxpr states a `linearize` rule, because its jvp would mix both kinds of work in one
operation; the rule has the form of a jvp and binds the two kinds separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._base.source import scope
from .._ir.jaxpr import Jaxpr, prune
from .._ir.primitive import Primitive
from .._trace.staging import JaxprTrace, JaxprTracer
from .._trace.trace import Trace, bind_under, typeof
from .array_operations import Zero
from .jvp import JVPTrace, push_forward


class TangentTrace(JaxprTrace):
    """Records what touches a tangent and does the rest in the parent trace."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if any(type(x) is JaxprTracer and x.owner is self for x in args):
            return super().process(primitive, args, params)
        return bind_under(self.parent, primitive, args, params)

    def recorder(self) -> Any:
        return Trace.recorder(self)

    def read_ref(self, ref: Any) -> Any:
        return ref.read(self.parent)

    def write_ref(self, ref: Any, value: Any) -> None:
        ref.write(self.parent, value)


class LinearizeTrace(JVPTrace):
    """Forward mode that prefers rules which keep known and linear work apart."""

    __slots__ = ()

    def rule(self, primitive: Primitive) -> Callable[..., Any]:
        return primitive.linearize or primitive.rule("jvp")


class Linearized(NamedTuple):
    """A function at a point: its outputs, and its derivative there as a program.

    `jaxpr` maps tangents of the inputs that were asked for to tangents of the outputs where `nonzero`; its
    constants have the values `residuals`.
    """

    outputs: list[Any]
    jaxpr: Jaxpr
    residuals: list[Any]
    nonzero: list[bool]


def linearize(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], wanted: Sequence[bool]) -> Linearized:
    """Linearizes flat `fun` at `primals`, with respect to the inputs that are `wanted`."""
    recorder = TangentTrace("linear")
    tangents = []
    for i, primal in enumerate(primals):
        aval = typeof(primal).tangent()
        tangents.append(recorder.argument(aval) if wanted[i] else Zero(aval))

    def run() -> tuple[list[Any], list[bool], Jaxpr, list[Any]]:
        outputs, out_tangents = push_forward(LinearizeTrace(), fun, primals, tangents)
        nonzero = [type(t) is not Zero for t in out_tangents]
        return outputs, nonzero, *recorder.jaxpr([t for t in out_tangents if type(t) is not Zero])

    outputs, nonzero, jaxpr, consts = recorder.run(run)
    if outer := len(scope.get()):  # the scopes of the derivative begin here; it may be used elsewhere
        for eqn in jaxpr.eqns:
            if eqn.source_info is not None:
                eqn.source_info.scope = eqn.source_info.scope[outer:]
    jaxpr, used = prune(jaxpr)
    kept = [i for i in range(len(consts)) if used[i]]
    jaxpr = jaxpr.replace(constvars=[jaxpr.constvars[i] for i in kept])
    return Linearized(outputs, jaxpr, [consts[i] for i in kept], nonzero)
