"""Optimizers as triples of functions, as in ``jax.example_libraries.optimizers``.

An optimizer is ``(init_fun, update_fun, get_params)``:

    opt_init, opt_update, get_params = sgd(0.1)
    opt_state = opt_init(params)
    opt_state = opt_update(i, grads, opt_state)      # for step number i
    params = get_params(opt_state)

New programs should use `phlox_optim`, which runs optax.
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
    """The state of an optimizer: for each leaf of the parameters the flattened state, and the treedefs."""

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
    """Decorator that makes an optimizer for trees of arrays from one for single arrays.

    Args:
      opt_maker: function that returns (init, update, get_params) for one array, whose state may be any tree:
        ``init(array) -> state``, ``update(i, gradient, state) -> state``, ``get_params(state) -> array``.

    Returns:
      A function of the arguments of `opt_maker` that returns an `Optimizer`.

    Raises:
      TreeError: in an update, when gradients have another structure than the parameters, or `update` changes the
        structure of its state.

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
      step_size: a number, or a schedule, which is a function of the step number.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = sgd(0.5)
    >>> get_params(update(0, 1.0, init(2.0)))
    1.5
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, x: Any) -> Any:
        return x - schedule(i) * g

    return lambda x0: x0, update, lambda x: x


@optimizer
def momentum(step_size: Any, mass: Any) -> tuple[Any, Any, Any]:
    """Gradient descent with momentum: v = mass v + g, x - step_size(i) v.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      mass: the factor of the velocity at each step, from 0 to 1.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = momentum(0.5, mass=0.9)
    >>> get_params(update(0, 1.0, init(2.0)))
    Array(1.5, dtype=float32, weak_type=True)
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
    """Gradient descent with Nesterov momentum: v = mass v + g, x - step_size(i) (mass v + g).

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      mass: the factor of the velocity at each step, from 0 to 1.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = nesterov(0.5, mass=0.5)
    >>> get_params(update(0, 1.0, init(2.0)))
    Array(1.25, dtype=float32, weak_type=True)
    """
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
    """Adam: steps scaled by running means of gradients and of their squares. Source: Kingma and Ba, 2015.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      b1, b2: the decay rates of the running means of gradients and of squares.
      eps: added to the divisor, to keep the step finite.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = adam(0.5)
    >>> get_params(update(0, jnp.array([1.0, -2.0]), init(jnp.zeros(2)))).round(4)
    Array([-0.5,  0.5], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        # The means start at zero; the divisions correct that bias.
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * mean / (jnp.sqrt(square) + eps), m, v

    return init, update, lambda state: state[0]


# --- schedules ------------------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule for a step size.

    Args:
      scalar_or_schedule: a number, or a schedule, which is a function of the step number.

    Returns:
      `scalar_or_schedule` if it is a function; else the constant schedule of this number.

    Raises:
      ArgumentError: `scalar_or_schedule` is neither a number nor a function.

    >>> make_schedule(0.1)(7)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}")


def constant(step_size: Any) -> Schedule:
    """A constant schedule.

    Args:
      step_size: a number.

    Returns:
      A function of the step number that returns `step_size`.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Exponential decay: step_size times decay_rate to the power i / decay_steps.

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps in which the value is multiplied by `decay_rate`.
      decay_rate: the factor.

    Returns:
      A function of the step number i.

    >>> exponential_decay(1.0, 1, 0.5)(2)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Decay with the inverse of time: step_size / (1 + decay_rate i / decay_steps).

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps in which the divisor grows by `decay_rate`.
      decay_rate: the growth of the divisor.
      staircase: round i / decay_steps down.

    Returns:
      A function of the step number i.

    >>> inverse_time_decay(1.0, 1, 1.0)(1)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """Polynomial decay from `step_size` to `final_step_size`.

    The distance from the final value is proportional to a power of 1 - i / decay_steps, and 0 after `decay_steps`.

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps until the final value.
      final_step_size: the final value.
      power: the exponent; 1 is linear decay.

    Returns:
      A function of the step number i.

    >>> polynomial_decay(1.0, 2, 0.0)(1)
    Array(0.5, dtype=float32, weak_type=True)
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """A piecewise constant schedule: values[k] for steps after boundary k - 1 and up to boundary k.

    Args:
      boundaries: step numbers in ascending order.
      values: the values, one more than boundaries.

    Returns:
      A function of the step number.

    Raises:
      OptionError: `boundaries` is no list, or `values` has not one element more.

    >>> piecewise_constant([2], [1.0, 0.5])(3)
    Array(0.5, dtype=float32)
    """
    edges, levels = jnp.array(boundaries), jnp.array(values)
    if edges.ndim != 1 or levels.shape != (edges.shape[0] + 1,):
        raise OptionError("piecewise_constant needs a list of boundaries and one value more than those")
    return lambda i: levels[jnp.sum(i > edges)]


# --- gradients ------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of all leaves of a tree together.

    Args:
      tree: tree of arrays and numbers.

    Returns:
      An array without axes.

    >>> l2_norm({"a": jnp.array([3.0]), "b": 4.0})
    Array(5., dtype=float32)
    """
    leaves = pytree.tree_leaves(tree)
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in leaves))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scales gradients so that their `l2_norm` is at most `max_norm`.

    Args:
      grad_tree: tree of arrays.
      max_norm: the largest norm.

    Returns:
      A tree like `grad_tree`: unchanged if its norm is smaller than `max_norm`, else scaled by one factor.

    >>> clip_grads(jnp.array([3.0, 4.0]), 1.0)
    Array([0.6, 0.8], dtype=float32)
    """
    norm = l2_norm(grad_tree)
    return pytree.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def __dir__() -> list[str]:
    return __all__
