"""phlox.example_libraries.optimizers against jax's: states, updates, schedules, over many steps."""

import jax
import jax.example_libraries.optimizers
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("optimizers")
PARAMS = {"w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), "b": [np.float32(0.5), np.zeros(3, np.float32)]}
TARGET = {"w": np.ones((2, 3), np.float32), "b": [np.float32(-1), np.arange(3, dtype=np.float32)]}

OPTIMIZERS = {
    "sgd": lambda o: o.sgd(0.1),
    "sgd, schedule": lambda o: o.sgd(o.exponential_decay(0.1, 5, 0.9)),
    "sgd, function": lambda o: o.sgd(lambda i: 0.1 / (i + 1)),
    "momentum": lambda o: o.momentum(0.1, 0.9),
    "nesterov": lambda o: o.nesterov(step_size=0.05, mass=0.8),
    "adam": lambda o: o.adam(0.01),
    "adamax": lambda o: o.adamax(0.01),
    "adamax, options": lambda o: o.adamax(o.constant(0.1), b1=0.8, b2=0.9, eps=1e-6),
    "adagrad": lambda o: o.adagrad(0.1),
    "adagrad, options": lambda o: o.adagrad(o.exponential_decay(0.1, 5, 0.9), momentum=0.5),
    "rmsprop": lambda o: o.rmsprop(0.01),
    "rmsprop, options": lambda o: o.rmsprop(0.01, gamma=0.5, eps=1e-3),
    "rmsprop_momentum": lambda o: o.rmsprop_momentum(0.01),
    "rmsprop_momentum, options": lambda o: o.rmsprop_momentum(0.01, 0.5, 1e-3, 0.5),
    "adam, options": lambda o: o.adam(o.polynomial_decay(0.1, 10, 0.01), b1=0.8, b2=0.9, eps=1e-6),
}
SCHEDULES = {
    "constant": lambda o: o.constant(0.3),
    "exponential_decay": lambda o: o.exponential_decay(0.1, 10, 0.5),
    "inverse_time_decay": lambda o: o.inverse_time_decay(0.1, 10, 0.5),
    "inverse_time_decay, staircase": lambda o: o.inverse_time_decay(0.1, 10, 0.5, staircase=True),
    "polynomial_decay": lambda o: o.polynomial_decay(0.1, 10, 0.01),
    "polynomial_decay, power": lambda o: o.polynomial_decay(0.1, 10, 0.01, power=2.0),
    "piecewise_constant": lambda o: o.piecewise_constant([3, 7], [0.1, 0.2, 0.3]),
    "make_schedule of a number": lambda o: o.make_schedule(0.2),
    "make_schedule of a schedule": lambda o: o.make_schedule(lambda i: i * 2),
}


def both(case, *args):
    agree(outcome(case, phlox, args), outcome(case, jax, args), NEAR, "")


def library(m):
    return m.example_libraries.optimizers


def loss(m, params):
    return sum(((p - t) ** 2).sum() for p, t in zip(m.tree.leaves(params), m.tree.leaves(TARGET), strict=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps(name):
    def run(m):
        init, update, get_params = OPTIMIZERS[name](library(m))

        @m.jit
        def step(i, state):
            return update(i, m.grad(lambda p: loss(m, p))(get_params(state)), state)

        state = init(PARAMS)
        for i in range(20):
            state = step(i, state)
        return get_params(state), loss(m, get_params(state))

    both(run)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.5}])
def test_sm3(options):
    """Beside jax, which cannot compile its steps: its state has shapes among the arrays."""

    def run(m, compiled):
        init, update, get_params = library(m).sm3(0.1, **options)

        def step(i, state):
            return update(i, m.grad(lambda p: loss(m, p))(get_params(state)), state)

        step = m.jit(step) if compiled else step
        state = init(m.tree.map(m.numpy.asarray, PARAMS))
        for i in range(20):
            state = step(i, state)
        return get_params(state)

    for compiled in (False, True):
        agree(outcome(run, phlox, (compiled,)), outcome(run, jax, (False,)), NEAR, "")


@pytest.mark.parametrize("name", ["sgd", "adam", "momentum"])
def test_states_are_unpacked(name):
    def run(m):
        o = library(m)
        init, update, get_params = OPTIMIZERS[name](o)
        state = update(0, PARAMS, init(PARAMS))
        marked = o.unpack_optimizer_state(state)
        points = m.tree.leaves(marked)
        assert all(isinstance(point, o.JoinPoint) and list(point) == [point.subtree] for point in points)
        again = o.pack_optimizer_state(marked)
        assert m.tree.structure(again) == m.tree.structure(state)
        return [point.subtree for point in points], get_params(again)

    both(run)


def test_states_that_are_not_marked_are_refused():
    with pytest.raises(TypeError, match="a leaf is Array"):
        library(phlox).pack_optimizer_state({"w": phlox.numpy.ones(2)})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_are_trees(name):
    def run(m):
        made = OPTIMIZERS[name](library(m))
        state = made.update_fn(3, PARAMS, made.init_fn(PARAMS))
        leaves, structure = m.tree.flatten(state)
        doubled = m.tree.map(lambda x: x * 2, state)
        return leaves, made.params_fn(doubled), made.params_fn(m.tree.unflatten(structure, leaves))

    both(run)


def test_wrong_structures_are_refused():
    both(lambda m: library(m).sgd(0.1).update_fn(0, {"w": 1.0}, library(m).sgd(0.1).init_fn(PARAMS)))
    both(lambda m: library(m).make_schedule(np.ones(2)))
    both(lambda m: library(m).piecewise_constant([3, 7], [0.1, 0.2]))
    both(lambda m: library(m).piecewise_constant([[3]], [0.1, 0.2]))


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name):
    for i in (0, 1, 3, 7, 10, 25):
        both(lambda m, i=i: m.numpy.asarray(SCHEDULES[name](library(m))(i)))
    both(lambda m: m.jit(lambda i: SCHEDULES[name](library(m))(i))(7))


@pytest.mark.parametrize("x64", [False, True])
def test_a_norm_has_the_dtype_of_the_arrays(x64):
    with jax.enable_x64(x64), phlox.enable_x64(x64):
        both(lambda m: library(m).l2_norm([np.ones(2, np.float32)]))


def test_norms_and_clipping():
    both(lambda m: library(m).l2_norm(PARAMS))
    for limit in (0.5, 100.0):
        both(lambda m, limit=limit: library(m).clip_grads(PARAMS, limit))
    both(lambda m: m.jit(lambda p: library(m).clip_grads(p, 1.0))(PARAMS))


def test_an_optimizer_of_ones_own():
    def run(m):
        @library(m).optimizer
        def signs(rate):
            return (lambda x0: (x0, 0)), (lambda i, g, s: (s[0] - rate * m.numpy.sign(g), s[1] + 1)), (lambda s: s[0])

        made = signs(0.1)
        state = made.update_fn(0, PARAMS, made.init_fn(PARAMS))
        return made.params_fn(state)

    both(run)
