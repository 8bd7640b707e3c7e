"""`Recording.why_large`: the lines on which values grow on the way to a result."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._trace.steps import Step, Turn, Value, bodies
from .answers import Answer, first_line, number_text, operand_lines

if TYPE_CHECKING:
    from .record import Recording

# A loop may have millions of turns.
#: turns of a loop that are measured
_MEASURED_TURNS = 64
#: decimal exponent that stands for an infinity of any type
_INFINITE = 40.0


class Growth(NamedTuple):
    """A step on the way to a result, and the decimal logarithm of the factor by which its result is larger."""

    step: Step
    exponent: float
    result: int


def size(value: Value) -> float:
    """Decimal logarithm of the largest magnitude among the elements; `_INFINITE` for infinities and nan."""
    if not value.is_inexact or value.numbers.size == 0:
        return -math.inf
    largest = float(np.max(np.abs(value.numbers)))
    return math.log10(largest) if 0 < largest < math.inf else (-math.inf if largest == 0 else _INFINITE)


def why_large(recording: Recording, path: str | int | None) -> Answer:
    """See `Recording.why_large`."""
    leaves = [(where, x) for where, x in recording.outputs(path) if x.is_inexact and x.numbers.size]
    if not leaves:
        return Answer("no result has floats")
    where, value = max(leaves, key=lambda leaf: size(leaf[1]))
    chain = _chain(value)
    result = f"the result{where and ' ' + where} has magnitudes up to {_power(size(value))}"
    if not chain:
        return Answer(f"{result}: it is {recording.name_of(value) or 'a constant'}")
    lines = _by_line(chain)
    top = lines[0]
    if top.step.is_loop:
        inner = _in_loop(top)
        if inner is not None:
            turn, growth = inner
            text = f"values grow by {_factor(growth.exponent)} in one turn of {top.step.name} ({turn.name}) at"
            return Answer(
                text, growth.step, [result, *operand_lines(growth.step, recording.name_of)], factor=10**growth.exponent
            )
    details = [result, *operand_lines(top.step, recording.name_of)]
    # 0.3 is a factor of two: smaller growth explains nothing.
    details += [f"then by {_factor(g.exponent)} at {first_line(g.step.where)}" for g in lines[1:3] if g.exponent > 0.3]
    return Answer(f"values grow by {_factor(top.exponent)} at", top.step, details, factor=10**top.exponent)


def _factor(exponent: float) -> str:
    return f"a factor of {_power(exponent)}"


def _power(exponent: float) -> str:
    return "more than 1e+38" if exponent > 38.5 else number_text(10**exponent)


def _chain(value: Value) -> list[Growth]:
    """The steps behind a value, along the operand that makes each result large.

    Behind a square, growth counts twice: a square of a large number is large, and is not the reason.
    """
    chain, degree = [], 1.0
    while value.step is not None:
        step = value.step
        before = _followed(step)
        if before is None:
            break
        own = _degree(step)
        chain.append(Growth(step, degree * (size(value) - own * size(before)), step.results.index(value)))
        degree *= own
        value = before
    return chain


def _degree(step: Step) -> float:
    """The power to which a step raises its operand; 1 for all that are no powers."""
    if step.name == "integer_pow":
        return float(step.eqn.params["y"])
    squares = step.name == "mul" and step.operands[0] is step.operands[1]
    return 2.0 if squares or step.name == "square" else 1.0


def _followed(step: Step) -> Value | None:
    """The operand whose size is compared with that of the result: the largest one.

    Numbers and arguments are factors: they are followed only if no operand is computed.
    """
    operands = [x for x in step.operands if x.is_inexact and math.isfinite(size(x))]
    computed = [x for x in operands if x.step is not None or (x.loop is not None and x.operand is None)]
    return max(computed or [x for x in operands if not x.is_literal] or operands, key=size, default=None)


def _by_line(chain: list[Growth]) -> list[Growth]:
    """For each line, its steepest step with the growth of the whole line; the line that grows most first."""
    lines: dict[tuple[object, int], list[Growth]] = {}
    for growth in chain:
        where = growth.step.where
        lines.setdefault((None, 0) if where is None else (where.code, where.line), []).append(growth)
    tops = []
    for growths in lines.values():
        steepest = max(growths, key=lambda g: g.exponent)
        tops.append(steepest._replace(exponent=sum(g.exponent for g in growths)))
    return sorted(tops, key=lambda g: -g.exponent)


def _in_loop(growth: Growth) -> tuple[Turn, Growth] | None:
    """The turn of a loop in which its result grows most, among the first ones, and the line there."""
    best: tuple[float, Turn] | None = None
    i, last = growth.result, -math.inf
    for turn in itertools.islice(bodies(growth.step), _MEASURED_TURNS):
        now = size(turn.outputs[i])
        # After an infinity, later turns say nothing.
        if now >= _INFINITE and best is not None:
            break
        # The margin keeps rounding from choosing among equal turns.
        if math.isfinite(last) and (best is None or now - last > best[0] + 1e-3):
            best = now - last, turn
        last = now
    if best is None:
        return None
    outputs = best[1].section().outputs
    # A result may be the carry before the turn, which the backward pass needs: then another one grows.
    chain = next((c for c in map(_chain, [outputs[i], *sorted(outputs, key=size, reverse=True)]) if c), [])
    return (best[1], _by_line(chain)[0]) if chain else None
