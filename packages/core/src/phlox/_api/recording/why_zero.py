"""`Recording.why_zero`: the factor that makes a gradient, or another result, zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..._base.errors import PhloxError
from ..._ir import dtypes
from ..._trace.origins import Property, origin_of
from ..._trace.steps import Step, Value
from ..._transform.array_operations import Zero
from .answers import Answer, operand_lines

if TYPE_CHECKING:
    from .record import Recording


def why_zero(recording: Recording, path: str | int | None) -> Answer:
    """See `Recording.why_zero`."""
    is_constant = _constants()
    # First results that are zero as a whole, as those are the clear mistakes.
    for name, whole in ((" is zero", True), (" has zeros", False)):
        for where, value in recording.outputs(path):
            holds = _zeros(whole, is_constant)
            text = f"the result{where and ' ' + where}{name}"
            # Zero by its structure: no argument can change it.
            if _zeros(whole, lambda _: False)(value):
                if is_constant(value):
                    return _no_derivative(recording, where, value, text)
                return _explained(recording, value, holds, text)
    return Answer("no result is zero")


def _zeros(whole: bool, is_constant: Callable[[Value], bool]) -> Property:
    """The property that all elements are zero, in a value that depends on arguments; or at least one, in a computed
    value."""
    test = np.any if whole else np.all

    def holds(x: Value) -> bool:
        if not whole and x.step is None:  # single zeros are common in arguments
            return False
        return x.is_inexact and x.numbers.size > 0 and not test(x.numbers) and not is_constant(x)

    return holds


def _constants() -> Callable[[Value], bool]:
    """A function that tells whether a value is computed from literals alone, with a memory of its own."""
    known: dict[int, bool] = {}

    def is_constant(value: Value) -> bool:
        if value.step is None:
            return value.is_literal or (value.operand is not None and is_constant(value.operand))
        step = value.step
        stack = [step]
        while stack:  # no recursion: chains of steps are longer than Python's stack
            top = stack[-1]
            if id(top) in known:
                stack.pop()
                continue
            missing = [x.step for x in top.operands if x.step is not None and id(x.step) not in known]
            if missing:
                stack += missing
                continue
            known[id(top)] = all(known[id(x.step)] if x.step is not None else is_constant(x) for x in top.operands)
            stack.pop()
        return known[id(step)]

    return is_constant


def _explained(recording: Recording, value: Value, holds: Property, text: str) -> Answer:
    origin = origin_of(value, holds)
    if origin is None:
        return Answer(f"{text}: it is {recording.name_of(value) or 'a constant'}")
    step = origin.step
    details = [f"{text} because of it", *operand_lines(step, recording.name_of)]
    if origin.value is not None:
        name = recording.name_of(origin.value)
        return Answer(f"zero comes from the argument {name}, which is zero and first read at", step, details)
    return Answer("zero comes from", step, [_reason(step), *details])


def _reason(step: Step) -> str:
    """The sentence that says how the step makes zero."""
    if step.name == "select_n":
        return "its condition selects zeros"
    if step.name in ("max", "min", "clamp"):
        return "all elements are beyond the bound, which is returned in their place"
    inexact = [x for x in step.operands if x.is_inexact]
    if inexact and all(x.numbers.size and np.all(x.numbers) for x in inexact):
        smallest = dtypes.finfo(step.results[0].aval.dtype).smallest_subnormal
        sizes = np.concatenate([np.abs(x.numbers).ravel() for x in inexact])
        if float(sizes.min()) < 1 and step.eqn.primitive.series in ("bilinear", "quotient"):
            return f"no operand is zero: the exact result is below the smallest number of the type, {smallest:.2g}"
    return f"{step.name} returns zero for these operands"


# -- gradients that are zero whatever the values are


def _no_derivative(recording: Recording, where: str, value: Value, text: str) -> Answer:
    """The answer for a gradient that is zero by the structure of the program: no derivative passes some operation."""
    argument = _argument_for(recording, where, value)
    if argument is None:
        return Answer(f"{text}: it is computed from numbers alone, and from no argument")
    name = argument.label or "the argument"
    cuts = _cuts(recording, argument)
    if not cuts:
        return Answer(f"{text}: no operation on the way to the result reads {name}")
    # A comparison is the mask of a selection more often than the reason: other operations come first.
    step = next((cut for cut in cuts if cut.results[0].aval.dtype != np.bool_), cuts[0])
    types = ", ".join(x.aval.short for x in step.results)
    why = f"no derivative passes {step.name}, whose result {types} is constant or an integer for derivatives"
    return Answer("zero comes from", step, [why, f"{text}: the way from {name} ends here"], argument=name)


def _argument_for(recording: Recording, where: str, value: Value) -> Value | None:
    """The argument that a leaf of the result is the gradient of: it has the type, and a path with the same end."""
    arguments = recording.section.inputs[len(recording.jaxpr.consts) :]
    inputs = [x for x in arguments if x.is_inexact and x.aval.shape == value.aval.shape]
    # Gradients have the paths of their arguments.
    for tail in (where, where[where.find("]") + 1 :]):  # the second without the number of value_and_grad's tuple
        for x in inputs:
            if x.label is not None and x.label.endswith(tail):
                return x
    return inputs[0] if inputs else None


def _cuts(recording: Recording, argument: Value) -> list[Step]:
    """The steps where derivatives along ways from `argument` end."""
    reached, cuts = {id(argument)}, []
    for step in recording.steps:
        read = [id(x) in reached for x in step.operands]
        if step.is_backward or not any(read):
            continue
        if _ends(step, read):
            cuts.append(step)
        else:
            reached.update(id(x) for x in step.results)
    return cuts


def _ends(step: Step, read: list[bool]) -> bool:
    """Whether the results of a step have no derivative with respect to the operands that are `read`."""
    if not any(x.is_inexact for x in step.results):
        return True
    # The derivative rule itself tells whether it passes derivatives.
    rule = step.eqn.primitive.jvp
    if rule is None or not all(x.is_inexact for x, r in zip(step.operands, read, strict=True) if r):
        return rule is None
    primals = [x.array for x in step.operands]
    # The values of tangents do not matter, so the operands stand for them.
    tangents = [x.array if r else Zero(x.aval) for x, r in zip(step.operands, read, strict=True)]
    try:
        _, out = rule(primals, tangents, **step.eqn.params)
    except PhloxError:
        return True
    return all(type(t) is Zero for t in (out if step.eqn.primitive.multiple_results else [out]))
