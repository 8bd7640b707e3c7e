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
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from phlox import numpy as jnp
from phlox.errors import ArgumentError
from phlox.extend import publish
from phlox.tree_util import PyTreeDef, register_pytree_node, tree_flatten, tree_leaves, tree_map

from .._core import check_same
from ._schedules import (
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]


class OptimizerState(NamedTuple):
    """The state of an optimizer: for each leaf of the parameters the flattened state, and the treedefs."""

    packed_state: Any
    tree_def: PyTreeDef
    subtree_defs: tuple[PyTreeDef, ...]


register_pytree_node(
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
            leaves, tree = tree_flatten(params)
            states = [tree_flatten(init(x)) for x in leaves]
            return OptimizerState(tuple(tuple(s) for s, _ in states), tree, tuple(t for _, t in states))

        def tree_update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            check_same(state.tree_def, tree, "gradients must have the structure of the parameters")
            packed = []
            for grad, packed_one, subtree in zip(leaves, state.packed_state, state.subtree_defs, strict=True):
                new, new_tree = tree_flatten(update(i, grad, subtree.unflatten(packed_one)))
                check_same(subtree, new_tree, "the optimizer changed the structure of its state")
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


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> tuple[Any, Any, Any]:
    """Adamax: as `adam`, with a decaying maximum of gradients in place of the root of their mean square. Source: Kingma
    and Ba, 2015, section 7.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      b1, b2: the decay rates of the running mean of gradients and of the maximum.
      eps: added to the divisor, to keep the step finite.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = adamax(0.5)
    >>> get_params(update(0, jnp.array([1.0, -2.0]), init(jnp.zeros(2)))).round(4)
    Array([-0.5,  0.5], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        step = schedule(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - step * m / (largest + eps), m, largest

    return init, update, lambda state: state[0]


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> tuple[Any, Any, Any]:
    """Adagrad: steps divided by the root of the sum of all squared gradients. Source: Duchi, Hazan and Singer, 2011.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      momentum: the decay rate of the running mean of the scaled gradients.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = adagrad(0.5, momentum=0.0)
    >>> get_params(update(0, jnp.array([1.0, -2.0]), init(jnp.zeros(2))))
    Array([-0.5,  0.5], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, total, m = state
        total = total + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(total)) + momentum * m
        return x - schedule(i) * m, total, m

    return init, update, lambda state: state[0]


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), and 0 where x is 0: no gradient has come yet."""
    return jnp.where(x > 0, 1.0 / jnp.sqrt(x), 0.0)


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> tuple[Any, Any, Any]:
    """RMSProp: steps divided by the root of a running mean of squared gradients. Source: Tieleman and Hinton, 2012.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      gamma: the decay rate of the running mean.
      eps: added to the mean, to keep the step finite.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = rmsprop(0.5, gamma=0.0)
    >>> get_params(update(0, jnp.array([1.0, -2.0]), init(jnp.zeros(2))))
    Array([-0.5,  0.5], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - schedule(i) * g / jnp.sqrt(mean + eps), mean

    return init, update, lambda state: state[0]


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> tuple[Any, Any, Any]:
    """As `rmsprop`, with a velocity that sums up the steps.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      gamma: the decay rate of the running mean of squared gradients.
      eps: added to the mean, to keep the step finite.
      momentum: the factor of the velocity at each step, from 0 to 1.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = rmsprop_momentum(0.5, gamma=0.0)
    >>> get_params(update(0, jnp.array([1.0, -2.0]), init(jnp.zeros(2))))
    Array([-0.5,  0.5], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, velocity = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + schedule(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return init, update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> tuple[Any, Any, Any]:
    """SM3: as `adagrad`, with sums for each index of each axis only, which takes little memory. Source: Anil, Gupta,
    Koren and Singer, "Memory-Efficient Adaptive Optimization", 2019.

    Args:
      step_size: a number, or a schedule, which is a function of the step number.
      momentum: the decay rate of the running mean of the scaled gradients.

    Returns:
      An `Optimizer`.

    Raises:
      ArgumentError: `step_size` is neither a number nor a function.

    >>> init, update, get_params = sm3(0.5, momentum=0.0)
    >>> get_params(update(0, jnp.array([[1.0, -2.0]]), init(jnp.zeros((1, 2)))))
    Array([[-0.5,  0.5]], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def init(x0: Any) -> Any:
        x = jnp.asarray(x0)
        # One vector for each axis; a number has itself.
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape] or [jnp.zeros_like(x)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, sums = state
        axes = range(jnp.ndim(x))
        along = [jnp.expand_dims(s, [a for a in axes if a != axis]) for axis, s in enumerate(sums)] if axes else sums
        total = functools.reduce(jnp.minimum, along) + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(total)) + momentum * m
        sums = [total.max([a for a in axes if a != axis]) for axis in axes] or [total]
        return x - schedule(i) * m, m, sums

    return init, update, lambda state: state[0]


# --- states as trees ------------------------------------------------------------------------------------


class JoinPoint:
    """A leaf that holds a tree: where the state of one array begins in a tree of `unpack_optimizer_state`."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state of an optimizer as a tree like the parameters, to be written to a file.

    Args:
      opt_state: a state.

    Returns:
      A tree like the parameters, whose leaves are `JoinPoint`; their attribute `subtree` is the state of one array.

    >>> init, update, get_params = momentum(0.1, mass=0.9)
    >>> unpack_optimizer_state(init({"w": jnp.ones(2)}))["w"].subtree
    (Array([1., 1.], dtype=float32), Array([0., 0.], dtype=float32))
    """
    pairs = zip(opt_state.packed_state, opt_state.subtree_defs, strict=True)
    return opt_state.tree_def.unflatten([JoinPoint(subtree.unflatten(packed)) for packed, subtree in pairs])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`.

    Args:
      marked_pytree: a tree whose leaves are `JoinPoint`.

    Returns:
      The state of an optimizer.

    Raises:
      ArgumentError: a leaf is no `JoinPoint`.

    >>> init, update, get_params = momentum(0.1, mass=0.9)
    >>> state = init({"w": jnp.ones(2)})
    >>> get_params(pack_optimizer_state(unpack_optimizer_state(state)))
    {'w': Array([1., 1.], dtype=float32)}
    """
    points, tree = tree_flatten(marked_pytree)
    for point in points:
        if not isinstance(point, JoinPoint):
            raise ArgumentError(
                f"pack_optimizer_state: a leaf is {type(point).__name__}",
                instead="a tree of unpack_optimizer_state",
                argument="marked_pytree",
                value=point,
            )
    states = [tree_flatten(point.subtree) for point in points]
    return OptimizerState(tuple(tuple(s) for s, _ in states), tree, tuple(t for _, t in states))


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
    leaves = tree_leaves(tree)
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
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


publish(__name__)
