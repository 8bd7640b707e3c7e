"""Primitives that hold programs, and how these use references.

A program that uses references from outside reads them where it begins and writes them where it ends, see `refs`. When
an operation with such programs is bound, the values of the references become operands, the new values become results,
and `bind` writes these back. So a reference is a carry of a loop, an operand and a result of a branch or a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import RefError
from .._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var, jaxprs_in, memoized
from .._ir.primitive import Primitive, primitive
from .axes import tracked_axes
from .refs import Accesses, Ref, accesses, uses_refs, values, write_all

#: the operands and the parameters of an operation
Operands = tuple[Sequence[Any], dict[str, Any]]


class RefValues:
    """The references that the programs of one operation use.

    Attributes:
      read, written: the references that the programs only read, and the others.
    """

    def __init__(self, name: str, states: Sequence[Accesses]):
        self.name = name
        written = dict.fromkeys(ref for state in states for ref in state.written)
        self.written = list(written)
        self.read = [*dict.fromkeys(ref for state in states for ref in state.values if ref not in written)]
        self.types = {ref: var.aval for state in states for ref, var in state.values.items()}
        self.keeps_types = False

    def keep_types(self) -> RefValues:
        """Requires that new values have the types of the old ones, as in loops and branches."""
        self.keeps_types = True
        return self

    def refuse_writes(self, what: str) -> None:
        """Raises `RefError` if a reference is written."""
        for ref in self.written:
            raise RefError(f"{what} writes to a reference from outside, of type {ref.aval}", instead="return the value")

    def program(self, closed: ClosedJaxpr, position: int = 0, *, results: bool = True) -> ClosedJaxpr:
        """The program as a function of values of references.

        Its first inputs are the values of the references that are read. Those of written references come before its
        input `position`. With `results`, its first results are the new values of these.
        """

        def make() -> ClosedJaxpr:
            jaxpr = closed.jaxpr
            state = accesses(jaxpr)
            inputs = {ref: state.values.get(ref) or Var(self.types[ref]) for ref in (*self.read, *self.written)}
            read, written = [inputs[ref] for ref in self.read], [inputs[ref] for ref in self.written]
            new = [state.written.get(ref, inputs[ref]) for ref in self.written] if results else []
            eqns = list(state.eqns)
            if self.keeps_types:
                new = [self._as_before(ref, x, eqns) for ref, x in zip(self.written, new, strict=results)]
            return closed.replace(
                jaxpr=jaxpr.replace(
                    invars=[*read, *jaxpr.invars[:position], *written, *jaxpr.invars[position:]],
                    outvars=[*new, *jaxpr.outvars],
                    eqns=eqns,
                )
            )

        types = [self.types[ref] for ref in (*self.read, *self.written)]
        key = ("references", *self.read, None, *self.written, *types, position, results, self.keeps_types)
        result: ClosedJaxpr = memoized(closed.jaxpr, key, make)
        return result

    def _as_before(self, ref: Ref, new: Atom, eqns: list[JaxprEqn]) -> Atom:
        """The new value with the type of the old one: inside of `shard_map` it may have to vary along more axes."""
        expected = self.types[ref]
        if not new.aval.vma <= expected.vma or new.aval.spec != expected.spec:
            raise RefError(
                f"{self.name}: a reference has a value of type {expected.short}, and gets one of type {new.aval.short}",
                instead="a start value that varies, or is split, along the same mesh axes",
            )
        if new.aval.vma == expected.vma:
            return new
        result, more = Var(expected), expected.vma - new.aval.vma
        axes = tuple(axis for axis in tracked_axes() if axis in more)
        eqns.append(JaxprEqn([new], [result], primitive("pvary"), {"axes": axes}))
        return result


class ProgramPrimitive(Primitive):
    """A primitive with parameters that are programs, which may use references.

    Its rule ``pass_refs(refs, args, params) -> (args, params)`` makes the values of `refs`, a `RefValues`, operands and
    first results of the operation; `values` of `refs.read` and `refs.written` are the operands.
    """

    __slots__ = ("pass_refs",)

    def __init__(self, name: str, *, pass_refs: Callable[..., Any], **rules: Any):
        super().__init__(name, **rules)
        self.pass_refs = pass_refs

    def bind(self, *args: Any, **params: Any) -> Any:
        if not uses_refs(params):
            return self.apply(args, params)
        refs = RefValues(self.name, [accesses(jaxpr) for jaxpr in jaxprs_in(params)])
        outs = self.apply(*self.pass_refs(refs, args, params))
        write_all(refs.written, outs[: len(refs.written)])
        return outs[len(refs.written) :]

    __call__ = bind


def call_with_refs(name: str) -> Callable[..., Any]:
    """The rule `pass_refs` of primitives that run their parameter `name`, a program, once on their operands."""

    def rule(refs: RefValues, args: Sequence[Any], params: dict[str, Any]) -> Operands:
        return [*values(refs.read), *values(refs.written), *args], {**params, name: refs.program(params[name])}

    return rule
