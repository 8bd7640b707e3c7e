"""``jax.interpreters.partial_eval``: evaluates a function whose arguments are partly known, and stages it to a Jaxpr.

flax asks by it which results of a loop body do not depend on the loop's variables, and which parameters do not depend
on the inputs. Operations with an unknown operand only compute types; all others are executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phlox import typeof
from phlox.core import Trace, Tracer
from phlox.extend import Primitive, ShapedArray
from phlox.extend.core import ClosedJaxpr, Jaxpr

from .._core import (
    JaxprTrace as DynamicJaxprTrace,
    JaxprTracer as DynamicJaxprTracer,
    current_trace,
    hoist_consts,
    prune,
    stage,
)
from ._functions import called

__all__ = ["DynamicJaxprTrace", "DynamicJaxprTracer"]


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


def trace_to_jaxpr_dynamic(
    fun: Any,
    in_avals: Sequence[ShapedArray],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """Stages `fun`, a function of flat arguments.

    Args:
      fun: the function.
      in_avals: the types of its arguments.
      keep_inputs: which arguments are inputs of the Jaxpr; the others must not be read. None: all.
      lower: accepted; values with types of their own are always taken apart.
      auto_dce: drops equations whose results are not used.

    Returns:
      (Jaxpr, types of its outputs, constants): the constants are the leading inputs of the Jaxpr, as since JAX 0.11.
    """
    staged, consts = stage(called(fun), in_avals)
    jaxpr = hoist_consts(staged)
    kept = [True] * len(consts) + list([True] * len(in_avals) if keep_inputs is None else keep_inputs)
    if auto_dce or not all(kept):
        pruned, _ = dce_jaxpr(jaxpr, True, True)
        jaxpr = pruned.replace(invars=[v for v, keep in zip(jaxpr.invars, kept, strict=True) if keep])
    return jaxpr, staged.out_avals, consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Drops the outputs that are not used, and the equations and inputs that no other output needs.

    Args:
      jaxpr: the Jaxpr.
      used_outputs: for each output, whether it is used; a bool stands for all.
      instantiate: for each input, whether it stays even if it is not read; a bool stands for all.

    Returns:
      (Jaxpr, inputs): for each input of `jaxpr`, whether the result still has it.
    """
    if isinstance(used_outputs, bool):
        used_outputs = [used_outputs] * len(jaxpr.outvars)
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(jaxpr.invars)
    pruned, used = prune(hoist_consts(jaxpr), used_outputs)
    used_inputs = [u or i for u, i in zip(used[len(jaxpr.constvars) :], instantiate, strict=True)]
    invars = [v for v, there in zip(jaxpr.invars, used_inputs, strict=True) if there]
    return pruned.replace(constvars=jaxpr.constvars, invars=invars), used_inputs


convert_constvars_jaxpr = hoist_consts


def close_jaxpr(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The Jaxpr, which has no constants, as a `ClosedJaxpr`."""
    return ClosedJaxpr(jaxpr, ())


def dce_jaxpr_consts(
    jaxpr: ClosedJaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, for a Jaxpr with constants, of which those that are not read are dropped too.

    Returns:
      (ClosedJaxpr, constants, inputs): for each constant and each input, whether the result still has it.
    """
    count = jaxpr.num_consts
    keep = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    pruned, used = dce_jaxpr(hoist_consts(jaxpr.jaxpr), used_outputs, [False] * count + keep)
    num_consts = sum(used[:count])
    open_jaxpr = pruned.replace(constvars=pruned.invars[:num_consts], invars=pruned.invars[num_consts:])
    consts = [c for c, u in zip(jaxpr.consts, used, strict=False) if u]
    return ClosedJaxpr(open_jaxpr, consts), used[:count], used[count:]
