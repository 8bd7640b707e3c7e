"""Finds the operation that a nan or an infinity comes from, for the flags `debug_nans` and `debug_infs`.

If a result of a program is bad, its Jaxpr is evaluated again step by step, as recordings are (`_trace.steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import config, source
from .._base.errors import InvalidValueError
from .._ir.jaxpr import Jaxpr
from .._trace.origins import Property, has_inf, has_nan, origin_of
from .._trace.steps import Section, Value

#: called with each error before it is raised: the prompt of ``python -m phlox debug``
on_error: Callable[[InvalidValueError], None] | None = None
_PROPERTIES: dict[str, Property] = {"nan": has_nan, "inf": has_inf}


def check(looks: Sequence[str], jaxpr: Jaxpr, name: str, arguments: Sequence[Any], results: Sequence[Any]) -> None:
    """Raises `InvalidValueError` if a result of a run of `jaxpr` has a value of one of the kinds in `looks`."""
    for look in looks:
        if any(_PROPERTIES[look](Value(x)) for x in results):
            error = _error(look, jaxpr, name, arguments)
            if on_error is not None:
                on_error(error)
            raise error


def _error(look: str, jaxpr: Jaxpr, name: str, arguments: Sequence[Any]) -> InvalidValueError:
    """The error that names the operation which a bad result comes from."""
    holds = _PROPERTIES[look]
    # The evaluation is not checked itself, which would end in endless recursion.
    with config.scope(debug_nans=False, debug_infs=False):
        section = Section(jaxpr, [Value(x, label="an argument") for x in arguments])
        origins = [origin_of(out, holds) for out in section.outputs if holds(out)]
    step = next((origin.step for origin in origins if origin is not None), None)
    program = jaxpr, list(arguments)
    if step is None:
        return InvalidValueError(
            f"invalid value ({look}) encountered in a result of {name}; none of its operations gives one by itself",
            value=look,
            primitive=None,
            equation=None,
            path=None,
            program=program,
        )
    # The innermost part first. The operation itself may be the last part of the path.
    inside = "".join(f", in {part}" for part in reversed((name, *step.path)) if part != step.name)
    return InvalidValueError(
        f"invalid value ({look}) encountered in {step.name}: {step.eqn}{inside}",
        where=step.where or source.user_location(),
        value=look,
        primitive=step.name,
        equation=str(step.eqn),
        path=step.path,
        program=program,
    )
