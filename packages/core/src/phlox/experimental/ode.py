"""``phlox.experimental.ode``: an integrator of ordinary differential equations, as ``jax.experimental.ode``.

The method is that of Dormand and Prince (1980): a step of fifth order, whose difference from one of fourth order is the
estimate of its error. The gradient is computed by integrating the adjoint equation backwards in time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import lax, numpy as jnp
from .._api.batching.vmap import vmap
from .._api.configuration import default_matmul_precision
from .._api.derivatives.closures import closure_convert
from .._api.derivatives.custom import custom_vjp
from .._api.derivatives.differentiate import vjp
from .._api.jit.jit import jit
from .._base import pytree
from .._base.errors import ArgumentError, DtypeError
from .._base.public_names import publish
from .._ir.avals import typeof_value
from .._ir.dtypes import is_inexact
from .._operands.checks import check_one
from .._trace.trace import typeof
from ..flatten_util import ravel_pytree
from ..typing import Array

__all__ = ["odeint"]

# The coefficients of the method: nodes, stages, the step of fifth order, its error, and its value at half a step.
_NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0, 0.0])
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
_STEP = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = _STEP - np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
_MIDDLE = np.array(
    [
        6025192743 / 30085553152,
        0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    ]
)
_SAFETY, _LARGEST, _SMALLEST = 0.9, 10.0, 0.2


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Array,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solves ``dy/dt = func(y, t, *args)`` from ``y(t[0]) = y0``, with steps chosen by the estimated error.

    Gradients are those of the adjoint equation, so they need no memory for the steps.

    Args:
      func: the derivative, a tree like `y0`.
      y0: a tree of arrays, the value at ``t[0]``.
      t: floats in ascending order.
      *args: arrays, or trees of them.
      rtol, atol: the relative and the absolute error allowed in a step.
      mxstep: the greatest number of steps between two of the times.
      hmax: the greatest length of a step.

    Returns:
      A tree like `y0` of the solution at all times `t`, along a new first axis.

    Raises:
      ArgumentError: a leaf of `args` is no array.
      DtypeError: `t` is no array of floats, or a leaf of `y0` has integers.

    >>> y = odeint(lambda y, t: -y, jnp.float32(1), jnp.array([0.0, 1.0]), rtol=1e-6, atol=1e-6)
    >>> bool(abs(y[1] - jnp.exp(-1)) < 1e-5)
    True
    """
    for leaf in pytree.tree_leaves(args):
        if typeof_value(leaf) is None:
            raise ArgumentError(f"The contents of odeint *args must be arrays or scalars, but got {leaf!r}")
    t = jnp.asarray(check_one("odeint", t))
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise DtypeError(f"t must be an array of floats, but got {t}", instead="t.astype(float)")
    for aval in map(typeof, pytree.tree_leaves(y0)):
        if not is_inexact(aval.dtype):
            raise DtypeError(f"odeint: y0 has an array {aval.short}", instead="floats, as in 1.0", aval=aval)
    # Arrays that `func` closes over become arguments: `custom_vjp` returns cotangents of arguments only.
    converted, consts = closure_convert(func, y0, t[0], *args)
    return _solve_tree(converted, rtol, atol, mxstep, hmax, y0, t, *args, *consts)


@partial(jit, static_argnums=(0, 1, 2, 3, 4))
def _solve_tree(func: Any, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, t: Any, *args: Any) -> Any:
    flat, unravel = ravel_pytree(y0)

    def slope(y: Any, t: Any, *args: Any) -> Any:
        return ravel_pytree(func(unravel(y), t, *args))[0]

    # Accelerators multiply in a reduced precision by default, whose errors exceed the tolerances.
    with default_matmul_precision("highest"):
        return vmap(unravel)(_solve(slope, rtol, atol, mxstep, hmax, flat, t, *args))


@partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _solve(func: Any, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, ts: Any, *args: Any) -> Any:
    def slope(y: Any, t: Any) -> Any:
        return func(y, t, *args)

    def to_time(carry: Any, target: Any) -> tuple[Any, Any]:
        def unfinished(state: Any) -> Any:
            # A step of length 0 would repeat for ever.
            i, _, _, t, dt, _, _ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def step(state: Any) -> Any:
            i, y, f, t, dt, last, polynomial = state
            new_y, new_f, error, k = _step(slope, y, f, t, dt)
            ratio = _error_ratio(error, rtol, atol, y, new_y)
            fitted = _interpolation(y, new_y, k, dt)
            after = jnp.clip(_next_length(dt, ratio), 0.0, hmax)
            # A rejected step keeps the state, and only its length changes.
            accepted = [i + 1, new_y, new_f, t + dt, after, t, fitted]
            rejected = [i + 1, y, f, t, after, last, polynomial]
            return [jnp.where(ratio <= 1.0, a, b) for a, b in zip(accepted, rejected, strict=True)]

        _, *carry = lax.while_loop(unfinished, step, [0, *carry])
        _, _, t, _, last, polynomial = carry
        # The last step may reach beyond the target, where its polynomial is read. The next target goes on from its end.
        place = (target - last) / (t - last)
        return carry, jnp.polyval(polynomial, place.astype(polynomial.dtype))

    f0 = slope(y0, ts[0])
    dt = jnp.clip(_first_length(slope, ts[0], y0, rtol, atol, f0), 0.0, hmax)
    _, ys = lax.scan(to_time, [y0, f0, ts[0], dt, ts[0], jnp.array([y0] * 5)], ts[1:])
    return jnp.concatenate((y0[None], ys))


