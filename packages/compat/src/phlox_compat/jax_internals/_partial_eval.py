"""``jax.interpreters.partial_eval``: evaluates a function whose arguments are partly known.

flax asks by it which results of a loop body do not depend on the loop's variables, and which parameters do not depend
on the inputs. Operations with an unknown operand only compute types; all others are executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phlox import typeof
from phlox.core import Trace, Tracer
from phlox.extend import Primitive, ShapedArray

from .._core import current_trace
from ._functions import called


class PartialVal(tuple[Any, Any]):
    """(type, None) for an unknown value, (None, value) for a known one."""

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls((aval, None))

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        return cls((None, value))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        return self[1] if self[0] is None else None

    def get_aval(self) -> ShapedArray:
        return typeof(self[1]) if self[0] is None else self[0]


class UnknownTracer(Tracer):
    """A value of which only the type is known."""

    __slots__ = ("aval",)

    def __init__(self, trace: Trace, aval: ShapedArray):
        self.owner = trace
        self.aval = aval


class UnknownTrace(Trace):
    """Computes types where an operand is unknown, and executes all other operations."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        token = current_trace.set(self.parent)
        try:
            if not any(type(x) is UnknownTracer and x.owner is self for x in args):
                return primitive.bind(*args, **params)
            types = primitive.types_of(tuple(typeof(x) for x in args), params)
        finally:
            current_trace.reset(token)
        if primitive.multiple_results:
            return [UnknownTracer(self, aval) for aval in types]
        return UnknownTracer(self, types)


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[Any], instantiate: Any = False
) -> tuple[None, list[PartialVal], list[Any]]:
    """Evaluates `fun` on partly known values.

    Returns:
      (None, results, []): JAX also returns the program of the unknown part, and its constants.
    """
    trace = UnknownTrace()

    def of(x: Any) -> PartialVal:
        unknown = type(x) is UnknownTracer and x.owner is trace
        return PartialVal.unknown(x.aval) if unknown else PartialVal.known(x)

    def run() -> list[PartialVal]:
        args = [UnknownTracer(trace, aval) if aval is not None else value for aval, value in pvals]
        return [of(x) for x in called(fun)(*args)]

    return None, trace.run(run), []


trace_to_jaxpr = trace_to_jaxpr_nounits
