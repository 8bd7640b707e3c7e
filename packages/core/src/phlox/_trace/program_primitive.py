"""Primitives that hold programs, the one protocol for them, and how these use references.

Transformations reach the programs of an operation by two functions of its primitive:

    bodies(params)                            -> a `Body` for each program, in the order in which they run
    rebuild(args, params, programs, carried)  -> operands and parameters of the operation with other programs

The constants of the new programs become operands: in a loop those that no turn changes. The values `carried` become
operands too, and pass through the programs: each takes them, and returns new values for them before its other results.
So they are the first carries of a loop, and operands and first results of a call or a branch.

Effects, axes of collectives, references, masks, checks, padding and physical types follow from these two where a
primitive states no rule of its own.

A program that uses references from outside reads them where it begins and writes them where it ends, see `refs`. When
an operation with such programs is bound, the values of references that are only read become constants of the programs.
Those of written ones are carried, and `bind` writes the new values back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._base.errors import RefError
from .._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var, axes_inside, effects_inside, memoized
from .._ir.primitive import Primitive, primitive, sharding_in_types, vma_in_types
from .axes import tracked_axes
from .refs import Accesses, Ref, accesses, uses_refs, values, write_all

#: the operands and the parameters of an operation
Operands = tuple[Sequence[Any], dict[str, Any]]


class Body(NamedTuple):
    """A program of an operation.

    Attributes:
      program: the Jaxpr.
      position: the number of inputs before those for carried values: in loops, the number of constants. None: it takes
        no carried values.
      returns: whether it returns carried values. The condition of a loop only takes them.
    """

    program: ClosedJaxpr
    position: int | None = 0
    returns: bool = True


class ProgramPrimitive(Primitive):
    """A primitive with parameters that are programs.

    Attributes:
      bodies, rebuild: see the head of this module. By default each Jaxpr among the parameters is a body.
      keeps_types: whether carried values keep their types, as in loops and branches.
      check_refs: ``check_refs(refs, params)`` raises `RefError` for references, a `RefValues`, that the programs may
        not use, or is None.
    """

    __slots__ = ("bodies", "check_refs", "keeps_types", "rebuild")

    holds_programs = True

    def __init__(
        self,
        name: str,
        *,
        bodies: Callable[[dict[str, Any]], list[Body]] | None = None,
        rebuild: Callable[..., Operands] | None = None,
        keeps_types: bool = False,
        check_refs: Callable[[RefValues, dict[str, Any]], None] | None = None,
        **statement: Any,
    ):
        super().__init__(name, **{**_DERIVED, **statement})
        self.bodies = bodies or _all_programs
        self.rebuild = rebuild
        self.keeps_types = keeps_types
        self.check_refs = check_refs

    def bind(self, *args: Any, **params: Any) -> Any:
        if not uses_refs(params):
            return self.apply(args, params)
        bodies = self.bodies(params)
        refs = RefValues(self, bodies)
        if self.check_refs is not None:
            self.check_refs(refs, params)
        outs = self.rebind(args, params, [refs.program(body) for body in bodies], values(refs.written))
        write_all(refs.written, outs[: len(refs.written)])
        return outs[len(refs.written) :]

    __call__ = bind

    def rebind(
        self, args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
    ) -> list[Any]:
        """Binds the operation with other programs."""
        if self.rebuild is None:
            raise RefError(f"{self.name} of programs that use references from outside", instead="pass the arrays")
        args, params = self.rebuild(args, params, programs, carried)
        outs: list[Any] = self.bind(*args, **params)
        return outs


def _all_programs(params: dict[str, Any]) -> list[Body]:
    items = [x for value in params.values() for x in (value if isinstance(value, tuple) else (value,))]
    return [Body(x) for x in items if type(x) is ClosedJaxpr]


#: The rules of primitives that hold programs, where they state no other. The rule `types` returns what the programs
#: return, with shardings and manual axes.
_DERIVED: dict[str, Any] = {
    "multiple_results": True,
    "vma": vma_in_types,
    "sharding": sharding_in_types,
    "extend": lambda params, trailing, *avals: params,
    "axes": axes_inside,
    "effects": effects_inside,
}


class RefValues:
    """The references that the programs of one operation use.

    Attributes:
      read, written: the references that the programs only read, and the others.
    """

    def __init__(self, holder: ProgramPrimitive, bodies: Sequence[Body]):
        self.name, self.keeps_types = holder.name, holder.keeps_types
        states: list[Accesses] = [accesses(body.program.jaxpr) for body in bodies]
        self.written = list(dict.fromkeys(ref for state in states for ref in state.written))
        read = dict.fromkeys(ref for state in states for ref in state.values if ref not in self.written)
        self.read = list(read)
        self.types = {ref: var.aval for state in states for ref, var in state.values.items()}
        self._values = values(self.read)

    def refuse_writes(self, what: str) -> None:
        """Raises `RefError` if a reference is written."""
        for ref in self.written:
            raise RefError(f"{what} writes to a reference from outside, of type {ref.aval}", instead="return the value")

    def program(self, body: Body) -> ClosedJaxpr:
        """The program as a function of values of references.

        Values of references that are read are constants; those of written references are carried.
        """
        closed, position = body.program, body.position
        if position is None:
            return closed

        def make() -> ClosedJaxpr:
            jaxpr = closed.jaxpr
            state = accesses(jaxpr)
            # Each body takes the values of all references and returns all that are written, even if only another body
            # uses them: the branches of one operation must have equal types.
            inputs = {ref: state.values.get(ref) or Var(self.types[ref]) for ref in (*self.read, *self.written)}
            written = [inputs[ref] for ref in self.written]
            new = [state.written.get(ref, inputs[ref]) for ref in self.written] if body.returns else []
            eqns = list(state.eqns)
            if self.keeps_types:
                new = [self._as_before(ref, x, eqns) for ref, x in zip(self.written, new, strict=body.returns)]
            return closed.replace(
                jaxpr=jaxpr.replace(
                    constvars=[*jaxpr.constvars, *(inputs[ref] for ref in self.read)],
                    invars=[*jaxpr.invars[:position], *written, *jaxpr.invars[position:]],
                    outvars=[*new, *jaxpr.outvars],
                    eqns=eqns,
                )
            )

        types = [self.types[ref] for ref in (*self.read, *self.written)]
        # None separates references that are read from those that are written.
        key = ("references", *self.read, None, *self.written, *types, position, body.returns, self.keeps_types)
        result: ClosedJaxpr = memoized(closed.jaxpr, key, make)
        return result.replace(consts=[*closed.consts, *self._values])

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
