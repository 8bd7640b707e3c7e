"""The state and the loop of `bfgs` and `lbfgs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import lax, numpy as jnp


class Iteration(NamedTuple):
    """The state after a step: the point, the value and gradient there, the method's `memory`, and the value before."""

    x: Any
    value: Any
    gradient: Any
    memory: Any
    before: Any
    status: Any
    steps: Any
    evaluations: Any


def iterate(step: Callable[[Iteration], Iteration], start: Iteration, maxiter: Any, norm: Any, gtol: Any) -> Iteration:
    """Repeats `step` until the gradient's norm is below `gtol`, `status` is not 0, or `maxiter` steps are done.

    The result has the status 0 if the gradient is below `gtol`, else that of the last step, or 1 after `maxiter` steps.
    """

    def is_converged(state: Iteration) -> Any:
        return jnp.linalg.norm(state.gradient, ord=norm) < gtol

    def unfinished(state: Iteration) -> Any:
        return ~is_converged(state) & (state.status == 0) & (state.steps < maxiter)

    last = lax.while_loop(unfinished, step, start)
    return last._replace(status=jnp.where(is_converged(last), 0, jnp.where(last.status > 0, last.status, 1)))
