"""Staging: runs a Python function once on tracers and records its operations as a Jaxpr.

All operations while the function runs are recorded, also those on constants only. Arrays that the function closes over
become constants of the Jaxpr, which are later hidden arguments of the compiled program; Python and NumPy scalars
become literals in the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base import config, source
from .._ir.avals import ShapedArray, typeof_value
from .._ir.dimensions import is_symbolic
from .._ir.dtypes import ExtendedDtype, is_extended, is_wide
from .._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var
from .._ir.primitive import Primitive, primitive as named
from .checks import check_jaxpr
from .refs import Ref, captured, ref_read, ref_write
from .trace import ArrayBase, Trace, Tracer, bind_under, check_live, not_an_array


class JaxprTracer(Tracer):
    """Stands for a variable or a literal of the Jaxpr that is being recorded."""

    __slots__ = ("aval", "variable")

    def __init__(self, trace: JaxprTrace, var: Atom):
        self.owner = trace
        self.variable = var
        self.aval = var.aval


class JaxprTrace(Trace):
    """Records operations as equations of a Jaxpr."""

    __slots__ = ("arg_names", "captured", "constants", "consts", "enable_x64", "eqns", "invars", "name", "refs")

    def __init__(self, name: str, arg_names: Callable[[], Sequence[str]] | None = None):
        super().__init__()
        self.name = name
        self.arg_names = arg_names
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        #: the variables of constants, which are kept alive: no other object can get the id of one
        self.constants: dict[tuple[int, ShapedArray], tuple[Var, Any]] = {}
        self.consts: list[Any] = []
        self.enable_x64 = config.current().enable_x64
        #: the current values of references from outside, and their values where the program begins
        self.refs: dict[Ref, Any] = {}
        self.captured: dict[Ref, JaxprTracer] = {}

    def argument(self, aval: ShapedArray) -> JaxprTracer:
        """Adds an input to the Jaxpr; returns its tracer."""
        var = Var(aval)
        self.invars.append(var)
        return JaxprTracer(self, var)

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for `x` in equations."""
        if type(x) is JaxprTracer and x.owner is self:
            return x.variable
        # The value of a tracer of an outer trace is known where the recorded program is bound: a constant here.
        if isinstance(x, Tracer):
            check_live(x)
            return self._constant(x, x.aval)
        aval = typeof_value(x)
        if aval is None:
            raise not_an_array(x, "an operand")
        # Arrays of phlox without axes stay constants: reading the number would wait for its computation.
        if not aval.shape and isinstance(x, np.ndarray | np.generic | bool | int | float | complex):
            return Literal(x, aval)
        if is_symbolic(x):
            # Not `x.as_value()`: results are read when this trace is not current any more.
            return self.atom(self.process(named("dim_as_value"), (), {"dim": x}))
        if not isinstance(x, ArrayBase | np.ndarray):  # has an aval but no value, as the placeholders of transposition
            raise not_an_array(x, "an operand")
        return self._constant(x, aval)

    def recorder(self) -> Any:
        return self

    def constant(self, x: Any, aval: ShapedArray) -> JaxprTracer:
        """A tracer for a constant: an array becomes a constant of the Jaxpr, a number a literal."""
        return JaxprTracer(self, self._constant(x, aval) if aval.shape else Literal(x, aval))

    def tracer_of_description(self, x: Any) -> JaxprTracer:
        """A tracer for `x`, which has an `aval` and no value. A Jaxpr with this constant can be shown, not compiled."""
        return JaxprTracer(self, self._constant(x, x.aval))

    def _constant(self, x: Any, aval: ShapedArray) -> Var:
        key = id(x), aval  # a NumPy array of 64 bits has another type in a block of `enable_x64`
        known = self.constants.get(key)
        if known is not None:
            return known[0]
        var = Var(aval)
        self.constants[key] = var, x
        if self.enable_x64 != config.current().enable_x64 and isinstance(x, np.ndarray) and is_wide(x.dtype):
            x = bind_under(None, named("copy"), (x,), {})  # of phlox: it keeps its type after the block
        self.consts.append(x)
        return var

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        invars: list[Atom] = [x.variable if type(x) is JaxprTracer and x.owner is self else self.atom(x) for x in args]
        avals = primitive.types_of(tuple([v.aval for v in invars]), params)
        location = source.user_location(2)
        # Reports of PRNG keys that are used twice name the caller's line. In an operation with one result only the
        # first operand can be a key; one that holds programs may take keys anywhere.
        if primitive.multiple_results:
            if location is not None and any(is_extended(v.aval.dtype) for v in invars):
                location = source.with_caller(location)
            outvars = [Var(aval) for aval in avals]
            self.eqns.append(JaxprEqn(invars, outvars, primitive, params, location))
            return [JaxprTracer(self, v) for v in outvars]
        if location is not None and invars and isinstance(invars[0].aval.dtype, ExtendedDtype):
            location = source.with_caller(location)
        var = Var(avals)
        self.eqns.append(JaxprEqn(invars, [var], primitive, params, location))
        return JaxprTracer(self, var)

    def read_ref(self, ref: Ref) -> Any:
        # A write reads first, so the first use finds the value with which the program begins, wherever it stands.
        if ref not in self.refs:
            aval = ref.read(self.parent).aval
            var = Var(aval)
            self.eqns.append(JaxprEqn([], [var], ref_read, {"ref": ref, "aval": aval}, source.user_location(2)))
            self.refs[ref] = self.captured[ref] = JaxprTracer(self, var)
        return self.refs[ref]

    def write_ref(self, ref: Ref, value: Any) -> None:
        self.read_ref(ref)
        # Within a trace a write is a new current value. One `ref_write` at the end of the Jaxpr records the last of
        # them.
        self.refs[ref] = value

    def jaxpr(self, outputs: Sequence[Any], may_use_refs: bool = True) -> tuple[Jaxpr, list[Any]]:
        """The recorded Jaxpr with these outputs, and the values of its constants."""
        if self.captured and not may_use_refs:
            raise captured(self.captured, self.name)
        for ref, value in self.captured.items():
            if self.refs[ref] is not value:
                params = {"ref": ref, "aval": value.aval}
                self.eqns.append(JaxprEqn([self.atom(self.refs[ref])], [], ref_write, params))
        outvars = [self.atom(x) for x in outputs]
        constvars = [var for var, _ in self.constants.values()]
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns, name=self.name)
        if config.current().enable_checks:
            check_jaxpr(jaxpr)
        return jaxpr, self.consts

    def explain(self, tracer: Tracer) -> str:
        if self.arg_names is None or type(tracer) is not JaxprTracer:
            return f"traced in {self.name}" if self.name else ""
        names = self._depends_on(tracer.variable)
        if not names:
            return f"traced in {self.name}; it does not depend on its arguments"
        plural = "s" if len(names) > 1 else ""
        return f"traced in {self.name}; it depends on argument{plural} {', '.join(names)}"

    def creation_site(self, tracer: Tracer) -> source.Location | None:
        if type(tracer) is JaxprTracer:
            for eqn in self.eqns:
                if tracer.variable in eqn.outvars:
                    return eqn.source_info
        return None

    def _depends_on(self, var: Atom) -> list[str]:
        needed = {var}
        for eqn in reversed(self.eqns):
            if any(v in needed for v in eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is Var)
        names = self.arg_names() if self.arg_names is not None else ()
        return [name for v, name in zip(self.invars, names, strict=False) if v in needed]


def stage(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray],
    *,
    name: str = "",
    arg_names: Callable[[], Sequence[str]] | None = None,
    may_use_refs: bool = False,
) -> tuple[Jaxpr, list[Any]]:
    """Records `fun`, which takes one tracer for each of `in_avals` and returns a flat sequence of values.

    `arg_names` is called for the user's names of the arguments when an error message needs them. Returns the Jaxpr and
    the values of its constants, which may be tracers of an outer trace.

    With `may_use_refs`, the Jaxpr may read and write references that were made outside: it becomes a parameter of a
    `ProgramPrimitive`, or is evaluated. Otherwise raises `RefError` if `fun` uses such references.
    """
    trace = JaxprTrace(name, arg_names)
    tracers = [trace.argument(aval) for aval in in_avals]
    token = source.scope.set(source.inner_scope())
    try:
        return trace.jaxpr(trace.run(fun, *tracers), may_use_refs)
    finally:
        source.scope.reset(token)
