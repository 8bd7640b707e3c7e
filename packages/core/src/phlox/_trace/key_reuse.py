"""Finds PRNG keys that are used twice in a Jaxpr, for the flags `checks` and `debug_key_reuse`.

`read` follows the keys through the equations of a Jaxpr by the rule `keys` of each primitive. Keys that are used from
run to run are recorded by `_xla.key_records`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._base import checks, config
from .._base.errors import KeyReuseError
from .._base.source import Location
from .._ir import dtypes
from .._ir.dimensions import is_symbolic
from .._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, memoized
from .._ir.key_uses import INSTEAD, KeyUses, Mask, joined

_Positions = np.ndarray | None
#: largest number of elements of values that are compared with earlier ones: those of the words of one key
_MAX_NUMBERED = 4
#: operations after which masks of a result are not masks of its operand, as they move the elements
_MOVING = ("transpose", "rev")


def is_key(x: Any) -> bool:
    """Whether a variable or array holds PRNG keys."""
    dtype = x.aval.dtype
    return type(dtype) is not np.dtype and dtypes.issubdtype(dtype, dtypes.prng_key)


class Problem(NamedTuple):
    """A key that is used twice: what an error says of it.

    `is_librarys` tells that one call of an installed package uses the key twice. A library may do so on purpose, as a
    Brownian tree that gives the same path each time, and its user cannot change it.
    """

    what: str
    where: Location | None
    instead: str = INSTEAD
    is_librarys: bool = False

    def tell(self) -> None:
        """Raises `KeyReuseError` if the flag `debug_key_reuse` is on; else reports to `checks`."""
        if config.current().debug_key_reuse:
            raise KeyReuseError(self.what, where=self.where, instead=self.instead)
        if self.is_librarys and not checks.is_strict():
            return
        checks.report("key used twice", self.what, instead=self.instead, location=self.where)


class Reading(NamedTuple):
    """The uses of the keys among inputs and results of a Jaxpr, and the keys that the Jaxpr itself uses twice."""

    uses: KeyUses
    problems: tuple[Problem, ...]


def read(jaxpr: Jaxpr, old_style: bool = False) -> Reading:
    """How a Jaxpr uses the keys among its inputs (constants first) and results.

    Args:
      jaxpr: the program.
      old_style: whether arrays of uint32 are followed too, from and to the keys that they are words of.

    Returns:
      The `Reading`; its numbers are those of inputs and results.
    """
    name = "old_style_key_uses" if old_style else "key_uses"
    return memoized(jaxpr, name, lambda: _Analysis(jaxpr, old_style).reading())


def check(jaxpr: Jaxpr) -> KeyUses:
    """The uses of keys by `jaxpr`; tells of those that it uses twice."""
    settings = config.current()
    uses, problems = read(jaxpr, settings.checks == "strict" and not settings.debug_key_reuse)
    for problem in problems:
        problem.tell()
    return uses


def _without_first(count: int, uses: KeyUses) -> KeyUses:
    """The uses of the inputs after the first `count`. Results that are keys of those count as new ones."""
    if not count:
        return uses
    return uses._replace(
        consumed=tuple((i - count, mask) for i, mask in uses.consumed if i >= count),
        passed=tuple((i - count, o) for i, o in uses.passed if i >= count),
        parts=tuple((i - count, o, positions) for i, o, positions in uses.parts if i >= count),
        picked=tuple((i - count, o) for i, o in uses.picked if i >= count),
    )


class _Analysis:
    """The keys of one Jaxpr while its equations are read in order.

    Each key is described by its root, the variable in which it was made, and its positions there (None: all, in order).
    """

    def __init__(self, jaxpr: Jaxpr, old_style: bool):
        self.jaxpr = jaxpr
        self.old_style = old_style
        self.problems: list[Problem] = []
        #: by root: the mask of the used keys, and the place of the first use
        self.used: dict[Atom, Mask] = {}
        self.where: dict[Atom, Location | None] = {}
        self.roots: dict[Atom, tuple[Atom, _Positions]] = {}
        #: the arrays whose elements were moved
        self.moved: set[Atom] = set()
        #: the array that keys at unknown positions are from; those arrays of which such keys were used
        self.source: dict[Atom, Atom] = {}
        self.partly_used: dict[Atom, Location | None] = {}
        #: by operation and operands: the first equation's result, because equal equations have equal results
        self.numbers: dict[Any, Atom] = {}
        self.same: dict[Atom, Atom] = {}
        for eqn in jaxpr.eqns:
            self.read(eqn)

    def uses_of(self, jaxpr: Jaxpr | ClosedJaxpr) -> KeyUses:
        """The uses of a Jaxpr that an equation holds."""
        closed = isinstance(jaxpr, ClosedJaxpr)
        inner = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
        uses, problems = read(inner, self.old_style)
        self.problems += problems
        return _without_first(len(inner.constvars), uses) if closed else uses

    def rule(self, eqn: JaxprEqn) -> KeyUses:
        primitive = eqn.primitive
        if self.old_style and primitive.name in ("random_wrap", "random_unwrap"):
            return KeyUses(passed=((0, 0),))
        try:
            if primitive.keys is not None:
                return primitive.keys(eqn, self.uses_of)
        except KeyReuseError as error:
            is_librarys = error.where is not None and error.where.caller is not None
            self.problems.append(Problem(error.what, _of_user(error.where), error.instead or INSTEAD, is_librarys))
            # The results count as new keys, so that one mistake is reported once.
            return KeyUses(fresh=tuple(range(len(eqn.outvars))))
        if primitive.program is not None:
            return self.uses_of(eqn.params[primitive.program])
        return KeyUses(tuple((i, True) for i, v in enumerate(eqn.invars) if is_key(v)))

    def is_followed(self, v: Any) -> bool:
        return is_key(v) or (self.old_style and v.aval.dtype == dtypes.uint32 and v.aval.ndim > 0)

    def moves_words(self, eqn: JaxprEqn) -> bool:
        """Whether the result may be words of old-style keys among the operands."""
        return self.old_style and eqn.primitive.keys is not None and self.is_followed(eqn.outvars[0])

    def root(self, v: Atom) -> tuple[Atom, _Positions]:
        return self.roots.get(v, (v, None))

    def read(self, eqn: JaxprEqn) -> None:
        primitive = eqn.primitive
        if not primitive.holds_programs and not eqn.effects:  # a callback may return another value each time
            self.number(eqn)
            if not any(map(is_key, (*eqn.invars, *eqn.outvars))) and not self.moves_words(eqn):
                return
        uses = self.rule(eqn)
        for i, mask in uses.consumed:
            self.use(eqn, i, mask)
        self.follow(eqn, uses)
        for number, v in enumerate(eqn.outvars):
            if is_key(v) and v not in self.roots and number not in uses.unused:
                self.used[v], self.where[v] = True, eqn.source_info

    def number(self, eqn: JaxprEqn) -> None:
        """Finds an earlier equation that computes the same: its result is the root of this one's."""
        size = _size(eqn.outvars[0]) if len(eqn.outvars) == 1 else None
        if size is None or size > _MAX_NUMBERED or eqn.primitive.name == "random_clone":
            return
        (out,) = eqn.outvars
        operands = [_literal(v) if isinstance(v, Literal) else self.root(self.same.get(v, v))[0] for v in eqn.invars]
        where = [None if (at := self.root(v)[1]) is None else at.tobytes() for v in eqn.invars if isinstance(v, Var)]
        try:
            first = self.numbers.setdefault((eqn.primitive, *eqn.params.values(), *operands, *where), out)
        except TypeError:  # a parameter that is not hashable
            return
        # Two equations ``fold_in(key, 0)`` make one key, which their results share.
        if first is not out:
            self.same[out] = first

    def follow(self, eqn: JaxprEqn, uses: KeyUses) -> None:
        """Notes which keys the results are."""
        for i, o in uses.passed:
            v, out = eqn.invars[i], eqn.outvars[o]
            if isinstance(v, Var) and self.is_followed(out):
                self.roots[out] = self.root(v)
                if v in self.moved or eqn.primitive.name in _MOVING:
                    self.moved.add(out)
        for i, o, at in uses.parts:
            v, out = eqn.invars[i], eqn.outvars[o]
            root, positions = self.root(v)
            if v in self.moved or (positions is None and _size(root) != _size(v)):
                self.pick(root, out)
            elif isinstance(v, Var):
                # `at` counts within `v`, whose own elements are those at `positions` of the root.
                self.roots[out] = root, at if positions is None else positions[at]
        for i, o in uses.picked:
            self.pick(self.root(eqn.invars[i])[0], eqn.outvars[o])
        for o in uses.fresh:
            v = eqn.outvars[o]
            if v in self.same and is_key(v):
                self.roots[v] = self.root(self.same[v])

    def pick(self, source: Atom, out: Any) -> None:
        """Notes that `out` is keys of `source` at unknown positions."""
        if not self.is_followed(out) or not isinstance(source, Var):
            return
        first = self.same.get(out)
        if first is not None:
            self.roots[out] = self.root(first)
        else:
            self.source[out] = source

    def use(self, eqn: JaxprEqn, number: int, mask: Mask) -> None:
        v = eqn.invars[number]
        if not isinstance(v, Var) or not self.is_followed(v):
            return
        root, positions = self.root(v)
        mask = _mask_of(root, positions, mask)
        before = self.used.get(root, False)
        source = self.source.get(root)
        # A key is used twice if it was used itself; if it is some key of an array all of which was used; or if the
        # whole array is used after some key of it was.
        if np.any(joined(before, mask, np.logical_and)):
            self.problem(eqn, number, self.where.get(root))
        elif source is not None and np.all(self.used.get(source, False)):
            self.problem(eqn, number, self.where.get(source))
        elif root in self.partly_used and np.all(mask):
            self.problem(eqn, number, self.partly_used[root])
        if source is not None:
            self.partly_used.setdefault(source, eqn.source_info)
        self.used[root] = joined(before, mask)
        self.where.setdefault(root, eqn.source_info)

    def is_used(self, root: Atom, positions: _Positions) -> bool:
        used = self.used.get(root, False)
        return bool(np.any(used if positions is None or not np.ndim(used) else used[positions]))

    def problem(self, eqn: JaxprEqn, number: int, first: Location | None) -> None:
        name = eqn.params.get("name", eqn.primitive.name).lstrip("_")  # `normal` calls a jitted function `_normal`
        what = f"In {name}, argument {number} is already consumed: {eqn.invars[number].aval.short}"
        again, before = _of_user(eqn.source_info), _of_user(first)
        what += f", first used at {before}" if before else ""
        is_librarys = again is not eqn.source_info and before is not first and _same(again, before)
        self.problems.append(Problem(what, again, is_librarys=is_librarys))

    def reading(self) -> Reading:
        jaxpr = self.jaxpr
        inputs: list[Any] = [*jaxpr.constvars, *jaxpr.invars]
        number = {v: i for i, v in enumerate(inputs)}
        outs = [(o, *self.root(v)) for o, v in enumerate(jaxpr.outvars) if self.is_followed(v)]
        of_inputs = [(number[root], o, positions) for o, root, positions in outs if root in number]
        uses = KeyUses(
            tuple(
                (i, True if np.all(mask) else mask)
                for v, i in number.items()
                if np.any(mask := self.used.get(v, False))
            ),
            tuple(o for o, root, positions in outs if root not in number and not self.is_used(root, positions)),
            tuple((i, o) for i, o, positions in of_inputs if positions is None),
            tuple((i, o, positions) for i, o, positions in of_inputs if positions is not None),
        )
        return Reading(uses, tuple(self.problems))


def _of_user(where: Location | None) -> Location | None:
    """The user's line at or around a location."""
    return where.caller or where if where is not None else None


def _same(one: Location | None, other: Location | None) -> bool:
    """Whether two locations are one call in one line."""
    return one is not None and other is not None and one.code is other.code and one.offset == other.offset


def _size(v: Any) -> int | None:
    """The number of elements of a variable; None if its shape is symbolic."""
    shape = v.aval.shape
    return None if any(map(is_symbolic, shape)) else math.prod(shape)


def _literal(v: Literal) -> Any:
    """A hashable value that equal literals have."""
    return v.aval, np.asarray(v.val).tobytes()


def _mask_of(root: Any, positions: _Positions, mask: Mask) -> Mask:
    """The mask of an array's keys as one of the array's root, flattened; `positions` as in `_Analysis`."""
    size = _size(root)
    if positions is None:
        return np.ravel(mask) if np.ndim(mask) and np.size(mask) == size else bool(np.any(mask))
    used = np.zeros(size or 0, np.bool_)
    used[positions[np.ravel(mask)] if np.size(mask) == len(positions) and np.ndim(mask) else positions] = True
    return used
