"""Jaxprs: programs as data. A Jaxpr is a list of equations over typed variables, in single-assignment form.

    { lambda a:f32[3]; b:f32[3]. let c:f32[3] = mul b a in (c,) }

Variables before the semicolon are bound to constants; a `ClosedJaxpr` holds their values. A Jaxpr does not change once
it is built; transformations make new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import config
from .._base.source import Location
from . import dtypes
from .avals import ShapedArray
from .effects import Effects, no_effects
from .primitive import Primitive

if TYPE_CHECKING:
    from .debug_info import DebugInfo


class Var:
    """A variable: it has a type, is compared by identity, and gets a name only in print."""

    __slots__ = ("__weakref__", "aval")

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var:{self.aval.short}"


class Literal:
    """A constant inside an equation: a number, as ``2.0:f32[]``, or an array with `use_simplified_jaxpr_constants`."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        value = "[...]" if self.aval.shape else np.asarray(self.val).item()
        return f"{value}:{self.aval.short}"


Atom = Var | Literal


class JaxprEqn:
    """One application of a primitive: ``outvars = primitive[params] invars``."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        invars: list[Atom],
        outvars: list[Var],
        primitive: Primitive,
        params: dict[str, Any],
        source_info: Location | None = None,
    ):
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.effects: Effects = no_effects if primitive.effects is None else primitive.effects(params)
        self.source_info = source_info

    def replace(self, **changes: Any) -> JaxprEqn:
        """A copy with some fields replaced. Its effects follow from the primitive and the parameters."""
        changes.pop("effects", None)
        return JaxprEqn(**{name: getattr(self, name) for name in _EQN_FIELDS} | changes)

    def __repr__(self) -> str:
        from .printing import eqn_text  # printing.py imports this module

        return eqn_text(self)


_EQN_FIELDS = ("invars", "outvars", "primitive", "params", "source_info")


def _has_64_bit(eqn: JaxprEqn) -> bool:
    return any(dtypes.is_wide(v.aval.dtype) for v in eqn.invars)


def recorded_x64(eqn: JaxprEqn) -> AbstractContextManager[None]:
    """A context that switches 64-bit mode on for an equation with 64-bit operands when the mode is off.

    It was recorded in 64-bit mode. Evaluated outside of it, a Python number among its operands would have 32 bits.
    """
    return config.scope(enable_x64=True) if _has_64_bit(eqn) and not config.current().enable_x64 else nullcontext()


class Jaxpr:
    """A program with inputs `constvars` (first) and `invars`, equations `eqns` and outputs `outvars`.

    `name` is that of the traced function; `origin` describes a function of the user, see `_api.jit.origins`. Arguments
    of JAX: `effects`, which follow from the equations here, and `debug_info`, of which the function's name is kept.
    """

    __slots__ = ("__weakref__", "constvars", "eqns", "invars", "memo", "name", "origin", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Any = None,
        debug_info: DebugInfo | None = None,
        *,
        name: str = "",
        origin: Any = None,
    ):
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.name = debug_info.func_name if debug_info is not None and not name else name
        self.origin = origin
        #: results of transformations of this Jaxpr (its jvp, its transpose …), kept here so that they live as long
        self.memo: dict[Any, Any] = {}

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the inputs `invars`."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the outputs."""
        return [v.aval for v in self.outvars]

    @property
    def effects(self) -> Effects:
        """The union of the effects of all equations."""
        effects = self.memo.get("effects")
        if effects is None:
            effects = self.memo["effects"] = no_effects.union(*[eqn.effects for eqn in self.eqns if eqn.effects])
        return effects

    @property
    def has_64_bit(self) -> bool:
        """Whether an equation has a 64-bit operand."""
        has_64_bit = self.memo.get("has_64_bit")
        if has_64_bit is None:
            has_64_bit = self.memo["has_64_bit"] = any(_has_64_bit(eqn) for eqn in self.eqns)
        return has_64_bit

    # JAX 0.12 has one class for Jaxprs with and without constants. Each class has the names of the other.

    @property
    def jaxpr(self) -> Jaxpr:
        """The Jaxpr itself."""
        return self

    @property
    def consts(self) -> list[Any]:
        """The empty list. A Jaxpr with `constvars` does not hold their values; its `ClosedJaxpr` does."""
        if self.constvars:
            raise AttributeError(f"the Jaxpr has {len(self.constvars)} constants; their values are closed.consts")
        return []

    @property
    def literals(self) -> list[Any]:
        """JAX's other name for `consts`."""
        return self.consts

    @property
    def num_consts(self) -> int:
        """The number of constants."""
        return len(self.constvars)

    @property
    def all_invars(self) -> list[Var]:
        """The variables of the constants, then those of the inputs."""
        return [*self.constvars, *self.invars]

    @property
    def is_high(self) -> bool:
        """False: values with types of their own are taken apart when a function is traced."""
        return False

    @property
    def debug_info(self) -> DebugInfo:
        """The traced function: its name and line, the names of its arguments and the paths of its results."""
        from .debug_info import DebugInfo  # on demand: few programs read it

        return self.origin.debug_info(self) if self.origin else DebugInfo("jit", self.name or "<unknown>", None)

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        fields = {name: getattr(self, name) for name in _JAXPR_FIELDS}
        fields.update(changes)
        return Jaxpr(**fields)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    def pretty_print(
        self, *, source_info: bool = False, print_shapes: bool = True, name_stack: bool = False, **_ignored: Any
    ) -> str:
        """The Jaxpr as text; on request with the source line (`source_info`) and name scopes (`name_stack`) of each
        equation."""
        from .printing import jaxpr_text

        return jaxpr_text(self, source_info=source_info, print_shapes=print_shapes, name_stack=name_stack)


