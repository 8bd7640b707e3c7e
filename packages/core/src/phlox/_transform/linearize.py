"""Linearization: computes a function and records its derivative as a linear Jaxpr, in one pass.

This is forward mode with unknown tangents. Jvp rules run under a `TangentTrace`, which records each operation that has
a tangent among its operands and passes all others on to its parent. Primal values that recorded operations read, the
residuals, become constants of the linear Jaxpr.

A primitive that holds Jaxprs has a rule `linearize`, because its jvp rule would mix primal and tangent computation in
one equation. The rule has the signature of a jvp rule and binds separate operations for the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._base.source import scope
from .._ir.dependence import separated
from .._ir.jaxpr import Atom, Jaxpr, only, prune, without
from .._ir.primitive import Primitive, current_trace
from .._trace.staging import JaxprTrace, JaxprTracer
from .._trace.trace import Trace, bind_under, typeof
from .array_operations import Zero, drop_zeros
from .jvp import JVPTrace, push_forward


class TangentTrace(JaxprTrace):
    """Records operations on tangents; all other operations go to the parent trace."""

    __slots__ = ()
    separates_tangents = True

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        moving = [type(x) is JaxprTracer and x.owner is self for x in args]
        if not any(moving):
            return bind_under(self.parent, primitive, args, params)
        outs = super().process(primitive, args, params)
        if primitive.drop_unused is None:  # it holds no programs: all results depend on all operands
            return outs
        # Users' rules may call compiled functions of primals and tangents, which return primals too.
        eqn = self.eqns[-1]
        known, linear = separated(eqn, moving)
        if known is None:
            return outs
        values: dict[Atom, Any] = dict(zip(eqn.invars, args, strict=True))
        operands = tuple(values[v] for v in known.invars)
        results = dict(zip(known.outvars, bind_under(self.parent, primitive, operands, known.params), strict=True))
        self.eqns[-1] = linear.replace(invars=[self.atom(results[v]) if v in results else v for v in linear.invars])
        return [results.get(v, out) for v, out in zip(eqn.outvars, outs, strict=True)]

    # Constants are primal values, which this trace does not record: its parent may.
    def recorder(self) -> Any:
        return Trace.recorder(self)

    # References are read and written while the primal values are computed, not when tangents are.
    def read_ref(self, ref: Any) -> Any:
        return ref.read(self.parent)

    def write_ref(self, ref: Any, value: Any) -> None:
        ref.write(self.parent, value)


class Linearized(NamedTuple):
    """A function linearized at a point: its outputs, and its derivative as a linear Jaxpr.

    `jaxpr` maps the tangents of the active inputs to the tangents of the outputs marked in `nonzero`. `residuals` are
    the values of its constants.
    """

    outputs: list[Any]
    jaxpr: Jaxpr
    residuals: list[Any]
    nonzero: list[bool]


def linearize(fun: Callable[..., Sequence[Any]], primals: Sequence[Any], active: Sequence[bool]) -> Linearized:
    """Linearizes flat `fun` at `primals`, with respect to the inputs marked in `active`."""
    avals = [typeof(x).tangent() for x in primals]

    def run(arguments: list[Any]) -> tuple[list[Any], list[Any]]:
        rest = iter(arguments)
        tangents = [next(rest) if moves else Zero(aval) for moves, aval in zip(active, avals, strict=True)]
        # The tangent trace is current here. It becomes the parent of the jvp trace, and so receives the operations that
        # jvp rules bind.
        return push_forward(JVPTrace(), fun, primals, tangents)

    return _record(run, only(avals, active))


def separate(
    fun: Callable[..., Sequence[Any]], known: Sequence[Any], avals: Sequence[Any], is_tangent: Sequence[bool]
) -> Linearized:
    """Runs flat `fun` on the values `known` and on tangents of types `avals`, in which it is linear.

    `is_tangent` tells the arguments apart. `outputs` are those that do not depend on the tangents; `jaxpr` computes the
    other ones, marked in `nonzero`.
    """

    def run(tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        trace = current_trace.get()
        operands = {True: iter(tangents), False: iter(known)}
        outs = fun(*[next(operands[moves]) for moves in is_tangent])
        depends = [type(x) is JaxprTracer and x.owner is trace for x in outs]
        return without(outs, depends), [x if flag else Zero(typeof(x)) for x, flag in zip(outs, depends, strict=True)]

    return _record(run, avals)


def _record(run: Callable[[list[Any]], tuple[list[Any], list[Any]]], avals: Sequence[Any]) -> Linearized:
    """Records how the tangents that ``run(tangents) -> outputs, tangents`` returns depend on those that it takes."""
    tangent_trace = TangentTrace("linear")
    arguments = [tangent_trace.argument(aval) for aval in avals]

    outputs, out_tangents = tangent_trace.run(run, arguments)
    nonzero = [type(t) is not Zero for t in out_tangents]
    jaxpr, consts = tangent_trace.jaxpr(drop_zeros(out_tangents))
    if outer := len(scope.get()):  # drops the outer name scopes: `stage` explains why
        for eqn in jaxpr.eqns:
            if eqn.source_info is not None:
                eqn.source_info.scope = eqn.source_info.scope[outer:]
    # Jvp rules also record tangents that no output needs. Their residuals would stay in memory until the backward pass.
    jaxpr, used = prune(jaxpr)
    indices = [i for i in range(len(consts)) if used[i]]
    jaxpr = jaxpr.replace(constvars=[jaxpr.constvars[i] for i in indices])
    return Linearized(outputs, jaxpr, [consts[i] for i in indices], nonzero)
