"""A program in two, by a policy: what computes the results and keeps some values, and what computes them again.

Primitives that hold programs, as `jit`, `cond` and `scan`, state how in the rule `divide`, so that a policy is asked of
the operations inside of calls, branches and loop bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from ..._base.errors import ArgumentError
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, Var, memoized, only


class _Answer:
    """What a policy may answer beside True and False."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


Recompute = _Answer("Recompute")
Saveable = _Answer("Saveable")


class Offloadable(NamedTuple):
    """The answer of a policy: keep the results, in another memory until they are needed.

    `src` and `dst` are kinds of memory, as "device" and "pinned_host". Programs here know of one kind, in which the
    results stay.
    """

    src: str
    dst: str


#: Asked of each operation, as ``policy(primitive, *avals, **params)``: whether its results are kept.
Policy = Callable[..., Any]


def keeps(policy: Policy, eqn: JaxprEqn) -> bool:
    """What a policy says of an equation. Raises `ArgumentError` when that is no answer."""
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(answer, bool):
        return answer
    if answer is Saveable or isinstance(answer, Offloadable):
        return True
    if answer is Recompute:
        return False
    raise ArgumentError(
        f"a policy of checkpoint answered {answer!r} when asked about {eqn.primitive}",
        instead="True or False; or Saveable, Recompute or Offloadable(src=..., dst=...) of phlox.ad_checkpoint",
    )


class Divided(NamedTuple):
    """`first` returns the results of a program, then what is `kept`; `again` takes the arguments, then what is kept,
    and returns the results. The variables are the same in both."""

    first: ClosedJaxpr
    again: ClosedJaxpr
    kept: list[Var]


def divide(closed: ClosedJaxpr, policy: Policy, excepted: Collection[JaxprEqn] = ()) -> Divided:
    """Divides a program; the results of `excepted` equations are not kept."""

    def make() -> Divided:
        first: list[JaxprEqn] = []
        again: list[JaxprEqn] = []
        kept: list[Var] = []
        for eqn in closed.eqns:
            if eqn in excepted:
                first.append(eqn)
                again.append(eqn)
            elif eqn.primitive.divide is not None:
                one, other, found = eqn.primitive.divide(eqn, policy)
                first.append(one)
                again.append(other)
                kept += found
            else:
                first.append(eqn)
                if keeps(policy, eqn):
                    kept += eqn.outvars
                else:
                    again.append(eqn)
        jaxpr = closed.jaxpr
        return Divided(
            closed.replace(jaxpr=jaxpr.replace(eqns=first, outvars=[*jaxpr.outvars, *kept])),
            closed.replace(jaxpr=jaxpr.replace(eqns=again, invars=[*jaxpr.invars, *kept])),
            kept,
        )

    if excepted:
        return make()
    result: Divided = memoized(closed.jaxpr, ("divided", policy), make)
    return result


def divided_call(
    eqn: JaxprEqn, divided: Divided, num_carry: int, outer: Callable[[Var], Any]
) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    """The rule `divide` of a primitive that runs the program `jaxpr`, divided already.

    Results of the program behind the first `num_carry` are results of the equation; `outer` gives the types that values
    have there.
    """
    outputs = divided.first.jaxpr.outvars
    there = {v: o for v, o in zip(outputs[num_carry:], eqn.outvars[num_carry:], strict=False) if type(v) is Var}
    more = [v for v in divided.kept if v not in there]
    there |= {v: Var(outer(v)) for v in more}
    kept = [there[v] for v in divided.kept]
    missing = [v not in kept for v in eqn.outvars]

    def half(closed: ClosedJaxpr, results: list[Any]) -> dict[str, Any]:
        return {**eqn.params, "jaxpr": closed.replace(jaxpr=closed.jaxpr.replace(outvars=results))}

    first = half(divided.first, [*outputs[: len(eqn.outvars)], *more])
    again = half(divided.again, only(divided.again.jaxpr.outvars, missing))
    return (
        eqn.replace(outvars=[*eqn.outvars, *(there[v] for v in more)], params=first),
        eqn.replace(invars=[*eqn.invars, *kept], outvars=only(eqn.outvars, missing), params=again),
        kept,
    )
