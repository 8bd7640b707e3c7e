"""Mutable references: a `Ref` holds an array of one type, which can be replaced.

A reference belongs to the trace that was current when it was made, its `home`. Under that trace, a write replaces the
value, which may be a tracer. Inner traces pass reads and writes on to their parent. A `JaxprTrace` cannot do so,
because its operations run later. It records that the program reads an outer reference where it begins (`ref_read`), and
writes the new value where it ends (`ref_write`). An operation that holds such a program takes the value as an operand
and returns the new one, see `_trace.program_primitive`: no program inside of an operation has equations of these two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

from .._base.errors import RefError
from .._base.source import Location
from .._ir.avals import ShapedArray
from .._ir.effects import Effects, RefEffect
from .._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in, memoized
from .._ir.key_uses import KeyUses
from .._ir.memory_spaces import Space
from .._ir.primitive import Primitive, current_trace
from .trace import Trace, Tracer, bind_under, leaked


class AbstractRef:
    """The type of a reference: ``Ref{float32[3]}``, with the type of the array inside."""

    __slots__ = ("inner_aval", "kind", "memory_space")

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None):
        # The memory space belongs to the reference: what is read is in that of the device.
        if memory_space is None and inner_aval.memory_space is not Space.Device:
            memory_space = inner_aval.memory_space
        self.inner_aval = inner_aval.in_space(Space.Device)
        self.memory_space = memory_space
        self.kind = kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.inner_aval.size

    @property
    def weak_type(self) -> bool:
        """True when the element type gives way in promotions."""
        return self.inner_aval.weak_type

    @property
    def sharding(self) -> Any:
        """The sharding of the array."""
        return self.inner_aval.sharding

    @property
    def short(self) -> str:
        """``Ref{f32[3]}``, as Jaxprs show it."""
        return self.str_short(True)

    def update(self, inner_aval: Any = None, memory_space: Any = None, kind: Any = None) -> AbstractRef:
        """A copy with some attributes replaced."""
        return AbstractRef(
            self.inner_aval if inner_aval is None else inner_aval,
            self.memory_space if memory_space is None else memory_space,
            self.kind if kind is None else kind,
        )

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """``Ref{float32[3]}``, or ``Ref{f32[3]}`` with `short_dtypes`."""
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        return f"Ref{space}{{{self.inner_aval.strong().str_short(short_dtypes)}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.inner_aval, self.memory_space, self.kind

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)


class Ref:
    """A reference to an array that can be written. Make one with `phlox.new_ref`.

    ``ref[...]`` reads, ``ref[i] = x`` writes, ``ref[i] += x`` adds. Functions that use references can be jitted, and be
    bodies of loops and branches; references may be their arguments, but not their results.

    >>> ref = phlox.new_ref(jnp.zeros(3))
    >>> ref[1] = 5.0
    >>> ref
    Ref([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("__weakref__", "aval", "freed", "home", "location", "outer", "value", "whole")

    #: the advice of the error that a function of arrays raises for a reference
    array_advice = "ref[...], which reads its value"

    def __init__(self, aval: AbstractRef, refs: Any):
        self.aval = aval
        # Only code under this trace may replace `value`, which may be one of its tracers.
        self.home = current_trace.get()
        self.value = refs
        #: where a transformed function made the reference, for errors
        self.location: Location | None = None
        #: name of the function that freed the reference; empty while it may be used
        self.freed = ""
        #: the argument of a jitted function that this reference stood for while the function was traced, for rules that
        #: use it after that
        self.outer: Ref | None = None
        #: the argument of a mapped function of which this reference held an example, and its mapped axis; set when the
        #: function has returned, for backward rules that use it later
        self.whole: tuple[Ref, int | None] | None = None

    def mapped_along(self, axis: Any) -> tuple[Ref, int | None]:
        """The argument of a function, now returned, that was mapped along `axis`, and of which this reference held an
        example, with its mapped axis; or the reference itself, and None."""
        # By identity, as in `accept_tracers_of`: a rule in a program is batched under another trace of the same axis.
        return self.whole if self.whole is not None and self.home.axis is axis else (self, None)

    def read(self, trace: Any) -> Any:
        """The value, for use under `trace`."""
        if self.outer is not None:
            return self.outer.read(trace)
        if trace is self.home:
            return self.value
        # Inner traces pass the access on to their parents. At None the home was not among them: its transformation has
        # ended.
        if trace is None:
            raise leaked(self)
        return trace.read_ref(self)

    def write(self, trace: Any, value: Any) -> None:
        """Replaces the value by `value`, which was computed under `trace` and has the type of the reference."""
        if self.outer is not None:
            self.outer.write(trace, value)
        elif trace is self.home:
            self.value = value
        elif trace is None:
            raise leaked(self)
        else:
            trace.write_ref(self, value)

    def free(self, function: str) -> None:
        """Marks the reference as freed by `function` if its home records a Jaxpr. In eager code it stays usable, as in
        JAX."""
        if self.home is not None and self.home.recorder() is self.home:
            self.freed = function


def content_type(x: Any) -> ShapedArray | None:
    """The type of the array that a reference holds, or of the part that a view of it shows; None for other objects."""
    aval = getattr(x, "aval", None)
    return aval.inner_aval if isinstance(aval, AbstractRef) else None


def values(refs: Iterable[Ref]) -> list[Any]:
    """The current values of the references."""
    trace = current_trace.get()
    return [ref.read(trace) for ref in refs]


def write_all(refs: Sequence[Ref], state: Sequence[Any]) -> None:
    """Writes the values `state` to the references."""
    trace = current_trace.get()
    for ref, value in zip(refs, state, strict=True):
        ref.write(trace, value)


class SubstitutedRefs(Trace):
    """Passes operations on, and keeps values of its own for the references that are the keys of `values`."""

    __slots__ = ("values",)

    def __init__(self, values: dict[Ref, Any]):
        super().__init__()
        self.values = values

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return bind_under(self.parent, primitive, args, params)

    def read_ref(self, ref: Ref) -> Any:
        return self.values[ref] if ref in self.values else ref.read(self.parent)

    def write_ref(self, ref: Ref, value: Any) -> None:
        if ref in self.values:
            self.values[ref] = value
        else:
            ref.write(self.parent, value)


# --- references from outside of a recorded program ------------------------------------------------------


def captured(refs: Iterable[Ref], name: str) -> RefError:
    """The error for a program that uses references from outside, and whose user does not pass their values."""
    types = ", ".join(str(ref.aval) for ref in refs)
    return RefError(
        f"{name or 'a traced function'} uses references from outside ({types}), "
        "which this transformation does not pass in and out",
        instead="pass the array in and return the new one; or freeze(ref) around the function",
    )


_EFFECT = RefEffect()
#: whether a program has ever used references from outside
_any = False


class _Access(Primitive):
    """A read or a write of a reference. Bound, it accesses the reference and records nothing.

    The reference is a parameter. In the result of `make_jaxpr` it may be the first operand instead.
    """

    __slots__ = ()

    def bind(self, *value: Any, ref: Ref | None, aval: ShapedArray) -> Any:
        if ref is None:
            ref, value = value[0], value[1:]
        if not value:
            return ref.read(current_trace.get())
        ref.write(current_trace.get(), *value)
        return []

    __call__ = bind


def _refuse_access(*_: Any, ref: Ref, aval: ShapedArray) -> NoReturn:
    raise captured([ref], "")


def _access_effects(params: dict[str, Any]) -> Effects:
    global _any
    _any = True
    return frozenset([_EFFECT])


def _access(name: str, **rules: Any) -> _Access:
    return _Access(
        name,
        lower=_refuse_access,
        effects=_access_effects,
        show=lambda eqn, printer: {} if eqn.params["ref"] is None else {"ref": eqn.params["ref"].aval},
        keys=lambda eqn, uses_of: KeyUses(fresh=tuple(range(len(eqn.outvars)))),
        nan_checked=False,
        **rules,
    )


ref_read = _access("ref_read", types=lambda ref, aval: aval)
ref_write = _access("ref_write", types=lambda new, ref, aval: [], multiple_results=True)


def with_ref_inputs(closed: ClosedJaxpr, refs: dict[int, Ref]) -> ClosedJaxpr:
    """The program with an input for each of these references, at the positions that are their keys."""
    # Variables of other Jaxprs stand for arrays, which is what `Var` says.
    jaxpr, inputs = closed.jaxpr, {ref: Var(ref.aval) for ref in refs.values()}  # type: ignore[arg-type]
    invars = list(jaxpr.invars)
    for position, ref in refs.items():
        invars.insert(position, inputs[ref])

    def as_operand(eqn: JaxprEqn) -> JaxprEqn:
        ref = eqn.params["ref"] if eqn.primitive in (ref_read, ref_write) else None
        if ref not in inputs:
            return eqn
        return eqn.replace(invars=[inputs[ref], *eqn.invars], params={**eqn.params, "ref": None})

    return closed.replace(jaxpr=jaxpr.replace(invars=invars, eqns=[as_operand(eqn) for eqn in jaxpr.eqns]))


class Accesses(NamedTuple):
    """The references from outside that a program uses, and the program without its reads and writes.

    Attributes:
      values: the variable of the value of each reference.
      written: the new value of each reference that is written.
      eqns: the other equations.
    """

    values: dict[Ref, Var]
    written: dict[Ref, Atom]
    eqns: list[JaxprEqn]


def accesses(jaxpr: Jaxpr) -> Accesses:
    """The references from outside that a program uses."""
    # Most processes never use references in recorded programs. One global saves them the search.
    if not _any or _EFFECT not in jaxpr.effects:
        return Accesses({}, {}, jaxpr.eqns)

    def find() -> Accesses:
        state = Accesses({}, {}, [])
        for eqn in jaxpr.eqns:
            # A recorded program has at most one read and one write of a reference, see `JaxprTrace.write_ref`.
            if eqn.primitive is ref_read:
                state.values[eqn.params["ref"]] = eqn.outvars[0]
            elif eqn.primitive is ref_write:
                state.written[eqn.params["ref"]] = eqn.invars[0]
            else:
                state.eqns.append(eqn)
        return state

    result: Accesses = memoized(jaxpr, "accesses", find)
    return result


def uses_refs(params: dict[str, Any]) -> bool:
    """Whether a program among the parameters of an operation uses references from outside."""
    return _any and any(_EFFECT in jaxpr.effects for jaxpr in jaxprs_in(params))


def is_reusable(consts: Iterable[Any], refs: Iterable[Ref]) -> bool:
    """Whether a program that closes over these constants and references may be cached: none belongs to a trace."""
    return not any(isinstance(c, Tracer) for c in consts) and all(ref.home is None for ref in refs)


def is_valid_for(refs: Sequence[Ref], jaxpr: Jaxpr) -> bool:
    """Whether the program, recorded earlier, still fits the types of the references that it uses.

    The types of their values may change in the axes of a mesh along which values vary or are split.
    """
    variables = accesses(jaxpr).values
    return all(x.aval == variables[ref].aval for ref, x in zip(refs, values(refs), strict=True))
