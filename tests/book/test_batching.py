"""From one example to a batch: a loop with stack, and vmap, which writes the batched program itself."""

from functools import partial

import numpy as np

import phlox.numpy as jnp
from phlox import grad, jit, random, vmap

key, w_key, b_key, x_key = random.split(random.PRNGKey(0), 4)
W, b = random.normal(w_key, (3, 4)), random.normal(b_key, (3,))
X = random.normal(x_key, (10, 4))
params = {"W": W, "b": b}


def linear(x):
    return jnp.dot(W, x) + b


def predict(params, x):
    return jnp.tanh(jnp.dot(params["W"], x) + params["b"])


def naively_batched(f, xs):
    return jnp.stack([f(x) for x in xs])


def test_vmap_of_a_linear_function():
    Y = vmap(linear)(X)
    assert Y.shape == (10, 3)
    np.testing.assert_allclose(Y, naively_batched(linear, X), rtol=1e-5)
    np.testing.assert_allclose(Y, X @ W.T + b, rtol=1e-5)


def test_parameters_that_all_examples_share():
    expected = naively_batched(partial(predict, params), X)
    np.testing.assert_allclose(vmap(partial(predict, params))(X), expected, rtol=1e-5)
    np.testing.assert_allclose(vmap(predict, in_axes=(None, 0))(params, X), expected, rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(predict, in_axes=(None, 0)))(params, X), expected, rtol=1e-5)


def test_examples_along_another_axis():
    np.testing.assert_allclose(vmap(linear, in_axes=1, out_axes=1)(X.T), vmap(linear)(X).T, rtol=1e-5)


def test_gradients_of_each_example():
    loss = lambda params, x: jnp.sum(predict(params, x) ** 2)
    each = vmap(grad(loss), in_axes=(None, 0))(params, X)
    assert each["W"].shape == (10, 3, 4)
    # The derivative 1 - tanh(x)**2 cancels where tanh is near 1: there only digits of 1 itself are right.
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=2e-6)
    close(each["b"], naively_batched(lambda x: grad(loss)(params, x)["b"], X))
    close(each["W"].sum(0), grad(lambda p: jnp.sum(vmap(partial(loss, p))(X)))(params)["W"])
