"""Gradients of every layer, with respect to parameters and inputs, against differences of values, also under jit."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from nn_layers import EXAMPLES, classes
from phlox.test_util import check_grads
from phlox_nn._norm import _moments

KEY = phlox.random.key(0)


def test_every_layer_has_an_example():
    assert {name.split(",")[0].split()[0] for name in EXAMPLES} >= classes()


def function_of(example):
    """The layer as a function of its parameters and of its inputs where they are numbers, and those in 64 bits."""
    params = example.layer.init(KEY, dtype=jnp.float64)
    # The first values hide mistakes: zeros and ones.
    keys = iter(phlox.random.split(KEY, 1 + len(phlox.tree.leaves(params))))
    params = phlox.tree.map(lambda x: x + 0.3 * phlox.random.normal(next(keys), x.shape, x.dtype), params)
    state = phlox.tree.map(lambda x: x.astype(jnp.float64) if x.dtype == jnp.float32 else x, example.state())
    if example.integers:
        return lambda params: example.apply(params, example.inputs(), state=state), (params,)
    rest = [jnp.asarray(x, jnp.float64) for x in example.rest]
    return lambda params, *args: example.apply(params, *args, state=state), (params, example.inputs(jnp.float64), *rest)


@pytest.mark.parametrize("name", EXAMPLES)
def test_gradients_are_slopes(name):
    with phlox.enable_x64(True):
        run, args = function_of(EXAMPLES[name])
        jitted = phlox.jit(run)
        # Attention has its softmax in 32 bits, as jax's: differences of values have fewer digits.
        step, slack, tolerance = (1e-3, 1e-4, 1e-5) if "Attention" in name else (1e-6, 1e-6, 1e-9)
        check_grads(jitted, args, order=1, modes=("fwd", "rev"), eps=step, atol=slack, rtol=slack)

        # The rules see other values where the whole derivative is compiled.
        def loss(*args):
            return sum((y**2).sum() for y in phlox.tree.leaves(run(*args)))

        every = tuple(range(len(args)))
        for a, b in zip(
            phlox.tree.leaves(phlox.jit(phlox.grad(loss, every))(*args)),
            phlox.tree.leaves(phlox.grad(loss, every)(*args)),
            strict=True,
        ):
            assert a.dtype == jnp.float64
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_second_derivatives_of_statistics():
    """The rule of mean and variance leaves terms out that are 0: they are so for further derivatives too."""

    def written_out(x, axes):
        mean = x.mean(axes, keepdims=True)
        return mean, ((x - mean) ** 2).mean(axes, keepdims=True)

    def total(statistics):
        def f(x):
            mean, var = statistics(x, (0, 2))
            return (jnp.sin((x - mean) / jnp.sqrt(var + 0.1)) * jnp.arange(x.size).reshape(x.shape)).sum()

        return f

    with phlox.enable_x64(True):
        x = phlox.random.normal(KEY, (3, 2, 4), jnp.float64)
        ours, theirs = total(lambda x, axes: _moments(x, axes, True, None)), total(written_out)
        for order in (phlox.grad, phlox.jacfwd, phlox.hessian, lambda f: phlox.jacfwd(phlox.hessian(f))):
            np.testing.assert_allclose(order(ours)(x), order(theirs)(x), rtol=1e-10, atol=1e-10)
