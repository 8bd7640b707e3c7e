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

    __slots__ = ("_jaxpr", "_read", "_values", "equation")

    def __init__(self, jaxpr: Jaxpr, values: Mapping[Var, Value], read: Callable[[Atom], Value]):
        self._jaxpr, self._values, self._read = jaxpr, values, read
        self.equation: JaxprEqn | None = None

    def of(self, x: Value) -> Definition | None:
        """The equation whose only result is `x`; None for inputs, and for values that a rule made."""
        for eqn in self._jaxpr.eqns:
            value = self._values.get(eqn.outvars[0]) if len(eqn.outvars) == 1 else None
            if value is x:
                return Definition(eqn.primitive.name, tuple(map(self._read, eqn.invars)), eqn.params)
        return None

    def is_read_for_results_alone(self, main: Jaxpr | None) -> bool:
        """Whether the result of the equation is one of the Jaxpr `main`, or read once, by an elementwise operation of
        which this is true."""
        if self._jaxpr is not main or self.equation is None:
            return False
        (v,) = self.equation.outvars
        while v not in main.outvars:
            readers = [eqn for eqn in main.eqns if v in eqn.invars]
            if len(readers) != 1 or readers[0].primitive.operation is None or readers[0].invars.count(v) != 1:
                return False
            (result,) = readers[0].outvars
            if result.aval.shape != v.aval.shape:
                return False
            v = result
        return not any(v in eqn.invars for eqn in main.eqns)
