"""`Recording.compare`: the first line where a call parts from NumPy, from another call, or from another function."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.pytree import tree_leaves
from ..._ir import dtypes
from ..._ir.jaxpr import ClosedJaxpr, hoisted
from ..._ir.primitive import primitive
from ..._trace.steps import Section, Step, Value, bodies, numbers_of, turns
from . import reference
from .answers import Answer, first_line, number_text, operand_lines, range_text, type_text

if TYPE_CHECKING:
    from .record import Recording


def distance(x: np.ndarray, y: np.ndarray, dtype: Any, scale: float | None = None) -> float:
    """The largest difference in units in the last place of the largest element; infinite if shapes, or the places of
    nan and infinities, differ."""
    if x.shape != y.shape:
        return float("inf")
    if x.dtype.kind not in "fc" or y.dtype.kind not in "fc":
        return 0.0 if np.array_equal(x, y) else float("inf")
    finite = np.isfinite(y)
    if not np.array_equal(np.isfinite(x), finite) or not np.array_equal(np.isnan(x), np.isnan(y)):
        return float("inf")
    if not finite.any():
        return 0.0
    size = max(float(np.abs(y[finite]).max()), scale or 0.0)
    # One unit for all elements: XLA may add in another order, so that small elements are less exact. At least the
    # smallest normal number, so that results near zero have a unit.
    unit = float(dtypes.finfo(dtype).eps) * max(size, float(dtypes.finfo(dtype).tiny))
    return (
        float(np.abs(x[finite].astype(np.complex128 if x.dtype.kind == "c" else np.float64) - y[finite]).max()) / unit
    )


# -- against NumPy and the compiled program


def with_numpy(recording: Recording, ulps: float) -> Answer:
    """Compares each operation with NumPy, then the compiled result with the operations one by one."""
    checked = total = 0
    for step in _all_steps(recording.section):
        total += 1
        exact = reference.evaluate(step)
        if exact is None:
            continue
        checked += 1
        for value, right in zip(step.results, exact, strict=True):
            off = _off(step, value, right)
            if off > ulps:
                details = [f"it differs from NumPy in float64 by {number_text(off)} units in the last place"]
                details += [f"result: {range_text(value)}; NumPy: {range_text(Value(right))}"]
                return Answer(
                    "the compiled program is wrong at", step, [*details, *operand_lines(step, recording.name_of)]
                )
    wrong = _wrong_fusion(recording, ulps)
    if wrong is not None:
        return wrong
    return Answer(f"no difference: {checked} of {total} operations were compared with NumPy in float64")


def _off(step: Step, value: Value, right: np.ndarray) -> float:
    """The distance of a result from the right one. Overflow of the smaller type is no mistake."""
    if not value.is_inexact:
        return 0.0 if np.array_equal(value.numbers, right) else float("inf")
    dtype = value.aval.dtype
    largest = float(dtypes.finfo(dtype).max)
    with np.errstate(all="ignore"):
        right = np.where(np.abs(right) > largest, np.copysign(np.inf, right.real), right)
    terms = 0.0
    if len(step.operands) <= 2 and step.eqn.primitive.series in ("linear", "bilinear"):
        # Sums may cancel: their error is relative to the terms.
        sizes = [
            float(np.abs(x.numbers[np.isfinite(x.numbers)]).max(initial=0.0)) for x in step.operands if x.is_inexact
        ]
        terms = float(np.prod(sizes)) if step.eqn.primitive.series == "bilinear" else max(sizes, default=0.0)
    return distance(value.numbers, right, dtype, terms)


def _all_steps(section: Section) -> Iterator[Step]:
    """The steps, with those of the first turn of each loop."""
    for step in section.steps:
        if step.is_loop:
            first = next(bodies(step), None)
            if first is not None:
                yield from _all_steps(first.section())
        yield step


def _wrong_fusion(recording: Recording, ulps: float) -> Answer | None:
    """The first equation whose value differs when the program up to it is compiled as a whole.

    Fused programs round less often, and add in another order: differences are relative to the largest element.
    """
    if not _differs([numbers_of(x) for x in tree_leaves(recording.result)], recording.section.outputs, ulps):
        return None
    rows = recording.section.rows
    low, high = 0, len(rows) - 1
    # Bisection: each turn compiles a program up to the middle.
    while low < high:
        middle = (low + high) // 2
        if _differs(_prefix(recording, middle), rows[middle], ulps):
            high = middle
        else:
            low = middle + 1
    if not rows or not _differs(_prefix(recording, low), rows[low], ulps):
        return Answer("the compiled result differs from its operations one by one, but no shorter program does")
    step = next((x.step for x in rows[low] if x.step is not None), None)
    details = [f"compiled as a whole, equation {low + 1} of {len(rows)} differs from the same operation alone"]
    return Answer("the compiled program parts from its operations at", step, details)


def _prefix(recording: Recording, last: int) -> list[np.ndarray]:
    """The results of an equation, by a program of it and all equations before it."""
    closed = recording.jaxpr
    eqns = closed.jaxpr.eqns[: last + 1]
    if not eqns[-1].outvars:
        return []
    jaxpr = closed.jaxpr.replace(eqns=eqns, outvars=list(eqns[-1].outvars))
    program = hoisted(ClosedJaxpr(jaxpr, closed.consts))
    args = [x.array for x in recording.section.inputs]
    outs = primitive("jit").bind(*args, jaxpr=program, name="prefix", inline=False)
    return [numbers_of(x) for x in outs]


def _differs(left: Sequence[np.ndarray], right: Sequence[Value], ulps: float) -> bool:
    return any(distance(x, y.numbers, y.aval.dtype) > ulps for x, y in zip(left, right, strict=True) if y.is_inexact)


# -- against another recording


def with_recording(recording: Recording, other: Recording, ulps: float, programs_differ: bool) -> Answer:
    """Compares the steps of two recordings, in order."""
    parting = _parting(recording.section, other.section, ulps)
    if parting is None:
        return Answer(f"no difference in {len(recording.steps)} steps")
    step, partner = parting
    if partner is None:
        return Answer(
            "the runs part at", step, ["the other one has no such operation", *operand_lines(step, recording.name_of)]
        )
    details = []
    for mine, theirs in zip(step.results, partner.results, strict=False):
        details.append(f"here:  {step.name} {type_text(mine)} {range_text(mine)}")
        details.append(f"other: {partner.name} {type_text(theirs)} {range_text(theirs)}")
    if programs_differ:
        details.append(f"the other one is at {first_line(partner.where)}")
    return Answer("the runs part at", step, details, other=partner)


def _parting(left: Section, right: Section, ulps: float) -> tuple[Step, Step | None] | None:
    """The first step of `left` that has no partner in `right`, or whose partner has other values.

    Steps without a partner count only if a value behind them differs: there are several ways to the same values.
    """
    mine, theirs = ([step.name for step in section.steps] for section in (left, right))
    partners: dict[int, Step] = {}
    # By the names of operations, as two functions need not have the same steps.
    for block in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        partners.update((block.a + i, right.steps[block.b + i]) for i in range(block.size))
    alone: dict[int, Step] = {}  # for each step, the first one behind it that has no partner
    for step in left.steps:
        before = [alone[x.step.index] for x in step.operands if x.step is not None and x.step.index in alone]
        partner = partners.get(step.index)
        if partner is None:
            alone[step.index] = before[0] if before else step
        elif not _same(step, partner, ulps):
            if before:
                return before[0], None
            return (_parting_turn(step, partner, ulps) if step.is_loop else None) or (step, partner)
    for x, y in zip(left.outputs, right.outputs, strict=False):
        if x.step is not None and x.step.index in alone and not _same_values(x, y, ulps):
            return alone[x.step.index], None
    return None


def _parting_turn(step: Step, partner: Step, ulps: float) -> tuple[Step, Step | None] | None:
    """The first step in the first turn in which two loops with equal operands part."""
    if not all(_same_values(x, y, ulps) for x, y in zip(step.operands, partner.operands, strict=False)):
        return None
    for mine, theirs in zip(turns(step), turns(partner), strict=False):
        if not all(_same_values(x, y, ulps) for x, y in zip(mine.outputs, theirs.outputs, strict=False)):
            return _parting(mine.section(), theirs.section(), ulps)
    return None


def _same(step: Step, partner: Step, ulps: float) -> bool:
    return len(step.results) == len(partner.results) and all(
        _same_values(x, y, ulps) for x, y in zip(step.results, partner.results, strict=True)
    )


def _same_values(x: Value, y: Value, ulps: float) -> bool:
    if x.aval.shape != y.aval.shape or x.aval.dtype != y.aval.dtype:
        return False
    return distance(x.numbers, y.numbers, x.aval.dtype) <= ulps
