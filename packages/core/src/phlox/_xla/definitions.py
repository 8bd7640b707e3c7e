"""The equations that define the values of a program while it is lowered: a form may compute several of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .._ir.jaxpr import Atom, Jaxpr, Var
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
    """

    __slots__ = ("_jaxpr", "_read", "_values")

    def __init__(self, jaxpr: Jaxpr, values: Mapping[Var, Value], read: Callable[[Atom], Value]):
        self._jaxpr, self._values, self._read = jaxpr, values, read

    def of(self, x: Value) -> Definition | None:
        """The equation whose only result is `x`; None for inputs, and for values that a rule made."""
        for eqn in self._jaxpr.eqns:
            value = self._values.get(eqn.outvars[0]) if len(eqn.outvars) == 1 else None
            if value is x:
                return Definition(eqn.primitive.name, tuple(map(self._read, eqn.invars)), eqn.params)
        return None