_JAXPR_FIELDS = ("constvars", "invars", "outvars", "eqns", "name", "origin")


class ClosedJaxpr:
    """A Jaxpr with the values of its constants."""

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        self.jaxpr = jaxpr
        self.consts = list(consts)

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def constvars(self) -> list[Var]:
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        return self.jaxpr.outvars

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    @property
    def num_consts(self) -> int:
        return len(self.consts)

    @property
    def all_invars(self) -> list[Var]:
        return self.jaxpr.all_invars

    @property
    def debug_info(self) -> DebugInfo:
        return self.jaxpr.debug_info

    @property
    def is_high(self) -> bool:
        return False

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """A copy with the Jaxpr ``f(jaxpr)``."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """A copy with another `jaxpr`, other `consts`, or other fields of the Jaxpr."""
        jaxpr, consts = changes.pop("jaxpr", self.jaxpr), changes.pop("consts", self.consts)
        return ClosedJaxpr(jaxpr.replace(**changes) if changes else jaxpr, consts)

    def with_consts(self, consts: Sequence[Any]) -> ClosedJaxpr:
        """A copy in which the first inputs have the values `consts`, and all others are arguments."""
        inputs, count = self.all_invars, len(consts)
        return self.replace(constvars=inputs[:count], invars=inputs[count:], consts=consts)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__

    def pretty_print(self, **options: Any) -> str:
        """See `Jaxpr.pretty_print`."""
        return self.jaxpr.pretty_print(**options)


def hoist_consts(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with its constants turned into leading inputs."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]) if jaxpr.constvars else jaxpr


def prune(jaxpr: Jaxpr, used_outputs: Sequence[bool] | None = None) -> tuple[Jaxpr, list[bool]]:
    """Drops the equations that no output needs; equations with effects stay.

    With `used_outputs`, the other outputs are dropped first. Returns the Jaxpr and, for each input (constants first),
    whether the Jaxpr still reads it. Unread inputs are not dropped: that is left to the caller.
    """
    outvars = jaxpr.outvars
    if used_outputs is not None:
        outvars = only(outvars, used_outputs)
    live: set[Atom] = set(outvars)  # may contain literals, which no equation binds
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        # Backwards, so that all readers of a variable are known when its equation is reached.
        if eqn.effects or not live.isdisjoint(eqn.outvars):
            if eqn.primitive.drop_unused is not None:
                eqn = eqn.primitive.drop_unused(eqn, [v in live for v in eqn.outvars])
            eqns.append(eqn)
            live.update(eqn.invars)
    eqns.reverse()
    used = [v in live for v in (*jaxpr.constvars, *jaxpr.invars)]
    # The same object keeps its `memo`, and with it what was computed for it.
    if eqns == jaxpr.eqns and len(outvars) == len(jaxpr.outvars):
        return jaxpr, used
    return jaxpr.replace(eqns=eqns, outvars=outvars), used


def narrowed(
    closed: ClosedJaxpr, used: Sequence[bool], keep: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program for the outputs that are `used`, with only the inputs that it reads and those marked in `keep`.

    Also returns, for each input of `closed`, whether it is still there.
    """

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        jaxpr, read = prune(closed.jaxpr, used)
        stay = [r or bool(keep and keep[i]) for i, r in enumerate(read[len(jaxpr.constvars) :])]
        return closed.replace(jaxpr=jaxpr.replace(invars=only(jaxpr.invars, stay))), stay

    key = ("narrowed", tuple(used), None if keep is None else tuple(keep))
    result: tuple[ClosedJaxpr, list[bool]] = memoized(closed.jaxpr, key, make)
    return result


