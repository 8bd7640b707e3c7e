"""Estimates of the cost of jaxprs, and the properties for which the rows of a batch cannot be reordered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._ir.jaxpr import Jaxpr, JaxprEqn, axes_used, jaxprs_in, memoized
from ..._trace.axes import tracked_axes
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis

#: turns that a loop of unknown length is expected to have
_TURNS = 16


def obstacle(axis: BatchAxis, jaxprs: Sequence[Jaxpr], *operands: Any) -> str | None:
    """The property of programs or operands for which the rows of a batch cannot be reordered; None if there is none."""
    if any(jaxpr.effects for jaxpr in jaxprs):
        return "effects (callbacks)"
    names = set().union(*(axes_used(jaxpr) for jaxpr in jaxprs))
    if names:
        return f"collectives over the axis {min(map(str, names))!r}"
    if type(axis.size) is not int:
        return "a mapped axis of symbolic length"
    if axis.split or any(typeof(x).spec is not None for x in operands):
        return "a mapped axis that is split over a mesh"
    if tracked_axes() or any(typeof(x).vma for x in operands):
        return "operands inside of shard_map"
    return None


def elements(shape: Sequence[Any]) -> int:
    """The number of elements of an array; symbolic lengths count as 1."""
    return math.prod(n for n in shape if type(n) is int)


def count_equations(jaxpr: Jaxpr) -> int:
    """The number of equations, with those of inner jaxprs."""
    count = lambda: sum(1 + sum(map(count_equations, jaxprs_in(eqn.params))) for eqn in jaxpr.eqns)  # noqa: E731
    return int(memoized(jaxpr, "size", count))


def cost(jaxpr: Jaxpr) -> float:
    """An estimate of the time of a jaxpr for one row, as part of a large batch, in ns.

    The unit is about the time of one addition in a fused loop, on one core.
    """
    return float(memoized(jaxpr, "cost", lambda: sum(map(_eqn_cost, jaxpr.eqns))))


def _eqn_cost(eqn: JaxprEqn) -> float:
    inner = [cost(jaxpr) for jaxpr in jaxprs_in(eqn.params)]
    if inner:
        turn = max(inner) if "branches" in eqn.params else sum(inner)
        length = _TURNS if eqn.primitive.unbounded else eqn.params.get("length", 1)
        return turn * (length if type(length) is int else _TURNS)  # else a symbolic length
    sizes = [elements(v.aval.shape) for v in eqn.invars]
    size = sum(elements(v.aval.shape) for v in eqn.outvars)
    if eqn.primitive.light:
        return size
    if eqn.primitive.series == "bilinear" and size:
        # The geometric mean of the sizes is the number of products of a matrix product; a core does 16 in 1 ns.
        return max(size, math.sqrt(sizes[0] * sizes[1] * size) / 16)
    return 4 * size
