"""The method of Broyden, Fletcher, Goldfarb and Shanno: J. Nocedal and S. J. Wright, Numerical Optimization, 6.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._operands.checks import type_of
from ._iteration import Iteration, iterate
from ._line_search import Objective, Point, inner, line_search


def _updated(inverse: Any, s: Any, y: Any) -> Any:
    """The estimate of the inverse Hessian after a step `s` that changed the gradient by `y`."""
    rho = 1 / inner(s, y)
    image = jnp.dot(inverse, y, precision=lax.Precision.HIGHEST)
    mixed = jnp.outer(s, image)
    new = inverse - rho * (mixed + mixed.T) + (rho * rho * inner(y, image) + rho) * jnp.outer(s, s)
    # No update by a step that did not change the gradient: rho is infinite.
    return jnp.where(jnp.isfinite(rho), new, inverse)


def bfgs(
    f: Objective,
    x0: Any,
    maxiter: int | None = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> Iteration:
    """The iteration at its end; its `memory` is the estimate of the inverse Hessian.

    `status` is 0 where the gradient's norm is below `gtol`, 1 after `maxiter` iterations, 3 or 5 after a line search
    without a solution, in whose bracket or outside of it nothing is better.
    """
    size, dtype = type_of(x0).shape[0], type_of(x0).dtype
    maxiter = size * 200 if maxiter is None else maxiter

    def step(state: Iteration) -> Iteration:
        direction = -jnp.dot(state.memory, state.gradient, precision=lax.Precision.HIGHEST)
        slope = inner(state.gradient, direction)
        # The decrease of the last step is what is expected of this one, and a little more.
        first = 2.02 * (state.value - state.before) / slope
        first = jnp.where((first > 0) & (first <= 1), first, 1)
        start = Point(jnp.zeros((), dtype), state.value, slope, state.gradient)
        search = line_search(f, state.x, direction, start, first, line_search_maxiter)
        point = search.point
        moved = point.step * direction
        return Iteration(
            state.x + moved,
            point.value,
            point.gradient,
            _updated(state.memory, moved, point.gradient - state.gradient),
            state.value,
            jnp.where(search.status > 0, 2 + search.status, 0),
            state.steps + 1,
            state.evaluations + search.evaluations,
        )

    value, gradient = f(x0)
    # As in SciPy: with it the first trial step has a length of about 1.
    before = value + jnp.linalg.norm(gradient) / 2
    state = Iteration(x0, value, gradient, jnp.eye(size, dtype=dtype), before, jnp.asarray(0), 0, 1)
    return iterate(step, state, maxiter, norm, gtol)
