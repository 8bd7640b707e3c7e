"""Which results of a Jaxpr or an equation depend on which operands."""

from __future__ import annotations

from collections.abc import Sequence

from .jaxpr import Atom, Jaxpr, JaxprEqn, memoized, only


def dependent_outputs(jaxpr: Jaxpr, inputs: Sequence[bool]) -> list[bool]:
    """For each output of a Jaxpr, whether it depends on the inputs that are marked."""

    def find() -> list[bool]:
        dependent: set[Atom] = set(only(jaxpr.invars, inputs))
        for eqn in jaxpr.eqns:
            dependent.update(only(eqn.outvars, dependent_results(eqn, [v in dependent for v in eqn.invars])))
        return [v in dependent for v in jaxpr.outvars]

    flags: list[bool] = memoized(jaxpr, ("dependent outputs", tuple(inputs)), find)
    return flags


def dependent_results(eqn: JaxprEqn, operands: Sequence[bool]) -> list[bool]:
    """For each result of an equation, whether it depends on the operands that are marked."""
    rule = eqn.primitive.dependent
    # If all operands are marked, or none is, the results are too: only mixed marks need the rule.
    if rule is not None and any(operands) and not all(operands):
        flags: list[bool] = rule(operands, eqn.params)
        return flags
    return [any(operands)] * len(eqn.outvars)


def separated(eqn: JaxprEqn, operands: Sequence[bool]) -> tuple[JaxprEqn | None, JaxprEqn]:
    """The equation for the results that do not depend on the marked operands, and the one for those that do.

    The first is None if there is nothing to compute without these operands. Its results may be operands of the second.
    """
    primitive = eqn.primitive
    if primitive.separate is not None:
        halves: tuple[JaxprEqn | None, JaxprEqn] = primitive.separate(eqn, operands)
        return halves
    dependent = dependent_results(eqn, operands)
    if all(dependent):
        return None, eqn
    return primitive.drop_unused(eqn, [not flag for flag in dependent]), primitive.drop_unused(eqn, dependent)
