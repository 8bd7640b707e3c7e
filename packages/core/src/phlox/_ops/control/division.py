"""Splits a jaxpr by a checkpoint policy, into a half that saves some values and a half that recomputes the others.

Primitives with inner jaxprs, such as `jit`, `cond` and `scan`, have a rule `divide`, so that a policy also decides on
the equations inside calls, branches and loop bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from ..._base.errors import ArgumentError
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, Var, memoized, narrowed, only
from ..._ir.memory_spaces import space_of
from ..._ir.primitive import primitive


class _Answer:
    """What a policy may return besides True and False."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


Recompute = _Answer("Recompute")
Saveable = _Answer("Saveable")


class Offloadable(NamedTuple):
    """What a policy returns to save results in another memory until they are needed.

    `src` and `dst` are memory kinds such as "device" and "pinned_host".
    """

    src: str
    dst: str


#: ``policy(primitive, *avals, **params)`` returns whether the results of an equation are saved.
Policy = Callable[..., Any]


def ask(policy: Policy, eqn: JaxprEqn) -> bool | Offloadable:
    """Whether, or where, the policy saves the results of an equation. Raises `ArgumentError` for an unknown answer."""
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(answer, bool | Offloadable):
        return answer
    if answer is Saveable or answer is Recompute:
        return answer is Saveable
    raise ArgumentError(
        f"a policy of checkpoint answered {answer!r} when asked about {eqn.primitive}",
        instead="True or False; or Saveable, Recompute or Offloadable(src=..., dst=...) of phlox.ad_checkpoint",
    )


def _move(kind: str, x: Var, out: Var) -> JaxprEqn:
    return JaxprEqn([x], [out], primitive("to_memory"), {"memory_kind": kind})


class Divided(NamedTuple):
    """A jaxpr split by a policy. `forward` returns the results, then the `residuals` that are saved; `recompute` takes
    the arguments, then the residuals, and returns the results. Both halves use the same `Var` objects."""

    forward: ClosedJaxpr
    recompute: ClosedJaxpr
    residuals: list[Var]


def divide(closed: ClosedJaxpr, policy: Policy, excepted: Collection[JaxprEqn] = ()) -> Divided:
    """Splits a jaxpr by a policy; `excepted` equations are in both halves and their results are not saved."""

    def make() -> Divided:
        forward: list[JaxprEqn] = []
        recompute: list[JaxprEqn] = []
        residuals: list[Var] = []
        for eqn in closed.eqns:
            if eqn in excepted:
                forward.append(eqn)
                recompute.append(eqn)
            elif eqn.primitive.divide is not None:
                saving, recomputing, new_residuals = eqn.primitive.divide(eqn, policy)
                forward.append(saving)
                recompute.append(recomputing)
                residuals += new_residuals
            else:
                forward.append(eqn)
                answer = ask(policy, eqn)
                if isinstance(answer, Offloadable):
                    offloaded = [Var(v.aval.in_space(space_of(answer.dst))) for v in eqn.outvars]
                    forward += map(partial(_move, answer.dst), eqn.outvars, offloaded)
                    recompute += map(partial(_move, answer.src), offloaded, eqn.outvars)
                    residuals += offloaded
                elif answer:
                    residuals += eqn.outvars
                else:
                    recompute.append(eqn)
        jaxpr = closed.jaxpr
        return Divided(
            closed.replace(jaxpr=jaxpr.replace(eqns=forward, outvars=[*jaxpr.outvars, *residuals])),
            closed.replace(jaxpr=jaxpr.replace(eqns=recompute, invars=[*jaxpr.invars, *residuals])),
            residuals,
        )

    # Equations are compared by identity: the exceptions of one call mean nothing for the next.
    if excepted:
        return make()
    result: Divided = memoized(closed.jaxpr, ("divided", policy), make)
    return result


def divided_call(
    eqn: JaxprEqn, divided: Divided, outer: Callable[[Var], Any], num_consts: int = 0, num_carry: int = 0
) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    """The rule `divide` of a primitive whose parameter `jaxpr` was split into `divided`.

    Returns the equations of the two halves, and the variables that the first passes to the second. A saved value that
    is a result of the jaxpr after the first `num_carry` is passed as that result of the equation; for every other one
    the equation gets a new result, of type ``outer(variable)``.
    """
    outputs = divided.forward.jaxpr.outvars
    # A result of the equation that is saved already has a variable. Carries differ: the saved ones are those of each
    # turn.
    results = {v: o for v, o in zip(outputs[num_carry:], eqn.outvars[num_carry:], strict=False) if type(v) is Var}
    more = [v for v in divided.residuals if v not in results]
    results |= {v: Var(outer(v)) for v in more}
    residuals = [results[v] for v in divided.residuals]
    first = divided.forward
    first = first.replace(jaxpr=first.jaxpr.replace(outvars=[*outputs[: len(eqn.outvars)], *more]))
    # What is saved need not be computed again. Values that nothing is computed from are no operands: an operand of the
    # second half is stored. The constants and the carry of a loop keep their places.
    missing = [v not in residuals for v in eqn.outvars]
    operands = [*eqn.invars, *residuals]
    second, read = narrowed(divided.recompute, missing, [i < num_consts + num_carry for i in range(len(operands))])
    return (
        eqn.replace(outvars=[*eqn.outvars, *(results[v] for v in more)], params={**eqn.params, "jaxpr": first}),
        eqn.replace(
            invars=only(operands, read),
            outvars=only(eqn.outvars, missing),
            params={**eqn.params, "jaxpr": second},
        ),
        residuals,
    )
