"""Evaluates a Jaxpr: binds each of its equations again, under the current trace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .._base.source import Replay, replays
from .._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, recorded_x64


@replays
def eval_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, run: Callable[[JaxprEqn, list[Any]], Any] | None = None
) -> list[Any]:
    """Evaluates `jaxpr` on `args` under the current trace. Without one the results are concrete arrays.

    Args:
      jaxpr: a `Jaxpr`, or a `ClosedJaxpr`, whose own constants are not read.
      consts: values of its `constvars`.
      *args: values of its `invars`, arrays and numbers.
      run: ``run(eqn, values)`` returns the results of an equation. None: the primitive of the equation is bound.

    Returns:
      A list of arrays, one for each of its `outvars`.

    >>> closed = phlox.make_jaxpr(lambda x: x + 1)(1.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 2.0)
    [Array(3., dtype=float32, weak_type=True)]
    """
    jaxpr = jaxpr.jaxpr
    # One zip: JAX's rules and libraries hand the values of leading inputs to `consts`.
    env: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(v: Atom) -> Any:
        return v.val if isinstance(v, Literal) else env[v]

    # One `nullcontext` serves all equations, as it has no state.
    has_64_bit, none = jaxpr.has_64_bit, nullcontext()
    with Replay() as replay:
        for eqn in jaxpr.eqns:
            values = [read(v) for v in eqn.invars]
            replay.enter(eqn.source_info)
            with recorded_x64(eqn) if has_64_bit else none:
                out = eqn.primitive.bind(*values, **eqn.params) if run is None else run(eqn, values)
            if eqn.primitive.multiple_results:
                env.update(zip(eqn.outvars, out, strict=True))
            else:
                env[eqn.outvars[0]] = out
    return [read(v) for v in jaxpr.outvars]


def as_function(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of arrays that `closed` records."""
    return functools.partial(eval_jaxpr, closed.jaxpr, closed.consts)
