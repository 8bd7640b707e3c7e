"""Chooses which values to store instead of the residuals of a loop step, so that fewer bytes are stored.

A loop stores residuals for each step and reads them in the backward pass. A residual that light primitives (see
`Primitive.light`) compute from other stored values is cheaper to recompute than to store. This module works on the
Jaxpr of one step; it has no code about loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .._ir.dimensions import surely_at_least
from .._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var

#: longest chain of light primitives that is recomputed; without a limit the backward pass could repeat much of the
#: forward pass
_LONGEST = 16


class Recomputed(NamedTuple):
    """Variables of a Jaxpr (`leaves`), and a `program` that computes the residuals from them."""

    leaves: list[Var]
    program: ClosedJaxpr


def recomputed(closed: ClosedJaxpr, residuals: Sequence[Atom], free: Iterable[Var]) -> Recomputed:
    """Chooses variables from which light primitives can recompute the `residuals` of a Jaxpr.

    Args:
      closed: the Jaxpr.
      residuals: variables of the Jaxpr, or literals.
      free: variables that are stored anyway, and so cost nothing.

    Residuals that are computed from common variables form a group. A group is replaced by the variables it is computed
    from if these need less memory than the group.
    """
    roots = _roots(closed, set(free))
    chosen: set[Var] = {*free}
    for members in _groups(dict.fromkeys(v for v in residuals if type(v) is Var), roots):
        needed = dict.fromkeys(v for member in members for v in roots[member])
        # Where lengths are symbolic, a group is replaced only if that needs less memory for all of them.
        stored = [v for v in members if v not in chosen]
        chosen.update(needed if surely_at_least(_bytes(stored) - _bytes(needed), 1) else stored)
    return _program(closed, residuals, chosen)


def _roots(closed: ClosedJaxpr, free: set[Var]) -> dict[Var, tuple[Var, ...]]:
    """For each variable, the variables from which light primitives compute it; free variables are left out."""
    jaxpr = closed.jaxpr
    # Free variables and constants cost no memory for each step, so nothing has them as a root.
    roots: dict[Var, tuple[Var, ...]] = dict.fromkeys((*free, *jaxpr.constvars), ())
    roots |= {v: (v,) for v in jaxpr.invars if v not in free}
    lengths: dict[Var, int] = {}
    for eqn in jaxpr.eqns:
        read = [v for v in eqn.invars if type(v) is Var]
        length = 1 + max((lengths.get(v, 0) for v in read), default=0)
        if is_light(eqn) and length <= _LONGEST:
            eqn_roots = tuple(dict.fromkeys(root for v in read for root in roots[v]))
            for out in eqn.outvars:
                # `setdefault` leaves variables that are free, which have no roots.
                roots.setdefault(out, eqn_roots)
                # A chain begins anew at a variable that is stored anyway.
                lengths[out] = 0 if out in free else length
        else:
            for out in eqn.outvars:
                roots.setdefault(out, (out,))
    return roots


def is_light(eqn: JaxprEqn) -> bool:
    """Whether the results of this equation are cheaper to recompute than to store."""
    light = eqn.primitive.light
    return light if type(light) is bool else light(eqn.params)


def _groups(residuals: Iterable[Var], roots: dict[Var, tuple[Var, ...]]) -> list[list[Var]]:
    """The residuals in groups: two residuals with a common root are in one group (by union-find)."""
    leader: dict[Var, Var] = {}

    def lead(v: Var) -> Var:
        while leader.setdefault(v, v) is not v:
            v = leader[v]
        return v

    residuals = list(residuals)
    for v in residuals:
        # A root that two residuals share is stored once for both, so whether it pays is decided for the group.
        for root in roots[v]:
            leader[lead(root)] = lead(roots[v][0])
    groups: dict[Var, list[Var]] = {}
    for v in residuals:
        groups.setdefault(lead(roots[v][0]) if roots[v] else v, []).append(v)
    return list(groups.values())


def _bytes(variables: Iterable[Var]) -> int:
    return sum(v.aval.size * v.aval.dtype.itemsize for v in variables)


def _program(closed: ClosedJaxpr, residuals: Sequence[Atom], chosen: set[Var]) -> Recomputed:
    """The part of the Jaxpr that computes the residuals from the chosen variables."""
    jaxpr = closed.jaxpr
    live: set[Atom] = {v for v in residuals if v not in chosen}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        if not live.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            live.update(v for v in eqn.invars if type(v) is Var and v not in chosen)
    read = {v for eqn in eqns for v in eqn.invars}.union(residuals)
    leaves = [v for v in _defined(closed) if v in chosen and v in read]
    program = jaxpr.replace(invars=leaves, outvars=list(residuals), eqns=eqns[::-1])
    return Recomputed(leaves, ClosedJaxpr(program, closed.consts))


def _defined(closed: ClosedJaxpr) -> list[Var]:
    """All variables of a Jaxpr except its constants, in order of definition."""
    return [*closed.jaxpr.invars, *(v for eqn in closed.jaxpr.eqns for v in eqn.outvars)]
