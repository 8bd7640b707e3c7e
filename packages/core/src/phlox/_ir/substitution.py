"""Programs with symbolic dimensions for values of these: the same equations, with numbers in types and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .avals import ShapedArray, shaped
from .dimensions import evaluated, is_symbolic
from .jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

Values = Mapping[str, Any]


def aval_for(aval: ShapedArray, values: Values) -> ShapedArray:
    """The type for these values of the names."""
    if not any(map(is_symbolic, aval.shape)):
        return aval
    return shaped(tuple(evaluated(n, values) for n in aval.shape), aval.dtype, aval.weak_type)


def program_for(closed: ClosedJaxpr, values: Values) -> ClosedJaxpr:
    """The program for these values of the names."""
    return ClosedJaxpr(_Substitution(values).jaxpr(closed.jaxpr), closed.consts)


class _Substitution:
    """Remembers which Jaxpr became which, so that those that occur several times still do."""

    def __init__(self, values: Values):
        self.values = values
        self.cache: dict[Jaxpr, Jaxpr] = {}

    def jaxpr(self, old: Jaxpr) -> Jaxpr:
        new = self.cache.get(old)
        if new is None:
            new = self.cache[old] = self._jaxpr(old)
        return new

    def _jaxpr(self, old: Jaxpr) -> Jaxpr:
        variables: dict[Var, Var] = {}

        def var(v: Var) -> Var:
            if v not in variables:
                variables[v] = Var(aval_for(v.aval, self.values))
            return variables[v]

        def atom(v: Atom) -> Atom:
            return v if isinstance(v, Literal) else var(v)

        def equation(eqn: JaxprEqn) -> JaxprEqn:
            params = {name: self.value(x) for name, x in eqn.params.items()}
            return eqn.replace(invars=[*map(atom, eqn.invars)], outvars=[*map(var, eqn.outvars)], params=params)

        return old.replace(
            constvars=[*map(var, old.constvars)],
            invars=[*map(var, old.invars)],
            eqns=[*map(equation, old.eqns)],
            outvars=[*map(atom, old.outvars)],
        )

    def value(self, x: Any) -> Any:
        """A parameter of an equation."""
        if is_symbolic(x):
            return evaluated(x, self.values)
        kind = type(x)
        if kind is ClosedJaxpr:
            return ClosedJaxpr(self.jaxpr(x.jaxpr), x.consts)
        if kind is Jaxpr:
            return self.jaxpr(x)
        if kind is ShapedArray:
            return aval_for(x, self.values)
        if kind is tuple or kind is list:
            return kind(map(self.value, x))
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return kind(*map(self.value, x))
        return x
