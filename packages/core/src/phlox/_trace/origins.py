"""Walks from a value with a property, such as "has a nan", back to the step where the property arises."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .steps import Section, Step, Value, first_turn

Property = Callable[[Value], bool]


def has_nan(value: Value) -> bool:
    """Whether an element is nan."""
    return value.is_inexact and bool(np.isnan(value.numbers).any())


def has_inf(value: Value) -> bool:
    """Whether an element is infinite."""
    return value.is_inexact and bool(np.isinf(value.numbers).any())


class Origin(NamedTuple):
    """The step where a property arises: no operand has it, or only literals. If an argument has it already, `value` is
    that argument and `step` is the first one on the way that reads it."""

    step: Step
    value: Value | None = None


def origin_of(value: Value, holds: Property) -> Origin | None:
    """The origin of a property that holds for `value`; None if `value` is an argument or literal itself."""
    earliest: Origin | None = None
    if value.step is None:
        return None
    queue, seen = [value.step], {id(value.step)}
    while queue:
        step = queue.pop()
        before = _operands_with(step, holds)
        outside = next((x for x in before if x.step is None and not x.is_literal), None)
        computed = [x.step for x in before if x.step is not None]
        # Several operands may have the property. The earliest step is where it arose first.
        if not computed and (earliest is None or step.index < earliest.step.index):
            earliest = Origin(step, outside)
        for each in computed:
            if id(each) not in seen:
                seen.add(id(each))
                queue.append(each)
    if earliest is not None and earliest.value is None and earliest.step.is_loop:
        return origin_in_loop(earliest.step, holds) or earliest
    return earliest


def origin_in_loop(loop: Step, holds: Property) -> Origin | None:
    """The origin in the first turn of a loop that returns a value with the property."""
    chosen = [i for i, result in enumerate(loop.results) if holds(result)]
    turn = first_turn(loop, lambda turn: any(holds(turn.outputs[i]) for i in chosen))
    if turn is None:
        return None
    section = turn.section()
    return next((origin_of(section.outputs[i], holds) for i in chosen if holds(turn.outputs[i])), None)


def first_origin(section: Section, holds: Property) -> Origin | None:
    """The first step of a section whose results have the property, though no operand has."""
    for step in section.steps:
        if any(map(holds, step.results)) and not any(map(holds, step.operands)):
            return (origin_in_loop(step, holds) if step.is_loop else None) or Origin(step)
    return None


def _operands_with(step: Step, holds: Property) -> list[Value]:
    """The operands that have the property; of a selection, those that have it among the selected elements."""
    operands = [x for x in step.operands if holds(x)]
    # A nan in a case that is not selected does not reach the result.
    if step.name != "select_n":
        return operands
    which, *cases = step.operands
    relevant = []
    for i, case in enumerate(cases):
        selected = which.numbers == i
        if any(case is x for x in operands) and selected.any():
            part = case
            if selected.shape == case.numbers.shape:
                part = Value(case.numbers[selected], case.step, case.label)
                part.loop, part.operand = case.loop, case.operand
            if holds(part):
                relevant.append(case)
    return relevant
