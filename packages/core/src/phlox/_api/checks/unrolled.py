"""Unrolled loops: lines of the user that recorded more than a thousand equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..._base.checks import report
from ..._base.source import Location
from ..._ir.jaxpr import Jaxpr, JaxprEqn, jaxprs_in

#: so many equations of one line are reported …
MANY = 1000
#: … if nearly all of them are operations that are there so often, with the same types. A line that calls a deep network
#: once also records many equations, but some of their kinds occur once a layer, or once.
_REPEATED, _MOST = 100, 0.9


def check(jaxpr: Jaxpr) -> None:
    """Reports the line that recorded most equations, if they are too many."""
    if _count(jaxpr) <= MANY:
        return
    lines = by_line(jaxpr)
    location, equations = max(lines, key=lambda line: len(line[1]), default=(None, []))
    if location is None or len(equations) <= MANY:
        return
    kinds = Counter((eqn.primitive, tuple([v.aval for v in eqn.invars])) for eqn in equations)
    if sum(n for n in kinds.values() if n >= _REPEATED) < _MOST * len(equations):
        return
    report(
        "unrolled loops",
        f"{jaxpr.name or 'the program'} has {len(equations)} equations from one line, {location.text()!r}: a Python "
        f"loop was unrolled, and XLA takes long to compile the {sum(len(e) for _, e in lines)} equations",
        instead="phlox.lax.fori_loop, or phlox.lax.scan, which compile the body of a loop once",
        location=location,
    )


def _count(jaxpr: Jaxpr) -> int:
    """The number of equations; quicker than to list them, as it is counted after each trace."""
    return len(jaxpr.eqns) + sum(
        _count(inner)
        for eqn in jaxpr.eqns
        # Programs of single operations hold no others, and functions with a `jit` of their own were checked when they
        # were traced.
        if eqn.primitive.multiple_results and eqn.primitive.name != "jit"
        for inner in jaxprs_in(eqn.params)
    )


def by_line(jaxpr: Jaxpr, inside_jit: bool = False) -> list[tuple[Location, list[JaxprEqn]]]:
    """The equations of a program and of the bodies of its loops and branches, by line of the user.

    With `inside_jit`, those of functions with a `jit` of their own are among them.
    """
    by_place: dict[Any, list[JaxprEqn]] = {}
    for eqn in _equations(jaxpr, inside_jit):
        place = eqn.source_info
        if place is not None:
            # By code and offset first: computing a line decodes a table, and takes longer than the rest.
            by_place.setdefault((id(place.code), place.offset), []).append(eqn)
    lines: dict[Any, tuple[Location, list[JaxprEqn]]] = {}
    for equations in by_place.values():
        place = equations[0].source_info
        assert place is not None
        # One line may have several instructions that record equations.
        lines.setdefault((place.file, place.line), (place, []))[1].extend(equations)
    return list(lines.values())


def _equations(jaxpr: Jaxpr, inside_jit: bool) -> Iterator[JaxprEqn]:
    yield from jaxpr.eqns
    for eqn in jaxpr.eqns:
        if eqn.primitive.multiple_results and (inside_jit or eqn.primitive.name != "jit"):
            for inner in jaxprs_in(eqn.params):
                yield from _equations(inner, inside_jit)
