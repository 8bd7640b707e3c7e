"""BFGS with limited memory: J. Nocedal and S. J. Wright, Numerical Optimization, 7.2.

For complex vectors the products are real parts, and gradients are conjugates of steepest ascents: L. Sorber et al.,
Unconstrained optimization of real functions in complex variables, SIAM J. Optim. 22 (2012).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import lax, numpy as jnp
from ..._ir import dtypes
from ..._operands.checks import type_of
from ._iteration import Iteration, iterate
from ._line_search import Objective, Point, inner, line_search


class History(NamedTuple):
    """The last steps, how much each changed the gradient, and ``1 / inner(step, change)``, which is 0 for no step."""

    steps: Any
    changes: Any
    weights: Any


def _remember(history: History, step: Any, change: Any) -> History:
    weight = 1 / inner(change, step)
    # A step that did not change the gradient, or is no step yet, has the weight 0 and drops out of both loops.
    weight = jnp.where(jnp.isfinite(weight), weight, 0)
    return History(
        *(jnp.roll(old, -1, 0).at[-1].set(new) for old, new in zip(history, (step, change, weight), strict=True))
    )


def _times_inverse(history: History, vector: Any) -> Any:
    """The product of the estimated inverse Hessian with a vector, by two loops over the history."""

    def back(vector: Any, entry: History) -> tuple[Any, Any]:
        part = entry.weights * inner(jnp.conj(entry.steps), vector)
        return vector - part * jnp.conj(entry.changes), part

    vector, parts = lax.scan(back, vector, history, reverse=True)
    step, change, weight = (entry[-1] for entry in history)
    # The initial inverse Hessian is a multiple of the identity that fits the last step (Nocedal and Wright, 7.20).
    scale = inner(change, step) / inner(jnp.conj(change), change)
    vector = jnp.where(weight == 0, 1, jnp.where(jnp.isfinite(scale), scale, 1)) * vector

    def forth(vector: Any, entries: tuple[History, Any]) -> tuple[Any, None]:
        entry, part = entries
        return vector + (part - entry.weights * inner(entry.changes, vector)) * entry.steps, None

    return lax.scan(forth, vector, (history, parts))[0]


def lbfgs(
    f: Objective,
    x0: Any,
    maxiter: float | None = None,
    norm: Any = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-05,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> Iteration:
    """The iteration at its end.

    `status` is 0 where the gradient's norm is below `gtol`; 1, 2, 3 after `maxiter` iterations or `maxfun` or `maxgrad`
    evaluations; 4 where a step gained less than `ftol`; 5 after a line search without a solution.
    """
    size, dtype = type_of(x0).shape[0], type_of(x0).dtype
    real = dtypes.real_part(dtype)
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = size * 200
    maxiter, maxfun, maxgrad = (np.inf if n is None else n for n in (maxiter, maxfun, maxgrad))

    def step(state: Iteration) -> Iteration:
        # For complex x the direction of descent is the conjugate of JAX's gradient.
        direction = _times_inverse(state.memory, -jnp.conj(state.gradient))
        start = Point(jnp.zeros((), real), state.value, inner(state.gradient, direction), state.gradient)
        search = line_search(f, state.x, direction, start, 1, maxls)
        point = search.point
        moved = point.step * direction
        steps, evaluations = state.steps + 1, state.evaluations + search.evaluations
        # The first reason that holds is the status. The order is JAX's.
        reasons = [
            (search.status > 0, 5),
            (steps >= maxiter, 1),
            (evaluations >= maxfun, 2),
            (evaluations >= maxgrad, 3),
            (state.value - point.value < ftol, 4),
        ]
        status = jnp.select([reason for reason, _ in reasons], [jnp.asarray(code) for _, code in reasons], 0)
        return Iteration(
            state.x + moved,
            point.value,
            point.gradient,
            _remember(state.memory, moved, point.gradient - state.gradient),
            state.value,
            status,
            steps,
            evaluations,
        )

    value, gradient = f(x0)
    history = History(jnp.zeros((maxcor, size), dtype), jnp.zeros((maxcor, size), dtype), jnp.zeros(maxcor, real))
    state = Iteration(x0, value, gradient, history, value, jnp.asarray(0), 0, 1)
    return iterate(step, state, maxiter, norm, gtol)