def only(items: Sequence[Any], there: Sequence[bool]) -> list[Any]:
    """The items for which `there` is true."""
    return [x for x, stays in zip(items, there, strict=True) if stays]


def without(items: Sequence[Any], there: Sequence[bool]) -> list[Any]:
    """The items for which `there` is false, see `only`."""
    return [x for x, leaves in zip(items, there, strict=True) if not leaves]


def with_literals(jaxpr: Jaxpr, literals: dict[Var, Literal]) -> Jaxpr:
    """`jaxpr` with these inputs and constants replaced by literals; the variables stay in its lists, unread."""

    def filled(vs: Sequence[Atom]) -> list[Atom]:
        return [literals.get(v, v) if type(v) is Var else v for v in vs]

    if not literals:
        return jaxpr
    eqns = [eqn.replace(invars=filled(eqn.invars)) for eqn in jaxpr.eqns]
    return jaxpr.replace(eqns=eqns, outvars=filled(jaxpr.outvars))


def jaxprs_in(params: dict[str, Any]) -> list[Jaxpr]:
    """The Jaxprs among the parameters of an equation, including those inside tuples."""
    jaxprs = []
    for value in params.values():
        kind = type(value)
        if kind is ClosedJaxpr:
            jaxprs.append(value.jaxpr)
        elif kind is Jaxpr:
            jaxprs.append(value)
        elif isinstance(value, tuple):
            for item in value:
                if type(item) is ClosedJaxpr:
                    jaxprs.append(item.jaxpr)
                elif type(item) is Jaxpr:
                    jaxprs.append(item)
    return jaxprs


def contains(jaxpr: Jaxpr, what: str, test: Callable[[Primitive], bool]) -> bool:
    """Whether the primitive of an equation, in the jaxpr or in one inside of it, passes a test named `what`."""

    def search() -> bool:
        return any(
            test(eqn.primitive) or any(contains(inner, what, test) for inner in jaxprs_in(eqn.params))
            for eqn in jaxpr.eqns
        )

    return bool(memoized(jaxpr, what, search))


def has_unbounded_loop(jaxpr: Jaxpr) -> bool:
    """Whether the jaxpr, or one inside of it, contains a loop whose number of turns depends on values."""
    return contains(jaxpr, "has unbounded loop", lambda primitive: primitive.unbounded)


def decomposes(jaxpr: Jaxpr) -> bool:
    """Whether the jaxpr, or a call in it, computes eigenvectors or singular vectors."""

    def search() -> bool:
        calls = [jaxprs_in(eqn.params) for eqn in jaxpr.eqns if eqn.primitive.unfold is not None]
        return any(eqn.primitive.decomposes for eqn in jaxpr.eqns) or any(
            decomposes(one) for call in calls for one in call
        )

    return bool(memoized(jaxpr, "decomposes", search))


def effects_inside(params: dict[str, Any]) -> Effects:
    """The effects of the Jaxprs among the parameters: the rule `effects` of primitives that hold Jaxprs."""
    return no_effects.union(*[jaxpr.effects for jaxpr in jaxprs_in(params)])


def axes_inside(params: dict[str, Any]) -> set[Any]:
    """Names of the mapped axes that collectives in the Jaxprs among the parameters use."""
    return set().union(*map(axes_used, jaxprs_in(params)))


def axes_used(jaxpr: Jaxpr) -> set[Any]:
    """Names of the mapped axes that collectives in a Jaxpr use."""

    def find() -> set[Any]:
        return {name for eqn in jaxpr.eqns if eqn.primitive.axes for name in eqn.primitive.axes(eqn.params)}

    names: set[Any] = memoized(jaxpr, "axes", find)
    return names


def with_constants(closed: ClosedJaxpr, values: Sequence[Any]) -> ClosedJaxpr:
    """`closed` with these values for its first inputs, which become constants."""
    jaxpr, count = closed.jaxpr, len(values)

    def make() -> Jaxpr:
        return jaxpr.replace(constvars=[*jaxpr.constvars, *jaxpr.invars[:count]], invars=jaxpr.invars[count:])

    return ClosedJaxpr(memoized(jaxpr, ("bound", count), make), [*closed.consts, *values])


def hoisted(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with its constants turned into leading inputs."""
    if not closed.jaxpr.constvars:
        return closed
    return memoized(closed.jaxpr, "hoisted", lambda: ClosedJaxpr(hoist_consts(closed.jaxpr)))


def memoized(jaxpr: Jaxpr, key: Any, make: Callable[[], Any]) -> Any:
    """The result of `make()`, computed once for `jaxpr` and `key` and kept on the Jaxpr."""
    try:
        return jaxpr.memo[key]
    except KeyError:
        result = jaxpr.memo[key] = make()
        return result
