"""Transposition: evaluates a linear Jaxpr backwards, from cotangents of outputs to cotangents of inputs.

If the Jaxpr computes t -> A t, its transpose computes c -> Aᵀ c. Linearization followed by transposition is reverse
mode. The `transpose` rule of a primitive gets the cotangents of its results and its operands: a `Linear` placeholder
for an operand that it is linear in, else the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

from .._base.errors import ArgumentError, DerivativeError
from .._base.source import Replay, replays
from .._ir.avals import ShapedArray
from .._ir.dependence import separated
from .._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var, recorded_x64
from .._trace.trace import not_an_array
from .array_operations import Zero, add
from .manual_axes import any_typed, as_typed


class Linear:
    """Stands for an operand that an operation is linear in; it has a type and no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval.short})"

    def __index__(self) -> NoReturn:
        raise not_an_array(self)


class Unwanted(Linear):
    """A `Linear` argument whose cotangent is not needed."""

    __slots__ = ()


def is_linear(x: Any) -> bool:
    """Whether `x`, an operand that a `transpose` rule gets, is a placeholder: the operation is linear in that operand.

    Args:
      x: an operand: a `Linear`, or a value.

    Returns:
      A bool.

    >>> is_linear(1.0), is_linear(Linear(phlox.typeof(1.0)))
    (False, True)
    """
    return type(x) is Linear


@replays
def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of `args` (None for an argument that is not `Linear`), given the `cotangents` of the outputs.

    Cotangents may be `Zero`. Results that do not depend on `Linear` arguments are computed first, in order: also those
    of a loop or call whose other results are linear. The cotangent of an `Unwanted` argument is `Zero`; operations that
    only this cotangent needs are not done.
    """
    program = _LinearProgram(jaxpr, consts, args)
    program.evaluate()
    program.transpose(cotangents)
    return [
        program.cotangent(v) if isinstance(arg, Linear) else None for v, arg in zip(jaxpr.invars, args, strict=True)
    ]


class _LinearProgram:
    """A jaxpr that is linear in some arguments, with its known values, and the cotangents gathered so far."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]):
        self.jaxpr = jaxpr
        #: values of the variables that do not depend on `Linear` arguments
        self.values: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        #: variables that depend on `Linear` arguments
        self.linear: set[Var] = set()
        #: those of `linear` whose cotangent is needed
        self.active: set[Var] = set()
        #: equations that are transposed, in order
        self.backward: list[JaxprEqn] = []
        self.cotangents: dict[Var, Any] = {}
        self.has_typed_cotangents = any_typed()
        for v, arg in zip(jaxpr.invars, args, strict=True):
            if isinstance(arg, Linear):
                self.linear.add(v)
                if type(arg) is Linear:
                    self.active.add(v)
            else:
                self.values[v] = arg

    def evaluate(self) -> None:
        """Computes what does not depend on `Linear` arguments, and lists the equations to transpose."""
        has_64_bit = self.jaxpr.has_64_bit
        with Replay() as replay:
            for eqn in self.jaxpr.eqns:
                known = self._known_part(eqn)
                if known is None:
                    continue
                replay.enter(known.source_info)
                with recorded_x64(known) if has_64_bit else nullcontext():
                    out = known.primitive.bind(*self._operands(known), **known.params)
                self.values.update(zip(known.outvars, out if known.primitive.multiple_results else [out], strict=True))

    def _known_part(self, eqn: JaxprEqn) -> JaxprEqn | None:
        """The equation narrowed to results that can be computed now, or None; the linear part goes to `backward`."""
        operands = [v in self.linear for v in eqn.invars]
        if not any(operands):
            return eqn
        known, eqn = separated(eqn, operands)
        self.linear.update(eqn.outvars)
        # An equation that only `Unwanted` arguments reach has no cotangent to pass on.
        if any(v in self.active for v in eqn.invars if type(v) is Var):
            self.active.update(v for v in eqn.outvars if v in self.linear)
            self.backward.append(eqn)
        return known

    def transpose(self, cotangents: Sequence[Any]) -> None:
        """Gathers the cotangents of the arguments by the transpose rules of the equations, last one first."""
        for out, cotangent in zip(self.jaxpr.outvars, cotangents, strict=True):
            self._add_cotangent(out, cotangent)
        if not self.cotangents:
            return
        has_64_bit = self.jaxpr.has_64_bit
        with Replay() as replay:
            for eqn in reversed(self.backward):
                # Without a cotangent of a result those of the operands are zero, unless the primitive says otherwise.
                if not any(v in self.cotangents for v in eqn.outvars) and not eqn.primitive.transposes_zeros:
                    continue
                # All equations that read these variables come later and were transposed: the cotangents are complete,
                # and can be freed.
                incoming = [self.cotangent(v) for v in eqn.outvars]
                for v in eqn.outvars:
                    self.cotangents.pop(v, None)
                rule = eqn.primitive.rule("transpose")
                cotangent_in = incoming if eqn.primitive.multiple_results else incoming[0]
                replay.enter(eqn.source_info)
                with recorded_x64(eqn) if has_64_bit else nullcontext():
                    try:
                        outgoing = rule(cotangent_in, *self._operands(eqn), **eqn.params)
                    except ArgumentError as error:
                        if not isinstance(getattr(error, "value", None), Linear):
                            raise
                        # The rule used the value of an operand that has none here: it is linear in another one.
                        raise DerivativeError(
                            f"the transpose (for reverse-mode differentiation) of {eqn.primitive} does not exist, as "
                            "it is not linear in all operands that depend on what is transposed",
                            instead="a rule of custom_jvp, or a function of linear_transpose, that is linear",
                        ) from None
                for operand, cotangent in zip(eqn.invars, outgoing, strict=True):
                    self._add_cotangent(operand, cotangent)

    def cotangent(self, v: Var) -> Any:
        return self.cotangents[v] if v in self.cotangents else Zero(v.aval.cotangent())

    def _operands(self, eqn: JaxprEqn) -> list[Any]:
        """Values of the operands; `Linear` for those that depend on linear arguments."""
        return [
            v.val if isinstance(v, Literal) else Linear(v.aval) if v in self.linear else self.values[v]
            for v in eqn.invars
        ]

    def _add_cotangent(self, v: Atom, cotangent: Any) -> None:
        if isinstance(v, Var) and v in self.active and cotangent is not None and type(cotangent) is not Zero:
            if self.has_typed_cotangents:  # the operand may have been cast to vary over more mesh axes: casts back
                cotangent = as_typed(cotangent, v.aval.cotangent())
            self.cotangents[v] = add(self.cotangents[v], cotangent) if v in self.cotangents else cotangent
