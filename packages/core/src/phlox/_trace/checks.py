"""Checks that recorded Jaxprs are well-formed and well-typed, for the flag `enable_checks`.

A failed check means a bug in a transformation or in the rules of a primitive. Without the check it would appear as an
error message of the compiler.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base.errors import JaxprTypeError, PhloxError
from .._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Var, jaxprs_in


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Checks that a Jaxpr is well-formed and well-typed.

    Args:
      jaxpr: the Jaxpr; Jaxprs in the parameters of its equations are checked too.

    Raises:
      JaxprTypeError: a variable is read before it is bound, or is bound twice; or the types of an equation's results
        are not those that the rule `types` of its primitive returns.

    >>> check_jaxpr(phlox.make_jaxpr(lambda x: x + 1)(1.0).jaxpr)
    """
    known: set[Var] = set()

    def define(v: Var, where: object) -> None:
        if v in known:
            raise JaxprTypeError(
                f"malformed program: a variable of type {v.aval.short} is given two values, by {where}"
            )
        known.add(v)

    for v in (*jaxpr.constvars, *jaxpr.invars):
        define(v, "its inputs")
    for eqn in jaxpr.eqns:
        _check_read(known, eqn.invars, eqn)
        _check_types(eqn)
        for inner in jaxprs_in(eqn.params):
            check_jaxpr(inner)
        for v in eqn.outvars:
            define(v, eqn)
    _check_read(known, jaxpr.outvars, "the results")


def _check_read(known: set[Var], atoms: Sequence[Atom], where: object) -> None:
    for v in atoms:
        if isinstance(v, Var) and v not in known:
            raise JaxprTypeError(f"malformed program: {where} reads a variable of type {v.aval.short} without a value")


def _check_types(eqn: JaxprEqn) -> None:
    try:
        # The rule itself: `types_of` would return the cached types that the equation was made with.
        result = eqn.primitive.find_types(tuple([v.aval for v in eqn.invars]), eqn.params)
    except PhloxError as error:
        raise JaxprTypeError(
            f"malformed program: an equation of {eqn.primitive.name} is refused: {error.what}", where=eqn.source_info
        ) from error
    avals = list(result) if eqn.primitive.multiple_results else [result]
    declared = [v.aval for v in eqn.outvars]
    if avals != declared:
        raise JaxprTypeError(
            f"malformed program: {eqn} declares {[a.short for a in declared]}, but gives {[a.short for a in avals]}",
            where=eqn.source_info,
        )
