"""Finds PRNG keys that are used twice, for the flag `debug_key_reuse`: in a Jaxpr, and among arrays from run to run.

`uses_of` follows the keys through the equations of a Jaxpr by the rule `keys` of each primitive. `Uses` records which
keys of an array are used up; a program with keys among its arguments or results reports to it before and after a run.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.errors import KeyReuseError
from .._base.source import Location, user_location
from .._ir import dtypes
from .._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var, memoized
from .._ir.key_uses import INSTEAD, KeyUses, Mask, joined


def _is_key(x: Any) -> bool:
    return dtypes.issubdtype(x.aval.dtype, dtypes.prng_key)


def uses_of(jaxpr: Jaxpr | ClosedJaxpr) -> KeyUses:
    """How a Jaxpr uses the keys among its inputs (constants first) and results.

    Args:
      jaxpr: a Jaxpr; constants of a `ClosedJaxpr` are not among the operands.

    Returns:
      The `KeyUses`, whose numbers are those of inputs and results.

    Raises:
      KeyReuseError: it uses a key twice.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        return _without_first(len(jaxpr.jaxpr.constvars), uses_of(jaxpr.jaxpr))
    return memoized(jaxpr, "key_uses", lambda: _Analysis(jaxpr).uses())


def _without_first(count: int, uses: KeyUses) -> KeyUses:
    if not count:
        return uses
    return uses._replace(
        consumed=tuple((i - count, mask) for i, mask in uses.consumed if i >= count),
        passed=tuple((i - count, o) for i, o in uses.passed if i >= count),
    )


def _rule(eqn: JaxprEqn) -> KeyUses:
    primitive = eqn.primitive
    if primitive.keys is not None:
        return primitive.keys(eqn, uses_of)
    if primitive.program is not None:
        return uses_of(eqn.params[primitive.program])
    return KeyUses(tuple((i, True) for i, v in enumerate(eqn.invars) if _is_key(v)))


class _Analysis:
    """The keys of one Jaxpr while its equations are read in order."""

    def __init__(self, jaxpr: Jaxpr):
        self.jaxpr = jaxpr
        self.used: dict[Atom, Mask] = {}
        self.where: dict[Atom, Location | None] = {}
        self.roots: dict[Atom, Atom] = {}
        for eqn in jaxpr.eqns:
            self.read(eqn)

    def root(self, v: Atom) -> Atom:
        return self.roots.get(v, v)

    def read(self, eqn: JaxprEqn) -> None:
        if eqn.primitive.effects is None and not any(map(_is_key, (*eqn.invars, *eqn.outvars))):
            return  # it also holds no Jaxpr
        uses = _rule(eqn)
        for i, mask in uses.consumed:
            self.use(eqn, i, mask)
        passed = {eqn.outvars[o]: eqn.invars[i] for i, o in uses.passed}
        for number, v in enumerate(eqn.outvars):
            if not _is_key(v):
                continue
            if v in passed and isinstance(passed[v], Var):
                self.roots[v] = self.root(passed[v])
            elif number not in uses.fresh:
                self.used[v], self.where[v] = True, eqn.source_info

    def use(self, eqn: JaxprEqn, number: int, mask: Mask) -> None:
        v = eqn.invars[number]
        if not _is_key(v) or not isinstance(v, Var):
            return
        root = self.root(v)
        before = self.used.get(root, False)
        if np.any(joined(before, mask, np.logical_and)):
            first = self.where.get(root)
            raise KeyReuseError(
                f"In {eqn.primitive.name}, argument {number} is already consumed: {v.aval.short}"
                + (f", first used at {first}" if first else ""),
                where=eqn.source_info,
                instead=INSTEAD,
            )
        self.used[root] = joined(before, mask)
        self.where.setdefault(root, eqn.source_info)

    def uses(self) -> KeyUses:
        jaxpr = self.jaxpr
        inputs: list[Any] = [*jaxpr.constvars, *jaxpr.invars]
        number = {v: i for i, v in enumerate(inputs)}
        outs = [(o, self.root(v)) for o, v in enumerate(jaxpr.outvars) if _is_key(v)]
        return KeyUses(
            tuple((i, self.used[v]) for v, i in number.items() if np.any(self.used.get(v, False))),
            tuple(o for o, root in outs if root not in number and not np.any(self.used.get(root, False))),
            tuple((number[root], o) for o, root in outs if root in number),
        )


# --- arrays ---------------------------------------------------------------------------------------------

#: by the id of a buffer of keys: a reference to it, the keys that are used up, and the user's line of the first use
_states: dict[int, tuple[Any, Mask, Location | None]] = {}


def _state(buffer: Any) -> tuple[Mask, Location | None]:
    entry = _states.get(id(buffer))
    return (False, None) if entry is None else entry[1:]


def _mark(buffer: Any, mask: Mask, where: Location | None) -> None:
    number = id(buffer)
    _states[number] = weakref.ref(buffer, lambda _: _states.pop(number, None)), mask, where


class Uses:
    """What a program does to the keys among its arguments and results."""

    def __init__(self, jaxpr: Jaxpr, name: str):
        self.name = name.lstrip("_")  # samplers run private functions
        alone = len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name == name
        self.kind = name if alone else "jit-compiled function"
        self.uses = uses = uses_of(jaxpr)
        outs = [v.aval for v in jaxpr.outvars]
        passed = {o for _, o in uses.passed}
        #: the results that are keys but no new ones
        self.old = [o for o, aval in enumerate(outs) if _is_old(aval, o, uses, passed)]

    def before(self, arguments: Sequence[Any]) -> None:
        """Raises `KeyReuseError` if the program uses keys that are used up already."""
        for i, mask in self.uses.consumed:
            used, where = _state(arguments[i]._buf)
            if np.any(joined(used, mask, np.logical_and)):
                raise KeyReuseError(
                    f"Previously-consumed key passed to {self.kind} at index {i}: {self.name} draws from a "
                    f"{arguments[i].aval.short} again" + (f", which was first used at {where}" if where else ""),
                    instead=INSTEAD,
                )

    def after(self, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        """Records what the run did."""
        where = user_location()
        for i, mask in self.uses.consumed:
            used, first = _state(arguments[i]._buf)
            _mark(arguments[i]._buf, joined(used, mask), first or where)
        for o in self.old:
            _mark(results[o]._buf, True, where)
        for i, o in self.uses.passed:
            used, first = _state(arguments[i]._buf)
            if np.any(used):
                _mark(results[o]._buf, used, first)


def _is_old(aval: Any, number: int, uses: KeyUses, passed: set[int]) -> bool:
    return dtypes.issubdtype(aval.dtype, dtypes.prng_key) and number not in uses.fresh and number not in passed


def uses_by(jaxpr: Jaxpr, name: str) -> Uses | None:
    """The `Uses` of a program; None if it has no keys among its arguments and results.

    Args:
      jaxpr: what the program computes, with its constants as first arguments.
      name: what errors call it.

    Returns:
      The observer of runs.

    Raises:
      KeyReuseError: the program itself uses a key twice.
    """
    uses = Uses(jaxpr, name)
    return uses if uses.uses.consumed or uses.uses.passed or uses.old else None
