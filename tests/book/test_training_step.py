"""Training as the older JAX programs write it: opt_init, opt_update, get_params, and a compiled update."""

import itertools

import pytest

import phlox.numpy as jnp
from phlox import grad, jit, random
from phlox.example_libraries import optimizers


def predict(params, inputs):
    for W, b in params[:-1]:
        inputs = jnp.tanh(inputs @ W + b)
    W, b = params[-1]
    return inputs @ W + b


def loss(params, batch):
    inputs, targets = batch
    return jnp.mean((predict(params, inputs) - targets) ** 2)


def layers(sizes, key):
    params = []
    for m, n in itertools.pairwise(sizes):
        key, w_key, b_key = random.split(key, 3)
        params.append((0.3 * random.normal(w_key, (m, n)), 0.1 * random.normal(b_key, (n,))))
    return params


@pytest.mark.parametrize(
    ("optimizer", "reached"),  # the last loss, as JAX's optimizers of these names reach it
    [
        (optimizers.sgd(0.1), 0.05827986),
        (optimizers.momentum(0.05, mass=0.9), 0.00747532),
        (optimizers.adam(0.01), 0.00514675),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_a_sine_is_learnt(optimizer, reached):
    opt_init, opt_update, get_params = optimizer

    @jit
    def update(i, opt_state, batch):
        params = get_params(opt_state)
        return opt_update(i, grad(loss)(params, batch), opt_state)

    x = jnp.linspace(-1.0, 1.0, 64)[:, None]
    batch = (x, jnp.sin(3 * x))
    opt_state = opt_init(layers([1, 16, 1], random.PRNGKey(0)))
    assert loss(get_params(opt_state), batch) == pytest.approx(0.43282813, rel=1e-5)
    for i in range(300):
        opt_state = update(i, opt_state, batch)
    assert loss(get_params(opt_state), batch) == pytest.approx(reached, rel=1e-3)


def test_gradient_descent_by_hand():
    @jit
    def step(x):
        return x - 0.1 * grad(lambda x: x**2)(x)

    x = 1.0
    for _ in range(10):
        x = step(x)
    assert x == pytest.approx(0.8**10, rel=1e-5)
