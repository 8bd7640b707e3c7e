"""Layers that jax.example_libraries.stax has too: the same keys give the same parameters and outputs."""

import numpy as np
import pytest

import judge

jax = judge.jax

from jax.example_libraries import stax

import phlox
import phlox_nn as nn

ACTIVATIONS = {
    "Elu": nn.elu,
    "Gelu": nn.gelu,
    "LeakyRelu": nn.leaky_relu,
    "LogSoftmax": nn.log_softmax,
    "Relu": nn.relu,
    "Selu": nn.selu,
    "Sigmoid": nn.sigmoid,
    "Softmax": nn.softmax,
    "Softplus": nn.softplus,
    "Tanh": nn.tanh,
}


def inputs(*shape):
    return judge.array(judge.rng("stax", shape), shape, "float32")


def agree(mine, theirs, input_shape, x, seed=0, rng=None):
    """Compares shapes, parameters, outputs eagerly and under jit, and gradients."""
    shape, params = mine.init(phlox.random.PRNGKey(seed), input_shape)
    their_init, their_apply = theirs
    their_shape, their_params = their_init(jax.random.PRNGKey(seed), input_shape)
    assert shape == their_shape
    judge.compare(params, their_params, tolerance=1e-6, what="parameters")
    keys = {} if rng is None else {"rng": phlox.random.PRNGKey(rng)}
    their_keys = {} if rng is None else {"rng": jax.random.PRNGKey(rng)}
    expected = their_apply(their_params, x, **their_keys)
    judge.compare(mine.apply(params, x, **keys), expected, what="eager")
    judge.compare(phlox.jit(mine.apply)(params, x, **keys), expected, what="jit")

    def loss(module, apply, keys):
        return lambda params: module.numpy.square(apply(params, x, **keys)).sum()

    grads = phlox.jit(phlox.grad(loss(phlox, mine.apply, keys)))(params)
    their_grads = jax.jit(jax.grad(loss(jax, their_apply, their_keys)))(their_params)
    judge.compare(grads, their_grads, tolerance=1e-4, what="gradients")


def test_dense():
    agree(nn.Dense(7), stax.Dense(7), (-1, 5), inputs(3, 5), seed=3)
    agree(nn.Dense(1), stax.Dense(1), (2, 3, 5), inputs(2, 3, 5))


def test_dense_with_initializers():
    mine = nn.Dense(4, nn.initializers.he_normal(), nn.initializers.uniform())
    theirs = stax.Dense(4, jax.nn.initializers.he_normal(), jax.nn.initializers.uniform())
    agree(mine, theirs, (-1, 5), inputs(3, 5))


def test_draws_are_bit_for_bit_where_the_function_is_exact():
    """Uniform draws and zeros need no approximated function, so not one bit may differ."""
    mine = nn.Dense(4, nn.initializers.glorot_uniform(), nn.initializers.zeros)
    theirs = stax.Dense(4, jax.nn.initializers.glorot_uniform(), jax.nn.initializers.zeros)
    _, params = mine.init(phlox.random.PRNGKey(5), (-1, 6))
    _, expected = theirs[0](jax.random.PRNGKey(5), (-1, 6))
    judge.compare(params, expected, exact=True)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations(name):
    agree(nn.serial(ACTIVATIONS[name]), stax.serial(getattr(stax, name)), (-1, 5), inputs(4, 5))


def test_flatten():
    agree(nn.Flatten, stax.Flatten, (4, 2, 3), inputs(4, 2, 3))


@pytest.mark.parametrize("mode", ["train", "test"])
def test_dropout(mode):
    agree(nn.Dropout(0.7, mode), stax.Dropout(0.7, mode), (-1, 5), inputs(40, 5), rng=11)


def test_a_network():
    mine = nn.serial(
        nn.Flatten, nn.Dense(16), nn.selu, nn.Dropout(0.8), nn.serial(nn.Dense(8), nn.gelu), nn.Dense(4), nn.log_softmax
    )
    theirs = stax.serial(
        stax.Flatten,
        stax.Dense(16),
        stax.Selu,
        stax.Dropout(0.8),
        stax.serial(stax.Dense(8), stax.Gelu),
        stax.Dense(4),
        stax.LogSoftmax,
    )
    agree(mine, theirs, (-1, 2, 3), inputs(6, 2, 3), seed=42, rng=7)


def test_new_style_keys_draw_the_same():
    _, old = nn.Dense(3).init(phlox.random.PRNGKey(1), (-1, 2))
    _, new = nn.Dense(3).init(phlox.random.key(1), (-1, 2))
    for a, b in zip(old, new, strict=True):
        np.testing.assert_array_equal(a, b)