def _forward(func: Any, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, ts: Any, *args: Any) -> Any:
    ys = _solve(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func: Any, rtol: float, atol: float, mxstep: float, hmax: float, residuals: Any, g: Any) -> Any:
    ys, ts, args = residuals

    def adjoint(state: Any, t: Any, *args: Any) -> Any:
        # The time runs backwards, from -t1 to -t0.
        y, y_bar, *_ = state
        slope, pull = vjp(func, y, -t, *args)
        return (-slope, *pull(y_bar))

    y_bar = g[-1]
    t0_bar: Any = jnp.zeros((), ts.dtype)

    def from_time(carry: Any, i: Any) -> tuple[Any, Any]:
        y_bar, t0_bar, args_bar = carry
        # Moving the end time by dt moves the solution there by f dt.
        t_bar = jnp.real(jnp.dot(func(ys[i], ts[i], *args), g[i])).astype(ts.dtype)
        t0_bar = t0_bar - t_bar
        times = jnp.array([-ts[i], -ts[i - 1]])
        start = (ys[i], y_bar, t0_bar, args_bar)
        _, y_bar, t0_bar, args_bar = _solve_tree(adjoint, rtol, atol, mxstep, hmax, start, times, *args)
        y_bar, t0_bar, args_bar = pytree.tree_map(lambda x: x[1], (y_bar, t0_bar, args_bar))
        # The cotangent of the output at this time joins where the integration passes it.
        return (y_bar + g[i - 1], t0_bar, args_bar), t_bar

    zeros = pytree.tree_map(jnp.zeros_like, args)
    (y_bar, t0_bar, args_bar), ts_bar = lax.scan(from_time, (y_bar, t0_bar, zeros), jnp.arange(len(ts) - 1, 0, -1))
    return (y_bar, jnp.concatenate([jnp.stack([t0_bar]), ts_bar[::-1]]), *args_bar)


_solve.defvjp(_forward, _backward)


def _step(slope: Any, y: Any, f: Any, t: Any, dt: Any) -> tuple[Any, Any, Any, Any]:
    """A step of length `dt`: the new value, the slope there, the estimated error, and the slopes of the stages."""

    def stage(i: Any, k: Any) -> Any:
        ft = slope(y + dt.astype(y.dtype) * jnp.dot(stages[i - 1], k), t + dt * nodes[i - 1])
        return k.at[i, :].set(ft)

    nodes, stages = jnp.array(_NODES, dtype=dt.dtype), jnp.array(_STAGES, dtype=f.dtype)
    k = lax.fori_loop(1, 7, stage, jnp.zeros((7, f.shape[0]), f.dtype).at[0, :].set(f))
    length = dt.astype(y.dtype)
    new = length * jnp.dot(jnp.array(_STEP, dtype=f.dtype), k) + y
    return new, k[-1], length * jnp.dot(jnp.array(_ERROR, dtype=f.dtype), k), k


def _interpolation(y0: Any, y1: Any, k: Any, dt: Any) -> Any:
    """Coefficients of the polynomial of fourth order through a step's ends, its middle and its slopes."""
    length = dt.astype(y0.dtype)
    # The sum of these coefficients is 1. Their halves are for half a step.
    middle = y0 + length * jnp.dot(jnp.array(_MIDDLE / 2, dtype=k.dtype), k)
    # The method is "first same as last": the last stage is the slope at the end, and the first of the next step.
    f0, f1 = length * k[0], length * k[-1]
    a = -2 * f0 + 2 * f1 - 8 * y0 - 8 * y1 + 16 * middle
    b = 5 * f0 - 3 * f1 + 18 * y0 + 14 * y1 - 32 * middle
    c = -4 * f0 + f1 - 11 * y0 - 5 * y1 + 16 * middle
    return jnp.asarray([a, b, c, f0, y0])


def _first_length(slope: Any, t: Any, y: Any, rtol: float, atol: float, f: Any) -> Any:
    """The length of the first step: Hairer, Nørsett and Wanner, Solving ODEs I, II.4."""
    real = y.real.dtype
    scale = atol + jnp.abs(y) * rtol
    d0, d1 = jnp.linalg.norm(y / scale.astype(real)), jnp.linalg.norm(f / scale.astype(real))
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
    d2 = jnp.linalg.norm((slope(y + h0.astype(y.dtype) * f, t + h0) - f) / scale.astype(real)) / h0
    small = jnp.maximum(1e-6, h0 * 1e-3)
    h1 = jnp.where((d1 <= 1e-15) & (d2 <= 1e-15), small, (0.01 / jnp.maximum(d1, d2)) ** (1.0 / 5.0))
    return jnp.minimum(100.0 * h0, h1).astype(t.dtype)


def _error_ratio(error: Any, rtol: float, atol: float, y0: Any, y1: Any) -> Any:
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    ratio = error / allowed.astype(error.dtype)
    return jnp.sqrt(jnp.mean(jnp.real(ratio * jnp.conj(ratio))))


def _next_length(last: Any, ratio: Any) -> Any:
    shrink = jnp.where(ratio < 1, 1.0, _SMALLEST)
    # The error of a step of length h grows as h**5. A step that was accepted is never followed by a shorter one.
    factor = jnp.minimum(_LARGEST, jnp.maximum(ratio ** (-1.0 / 5.0) * _SAFETY, shrink))
    return jnp.where(ratio == 0, last * _LARGEST, last * factor.astype(last.dtype))


publish(__name__)
