"""Products with a matrix of equal columns and their sums, which XLA's library for CPUs would compute wrongly as one."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._xla.repeated_columns import product_options

STACK = np.random.default_rng(0).standard_normal((8, 40, 40)).astype(np.float32)


def ones(*shape):
    return jnp.ones(shape, np.float32)


#: factors of equal columns, as functions of a stack of matrices
REPEATED = {
    "ones": lambda x: ones(40, 40),
    "a matrix for each": lambda x: ones(8, 40, 40),
    "columns": lambda x: jnp.broadcast_to(x[:, :, :1], (8, 40, 40)),
    "of a number": lambda x: jnp.full((40, 40), x[0, 0, 0]).T / 3,
    "reshaped": lambda x: jnp.repeat(ones(40, 1), 40, axis=1),
    "concatenated": lambda x: jnp.concatenate([ones(40, 20), ones(40, 20)], axis=1),
    "from a call": lambda x: phlox.jit(lambda x: jnp.sin(jnp.ones_like(x[0])))(x),
}


@pytest.mark.parametrize("axes", [(1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("name", REPEATED)
def test_sums_of_products_with_equal_columns(name, axes):
    def f(x):
        return (x @ REPEATED[name](x)).sum(axes)

    assert product_options(phlox.make_jaxpr(f)(STACK).jaxpr)
    truth = (STACK.astype(float) @ np.asarray(REPEATED[name](STACK), float)).sum(axes)
    # The buffers that were read without having been written differ from call to call.
    for _ in range(2):
        np.testing.assert_allclose(phlox.jit(f)(STACK), truth, rtol=1e-4, atol=1e-2)


def test_sums_of_products_with_equal_columns_inside_of_programs():
    truth = STACK.astype(float).sum(2) * 40

    def loop(x):
        factor = ones(40, 40)
        return lax.fori_loop(0, x[0, 0, 0].astype(int) * 0 + 3, lambda i, c: c + (x @ factor).sum(2), ones(8, 40) * 0)

    def branch(x):
        return lax.cond(x[0, 0, 0] > 9, lambda y: x[:, 0], lambda y: (x @ y).sum(2), ones(40, 40))

    def scan(x):
        factor = ones(40, 40)
        return lax.scan(lambda c, y: (c, (x @ factor).sum(2) * y), 0.0, jnp.arange(3.0))[1][2]

    for f, factor in ((loop, 3), (branch, 1), (scan, 2)):
        np.testing.assert_allclose(phlox.jit(f)(STACK), truth * factor, rtol=1e-4, atol=2e-2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x @ x[0]).sum(1),
        lambda x: (ones(40, 40) @ x).sum(1),  # equal rows
        lambda x: (x @ jnp.eye(40)).sum(1),
        lambda x: (x @ ones(40, 1)).sum(1),
        lambda x: (x @ (x[0] * 2 + x[0, 0])).sum(1),  # a row is added to all
        lambda x: jnp.tensordot(x.reshape(8, 40, 4, 10), x[0].reshape(4, 10, 40)).sum(1),
    ],
)
def test_other_products_are_compiled_as_before(f):
    assert not product_options(phlox.make_jaxpr(f)(STACK).jaxpr)
    np.testing.assert_allclose(phlox.jit(f)(STACK), f(STACK), rtol=1e-4, atol=1e-3)
