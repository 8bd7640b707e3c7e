"""`Recording.why_nan`: the operation that gives the first nan, or the infinity that it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._trace.origins import Origin, first_origin, has_inf, has_nan, origin_in_loop, origin_of
from ..._trace.steps import Step, Value
from .answers import Answer, first_line, number_text, operand_lines, range_text, share_text, type_text

if TYPE_CHECKING:
    from .record import Recording


def why_nan(recording: Recording, path: str | int | None) -> Answer:
    """See `Recording.why_nan`."""
    for where, value in recording.outputs(path):
        if has_nan(value):
            result = f"the result{where and ' ' + where}"
            origin = origin_of(value, has_nan)
            if origin is None:
                return Answer(f"{result} is {recording.name_of(value) or 'a constant'}, which has nan")
            return _explained(recording, origin, result)
    # Without a nan, an infinity is what to look for.
    infinite = _why_infinite(recording, path)
    if infinite is not None:
        return infinite
    hidden = first_origin(recording.section, has_nan)
    if hidden is None:
        return Answer("no value of this recording is nan")
    answer = _explained(recording, hidden, "")
    answer._details.insert(0, "no result has a nan: this one is not selected later, or is not used")
    return answer


def _why_infinite(recording: Recording, path: str | int | None) -> Answer | None:
    """The answer where no result is nan but one is infinite."""
    for where, value in recording.outputs(path):
        origin = origin_of(value, has_inf) if has_inf(value) else None
        if origin is not None and origin.value is None:
            details = [_event(origin.step, "inf"), *operand_lines(origin.step, recording.name_of)]
            details.append(f"no result has a nan; the result{where and ' ' + where} is infinite because of it")
            return Answer("an infinity comes from", origin.step, details, nan_step=None)
    return None


def _explained(recording: Recording, origin: Origin, result: str) -> Answer:
    """The answer for a nan that arises at `origin`, and reaches the leaf `result` of the result."""
    step = origin.step
    if origin.value is not None:
        name = recording.name_of(origin.value)
        nan = f"the argument {name} has nan ({range_text(origin.value)}), and is first read at"
        return Answer(nan, step, argument=name)
    infinite = next((x for x in step.operands if has_inf(x)), None)
    cause = None if infinite is None else _source_of_inf(infinite)
    details = [_event(step, "nan")]
    if cause is None or cause is step:
        details += operand_lines(step, recording.name_of)
    elif cause.where is not None:
        details = [_event(cause, "inf"), *operand_lines(cause, recording.name_of)]
        details.append(f"it becomes nan at {first_line(step.where)}: {_event(step, 'nan')}")
        step = cause
    details += _advice(step, origin.step)
    if result:
        details.append(f"{result} has nan because of it")
    return Answer("nan comes from", step, details, nan_step=origin.step)


def _source_of_inf(infinite: Value) -> Step | None:
    """The step that makes an infinite operand infinite; None if it is an argument."""
    loop = infinite.loop
    if infinite.step is None and loop is not None:
        outside = next((x for x in loop.operands if has_inf(x)), None)
        if outside is not None:
            return _source_of_inf(outside)
        origin = origin_in_loop(loop, has_inf)
    else:
        origin = origin_of(infinite, has_inf)
    return None if origin is None or origin.value is not None else origin.step


def _event(step: Step, bad: str) -> str:
    """The first bad element with the operands of it: "log of -1 is nan at [2, 0], 3 of 12 elements"."""
    test = np.isnan if bad == "nan" else np.isinf
    for value in step.results:
        if value.is_inexact and test(value.numbers).any():
            x = value.numbers
            at = tuple(int(i) for i in np.argwhere(test(x))[0])
            share = f"{share_text(int(test(x).sum()), x.size)} elements of {type_text(value)}"
            place = f" at {list(at)}, {share}" if x.shape else ""
            operands = _elements(step, at)
            of = f" of {' and '.join(map(number_text, operands))}" if operands else ""
            return f"{step.name}{of} is {number_text(x[at])}{place}{_rows(step, x, at)}"
    return step.name


def _elements(step: Step, at: tuple[int, ...]) -> list[Any]:
    """The elements of the operands at an index of the result, of elementwise operations; else none."""
    shapes = {x.numbers.shape for x in step.operands if x.numbers.shape}
    # Only elementwise operations have the elements of operands at the index of the result.
    if len(shapes) > 1 or not step.operands or step.name == "select_n":
        return []
    if shapes and len(next(iter(shapes))) != len(at):
        return []
    if any(n <= i for shape in shapes for n, i in zip(shape, at, strict=True)):
        return []
    return [x.numbers[at] if x.numbers.shape else x.numbers[()] for x in step.operands if x.numbers.size]


def _rows(step: Step, x: np.ndarray, at: tuple[int, ...]) -> str:
    """The row of `vmap` with the bad element, where its axis can be told: it is the first axis of a vmapped value."""
    if not any(name == "vmap" for name in step.scope) or not at:
        return ""
    bad = np.unique(np.argwhere(~np.isfinite(x))[:, 0])
    rows = ", ".join(map(str, bad[:5])) + (", …" if len(bad) > 5 else "")
    return f"; rows {rows} along the first axis" if len(bad) > 1 else f"; row {rows} along the first axis"


def _advice(cause: Step, nan: Step) -> list[str]:
    """What to write instead."""
    # The trap of ``where``: 0 times infinity, in the derivative of the branch that is not selected.
    if nan.is_backward and any(has_inf(x) for x in nan.operands) and any(_has_zero(x) for x in nan.operands):
        return [
            "the derivative of this line is infinite and its cotangent is zero, as behind jnp.where, which selects "
            "values but not derivatives",
            "instead: select a safe operand first: f(jnp.where(mask, x, 1.0)), then jnp.where(mask, …, 0.0)",
        ]
    if cause.name in ("gather", "select_n") and any(x.is_literal and has_nan(x) for x in nan.operands):
        return ["a nan of the program is selected: for indexing it stands for an index out of range"]
    return []


def _has_zero(x: Value) -> bool:
    return x.is_inexact and bool((x.numbers == 0).any())
