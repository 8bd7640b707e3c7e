"""The equations that define and read the values of a program while it is lowered: a form may compute several of them at
once, or leave a value to the loop of its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Var
from .text import Value


class Definition(NamedTuple):
    """An equation with one result: the name of its primitive, the values of its operands, and its parameters."""

    name: str
    operands: tuple[Value, ...]
    params: dict[str, Any]


class Definitions:
    """The equations of a Jaxpr that is being lowered.

    Args:
      jaxpr: the Jaxpr.
      values: the values of its variables; those of its results are added while it is lowered.
      read: the value of an operand.

    Attributes:
      equation: the equation for which a form is being looked for.
    """

    __slots__ = ("_count", "_equations", "_jaxpr", "_read", "_readers", "_values", "equation")

    def __init__(self, jaxpr: Jaxpr, values: Mapping[Var, Value], read: Callable[[Atom], Value]):
        self._jaxpr, self._values, self._read = jaxpr, values, read
        self.equation: JaxprEqn | None = None
        # Filled when they are asked for: the equation of each value among the first `_count` ones, and the readers.
        self._equations: dict[Value, JaxprEqn] = {}
        self._count = 0
        self._readers: dict[Var, list[JaxprEqn]] | None = None

    def of(self, x: Value) -> Definition | None:
        """The equation whose only result is `x`; None for inputs, and for values that a rule made."""
        eqns = self._jaxpr.eqns
        while eqns[self._count] is not self.equation:
            eqn = eqns[self._count]
            self._count += 1
            value = self._values.get(eqn.outvars[0]) if len(eqn.outvars) == 1 else None
            if value is not None:
                self._equations.setdefault(value, eqn)  # later ones may hand a value on
        definition = self._equations.get(x)
        if definition is None:
            return None
        return Definition(definition.primitive.name, tuple(map(self._read, definition.invars)), definition.params)

    def is_read_for_results_alone(self, main: Jaxpr | None) -> bool:
        """Whether the result of the equation is one of the Jaxpr `main`, or read once, by an elementwise operation of
        which this is true."""
        if self._jaxpr is not main or self.equation is None:
            return False
        (v,) = self.equation.outvars
        while v not in main.outvars:
            readers = self._readers_of(v)
            if len(readers) != 1 or readers[0].primitive.operation is None:
                return False
            (result,) = readers[0].outvars
            if result.aval.shape != v.aval.shape:
                return False
            v = result
        return not self._readers_of(v)

    def _readers_of(self, v: Var) -> list[JaxprEqn]:
        """The equations that read `v`, one as often as it does."""
        if self._readers is None:
            self._readers = {}
            for eqn in self._jaxpr.eqns:
                for x in eqn.invars:
                    if type(x) is Var:
                        self._readers.setdefault(x, []).append(eqn)
        return self._readers.get(v, [])
