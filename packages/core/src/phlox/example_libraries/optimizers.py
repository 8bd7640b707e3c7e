"""Optimizers as triples of functions, as in ``jax.example_libraries.optimizers``.

An optimizer is ``(init_fun, update_fun, get_params)``:

    opt_init, opt_update, get_params = sgd(0.1)
    opt_state = opt_init(params)
    opt_state = opt_update(i, grads, opt_state)      # for step number i
    params = get_params(opt_state)

Programs that start today are better served by `phlox_optim`, which runs optax.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import numpy as jnp
from .._base import pytree
from .._base.errors import ArgumentError, OptionError
from .._base.pytree import PyTreeDef

__all__ = [
    "Optimizer",
    "OptimizerState",
    "adam",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "piecewise_constant",
    "polynomial_decay",
    "sgd",
]

Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """Parameters and what the optimizer keeps beside them, leaf by leaf."""

    packed_state: Any
    tree_def: PyTreeDef
    subtree_defs: tuple[PyTreeDef, ...]


pytree.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda aux, children: OptimizerState(next(iter(children)), *aux),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorator: an optimizer for single arrays becomes one for trees of them.

    `opt_maker` returns (init, update, get_params) for one array, where the state may be any tree.

    >>> opt_init, opt_update, get_params = sgd(0.5)
    >>> state = opt_update(0, {"w": jnp.ones(2)}, opt_init({"w": jnp.ones(2)}))
    >>> get_params(state)
    {'w': Array([0.5, 0.5], dtype=float32)}
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params: Any) -> OptimizerState:
            leaves, tree = pytree.flatten(params)
            states = [pytree.flatten(init(x)) for x in leaves]
            return OptimizerState(tuple(tuple(s) for s, _ in states), tree, tuple(t for _, t in states))

        def tree_update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = pytree.flatten(grads)
            pytree.check_same(state.tree_def, tree, "gradients must have the structure of the parameters")
            packed = []
            for grad, packed_one, subtree in zip(leaves, state.packed_state, state.subtree_defs, strict=True):
                new, new_tree = pytree.flatten(update(i, grad, subtree.unflatten(packed_one)))
                pytree.check_same(subtree, new_tree, "the optimizer changed the structure of its state")
                packed.append(tuple(new))
            return OptimizerState(tuple(packed), state.tree_def, state.subtree_defs)

        def tree_params(state: OptimizerState) -> Any:
            pairs = zip(state.packed_state, state.subtree_defs, strict=True)
            return state.tree_def.unflatten([get_params(subtree.unflatten(packed)) for packed, subtree in pairs])

        return Optimizer(tree_init, tree_update, tree_params)

    return make


# --- optimizers -----------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> tuple[Any, Any, Any]:
    """Stochastic gradient descent: x - step_size(i) g.

    Args:
      step_size: a number, or a schedule: a function of the number of the step.
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, x: Any) -> Any:
        return x - schedule(i) * g

    return lambda x0: x0, update, lambda x: x


@optimizer
def momentum(step_size: Any, mass: Any) -> tuple[Any, Any, Any]:
    """Gradient descent with momentum: v = mass v + g, x - step_size(i) v.

    Args:
      step_size: a number or a schedule.
      mass: how much of the velocity stays, from 0 to 1.
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * velocity, velocity

    return init, update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: Any) -> tuple[Any, Any, Any]:
    """Gradient descent with Nesterov's momentum: v = mass v + g, x - step_size(i) (mass v + g)."""
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * (mass * velocity + g), velocity

    return init, update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> tuple[Any, Any, Any]:
    """Adam: steps scaled by running means of gradients and of their squares (Kingma and Ba, 2015).

    Args:
      step_size: a number or a schedule.
      b1, b2: how much of the two means stays at each step.
      eps: keeps the division finite.
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        # The means start at zero; dividing takes that bias away.
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * mean / (jnp.sqrt(square) + eps), m, v

    return init, update, lambda state: state[0]


# --- schedules ------------------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is, or the constant schedule of a number.

    >>> make_schedule(0.1)(7)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}")


def constant(step_size: Any) -> Schedule:
    """The schedule that is always `step_size`.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size times decay_rate to the power i / decay_steps.

    >>> exponential_decay(1.0, 1, 0.5)(2)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate i / decay_steps); with `staircase` i / decay_steps is rounded down.

    >>> inverse_time_decay(1.0, 1, 1.0)(1)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From step_size down to final_step_size after decay_steps, along a power of the way that is left.

    >>> polynomial_decay(1.0, 2, 0.0)(1)
    Array(0.5, dtype=float32, weak_type=True)
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] between boundary k - 1 and boundary k.

    >>> piecewise_constant([2], [1.0, 0.5])(3)
    Array(0.5, dtype=float32)
    """
    edges, levels = jnp.array(boundaries), jnp.array(values)
    if edges.ndim != 1 or levels.shape != (edges.shape[0] + 1,):
        raise OptionError("piecewise_constant needs a list of boundaries and one value more than those")
    return lambda i: levels[jnp.sum(i > edges)]


# --- gradients ------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """The square root of the sum of squares of all leaves.

    >>> l2_norm({"a": jnp.array([3.0]), "b": 4.0})
    Array(5., dtype=float32)
    """
    leaves = pytree.tree_leaves(tree)
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in leaves))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down so that their `l2_norm` is at most `max_norm`.

    >>> clip_grads(jnp.array([3.0, 4.0]), 1.0)
    Array([0.6, 0.8], dtype=float32)
    """
    norm = l2_norm(grad_tree)
    return pytree.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def __dir__() -> list[str]:
    return __all__
