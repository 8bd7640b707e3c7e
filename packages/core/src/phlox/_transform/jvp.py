"""Forward-mode differentiation: each primal value is computed together with its tangent.

    jvp(f)(x, t) = f(x), f'(x) t

The `jvp` rule of a primitive computes the tangents of its outputs. An operation without tangents goes to the parent
trace unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import RefError
from .._base.source import Location
from .._ir import dtypes
from .._ir.jaxpr import decomposes, jaxprs_in
from .._ir.primitive import Primitive, current_trace
from .._trace.staging import JaxprTrace
from .._trace.trace import Trace, Tracer, typeof
from .array_operations import Zero, zero_tangent
from .manual_axes import as_typed_all
from .spectra import NOTHING, Followed, Operand, Spectrum


class JVPTracer(Tracer):
    """A primal value with a tangent that is not a symbolic `Zero`; `spectrum`: see `spectra`."""

    __slots__ = ("aval", "primal", "spectrum", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any, spectrum: Spectrum | None = None):
        self.owner = trace
        self.primal = primal
        self.tangent = tangent
        self.spectrum = spectrum
        self.aval = typeof(primal)

    # Eager differentiation has the values at hand, so Python conditions work under `grad`, as in JAX.
    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal


class JVPTrace(Trace):
    """Applies the jvp rule of each operation, under the parent trace."""

    __slots__ = ()

    def split(self, x: Any) -> tuple[Any, Any]:
        """The primal value and the tangent of `x`."""
        if type(x) is JVPTracer and x.owner is self:
            return x.primal, x.tangent
        return x, zero_tangent(x)

    def join(self, primal: Any, tangent: Any) -> Any:
        """A tracer for the primal with this tangent; the primal itself if the tangent is a `Zero`, or float0."""
        # A value with a zero tangent is no tracer, so that nothing that is computed from it is differentiated.
        if type(tangent) is Zero or getattr(tangent, "dtype", None) is dtypes.float0:
            return primal
        if type(tangent) is Followed:
            return JVPTracer(self, primal, *tangent)
        return JVPTracer(self, primal, tangent)

    def needs_spectra(self, params: dict[str, Any]) -> bool:
        """Whether the spectra inside of a call may be needed outside: the result is differentiated again, or staged."""
        if not any(map(decomposes, jaxprs_in(params))):
            return False
        trace = self.parent
        while trace is not None:
            if isinstance(trace, JVPTrace) or type(trace) is JaxprTrace:
                return True
            trace = trace.parent
        return False

    def operand(self, x: Any) -> Operand:
        """`x` as the rules `spectral` take it."""
        if type(x) is JVPTracer and x.owner is self:
            return Operand(x.primal, x.spectrum or NOTHING)
        return Operand(x, NOTHING)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        active = [x for x in args if type(x) is JVPTracer and x.owner is self]
        has_spectrum = any(x.spectrum for x in active)
        # The rule of a call returns tangents without spectra. Its equations are bound one by one where spectra count.
        if active and primitive.unfold is not None and (has_spectrum or self.needs_spectra(params)):
            return primitive.unfold(*args, **params)
        # Rules bind operations of the enclosing trace: a second derivative sees the operations of the first one.
        token = current_trace.set(self.parent)
        try:
            if not active:
                return primitive.bind(*args, **params)
            pairs = [self.split(x) for x in args]
            # A `TangentTrace` would record an equation that mixes primals and tangents, as rules of programs bind it.
            separate = self.parent is not None and self.parent.separates_tangents
            rule = (separate and primitive.linearize) or primitive.rule("jvp")
            out, tangent = rule([p for p, _ in pairs], [t for _, t in pairs], **params)
            if has_spectrum and primitive.spectral is not None and type(tangent) is not Zero:
                operands = [self.operand(x) for x in args]
                tangent = primitive.spectral(operands, out, tangent, **params)
        finally:
            current_trace.reset(token)
        if primitive.multiple_results:
            return [self.join(p, t) for p, t in zip(out, tangent, strict=True)]
        return self.join(out, tangent)

    def write_ref(self, ref: Any, value: Any) -> None:
        primal, tangent = self.split(value)
        if type(tangent) is not Zero:
            raise RefError(
                f"a value that is differentiated was written to a reference of type {ref.aval} from outside",
                instead="phlox.lax.stop_gradient(value); or new_ref in the differentiated function. Move the array "
                "reference to the arguments to differentiate with respect to it",
            )
        ref.write(self.parent, primal)

    def explain(self, tracer: Tracer) -> str:
        inner = tracer.primal if type(tracer) is JVPTracer else None
        return inner.owner.explain(inner) if isinstance(inner, Tracer) else "being differentiated"

    def creation_site(self, tracer: Tracer) -> Location | None:
        inner = tracer.primal if type(tracer) is JVPTracer else None
        return inner.owner.creation_site(inner) if isinstance(inner, Tracer) else None


def by_rule(args: Sequence[Any], rule: Callable[..., tuple[Sequence[Any], Sequence[Any]]]) -> list[Any]:
    """Outputs of an operation on `args` with the jvp rule ``rule(primals, tangents)``. A `JVPTrace` must be current."""
    trace = current_trace.get()
    assert isinstance(trace, JVPTrace)
    token = current_trace.set(trace.parent)
    try:
        pairs = [trace.split(x) for x in args]
        outs, tangents = rule([p for p, _ in pairs], [t for _, t in pairs])
    finally:
        current_trace.reset(token)
    return [trace.join(p, t) for p, t in zip(outs, tangents, strict=True)]


def push_forward(
    trace: JVPTrace, fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Runs flat `fun` under `trace`; returns its outputs and their tangents, each of which may be a `Zero`."""
    tracers = [trace.join(p, t) for p, t in zip(primals, tangents, strict=True)]
    pairs = [trace.split(out) for out in trace.run(fun, *tracers)]
    outs = [p for p, _ in pairs]
    # A tangent may vary between the devices of a `shard_map` where its primal value does not.
    types = (p.varying(p.vma | t.vma) for p, t in (map(typeof, pair) for pair in pairs))
    return outs, as_typed_all([t for _, t in pairs], types)


def jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Outputs and output tangents of flat `fun` at `primals` in direction `tangents`."""
    return push_forward(JVPTrace(), fun, primals, tangents)
