"""Transposition: evaluates a linear Jaxpr backwards, from cotangents of outputs to cotangents of inputs.

If the Jaxpr computes t -> A t, its transpose computes c -> Aᵀ c. Linearization followed by transposition is reverse
mode. The `transpose` rule of a primitive gets the cotangents of its results and its operands: a `Linear` placeholder
for an operand that it is linear in, else the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from .._base.source import Replay, replays
from .._ir.avals import ShapedArray
from .._ir.explicit import any_specs
from .._ir.jaxpr import Atom, Jaxpr, Literal, Var, dependent_results, only, width
from .._trace.axes import tracked_axes
from .array_operations import Zero, add
from .varying import as_typed


class Linear:
    """Stands for an operand that an operation is linear in; it has a type and no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval.short})"


class Unwanted(Linear):
    """A `Linear` argument whose cotangent is not needed."""

    __slots__ = ()


def is_linear(x: Any) -> bool:
    """Whether `x`, an operand that a `transpose` rule gets, is a placeholder: the operation is linear in that operand.

    Args:
      x: an operand: a `Linear`, or a value.

    Returns:
      A bool.

    >>> is_linear(1.0), is_linear(Linear(phlox.typeof(1.0)))
    (False, True)
    """
    return type(x) is Linear


@replays
def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of `args` (None for an argument that is not `Linear`), given the `cotangents` of the outputs.

    Cotangents may be `Zero`. Results that do not depend on `Linear` arguments are computed first, in order: also those
    of a loop or call whose other results are linear. The cotangent of an `Unwanted` argument is `Zero`; operations that
    only this cotangent needs are not done.
    """
    values: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Var] = set()
    active: set[Var] = set()
    for v, arg in zip(jaxpr.invars, args, strict=True):
        if isinstance(arg, Linear):
            linear.add(v)
            if type(arg) is Linear:
                active.add(v)
        else:
            values[v] = arg

    def read(v: Atom) -> Any:
        if isinstance(v, Literal):
            return v.val
        return Linear(v.aval) if v in linear else values[v]

    wide, none = jaxpr.is_wide, nullcontext()
    backward = []
    with Replay() as replay:
        for eqn in jaxpr.eqns:
            operands = [v in linear for v in eqn.invars]
            if any(operands):
                is_result_linear = dependent_results(eqn, operands)
                linear.update(only(eqn.outvars, is_result_linear))
                known = None
                if not all(is_result_linear):
                    known = eqn.primitive.narrow(eqn, [not flag for flag in is_result_linear])
                    eqn = eqn.primitive.narrow(eqn, is_result_linear)
                if any(v in active for v in eqn.invars if type(v) is Var):
                    active.update(v for v in eqn.outvars if v in linear)
                    backward.append(eqn)
                if known is None:
                    continue
                eqn = known
            replay.enter(eqn.source_info)
            with width(eqn) if wide else none:
                out = eqn.primitive.bind(*[read(v) for v in eqn.invars], **eqn.params)
            values.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))

    typed = bool(tracked_axes()) or any_specs()
    gathered: dict[Var, Any] = {}

    def give(v: Atom, cotangent: Any) -> None:
        if isinstance(v, Var) and v in active and cotangent is not None and type(cotangent) is not Zero:
            if typed:  # as that of an operand which was declared as varying where others vary
                cotangent = as_typed(cotangent, v.aval)
            gathered[v] = add(gathered[v], cotangent) if v in gathered else cotangent

    for out, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        give(out, cotangent)
    if not gathered:
        backward = []
    with Replay() as replay:
        for eqn in reversed(backward):
            if not any(v in gathered for v in eqn.outvars) and not eqn.primitive.transposes_zeros:
                continue
            incoming = [gathered.pop(v, None) for v in eqn.outvars]
            incoming = [Zero(v.aval) if c is None else c for v, c in zip(eqn.outvars, incoming, strict=True)]
            rule = eqn.primitive.rule("transpose")
            cotangent_in = incoming if eqn.primitive.multiple_results else incoming[0]
            replay.enter(eqn.source_info)
            with width(eqn) if wide else none:
                outgoing = rule(cotangent_in, *[read(v) for v in eqn.invars], **eqn.params)
            for operand, cotangent in zip(eqn.invars, outgoing, strict=True):
                give(operand, cotangent)
    return [
        gathered.get(v, Zero(v.aval)) if isinstance(arg, Linear) else None
        for v, arg in zip(jaxpr.invars, args, strict=True)
    ]
