"""Running a Jaxpr: each equation is bound again, under whatever trace is current."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ir.jaxpr import Atom, Jaxpr, Literal, Var


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Evaluates `jaxpr` on `args`; the results are concrete when no trace is current."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(v: Atom) -> Any:
        return v.val if isinstance(v, Literal) else env[v]

    for eqn in jaxpr.eqns:
        out = eqn.primitive.bind(*[read(v) for v in eqn.invars], **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [read(v) for v in jaxpr.outvars]
