"""Sums at indices: histograms, sums of segments and updates of rows, to the bit of XLA's form."""

import jax
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from sorted_bits import bits, drawn

DTYPES = ["f4", "f8", "i4", "i8", "u4", "u8"]
#: the shape of the updates, and the number of rows of the operand: few and many for each row, and rows of few elements
SIZES = [((5001,), 7), ((140_003,), 100), ((30_000,), 25_000), ((700, 7), 50), ((300, 4, 6), 11)]


def uses(f, *args):
    return "phlox_kernels_scatter_add" in phlox.jit(f).lower(*args).as_text()


def both(f, *args):
    """The results with and without the kernels."""
    with phlox.config.scope(native_kernels=False):
        expected = phlox.jit(lambda *args: f(*args))(*args)
    return phlox.jit(f)(*args), expected


def same(x, expected):
    """nan has the sign and the payload of whichever operand the processor takes."""
    x, expected = np.asarray(x), np.asarray(expected)
    nan = (x != x) & (expected != expected)
    np.testing.assert_array_equal(
        bits(np.where(nan, x.dtype.type(0), x)), bits(np.where(nan, x.dtype.type(0), expected))
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", range(len(SIZES)))
def test_sums_have_the_bits_of_xla(dtype, number):
    random, (shape, rows) = np.random.default_rng(0), SIZES[number]

    def add(x, i, updates):
        return x.at[i].add(updates, mode=["drop", "clip"][number % 2])

    with phlox.enable_x64(True):
        x, updates = drawn(random, dtype, (rows, *shape[1:])), drawn(random, dtype, shape)
        indices = random.integers(-3, rows + 3, shape[:1]).astype(["i4", "i8"][number % 2])
        for i in (indices, np.sort(indices)):
            assert uses(add, x, i, updates)
            same(*both(add, x, i, updates))


def test_one_number_for_all_indices_stays_one_number():
    def count(x, i):
        return x.at[i].add(3, mode="drop")

    i = np.random.default_rng(0).integers(-3, 40, 9001).astype("i4")
    for dtype in ("i4", "f4"):
        x = np.arange(37).astype(dtype)
        assert "tensor<9001xi32>, tensor<1x" not in phlox.jit(count).lower(x, i).as_text()
        assert "tensor<1x" in phlox.jit(count).lower(x, i).as_text()
        same(*both(count, x, i))


def test_functions_that_count_and_sum():
    random = np.random.default_rng(0)
    few, x = random.integers(0, 100, 10_000).astype("i4"), random.normal(size=10_000).astype("f4")
    for f, reference in (
        (lambda few, x: jnp.bincount(few, length=100), jax.numpy.bincount(few, length=100)),
        (lambda few, x: jnp.histogram(x, 20)[0], jax.numpy.histogram(x, 20)[0]),
        (lambda few, x: phlox.ops.segment_sum(x, few, 100), jax.ops.segment_sum(x, few, 100)),
    ):
        assert uses(f, few, x)
        same(phlox.jit(f)(few, x), reference)


def test_the_operand_is_kept():
    x, i = jnp.zeros(10), np.arange(9000, dtype="i4") % 10
    add = phlox.jit(lambda x: x.at[i].add(1.0))
    assert add(x).tolist() == [900.0] * 10
    assert x.tolist() == [0.0] * 10


def test_derivatives():
    i = np.random.default_rng(0).integers(0, 50, 6000).astype("i4")
    x = np.random.default_rng(1).normal(size=6000).astype("f4")

    def loss(m):
        return lambda x: (m.ops.segment_sum(m.numpy.sin(x), i, 50) ** 2).sum()

    np.testing.assert_allclose(
        phlox.jit(phlox.grad(loss(phlox)))(x), jax.jit(jax.grad(loss(jax)))(x), rtol=1e-4, atol=1e-5
    )
    assert uses(phlox.grad(lambda table: (table[i] ** 2).sum()), np.ones(50, "f4"))  # a lookup's gradient


def test_what_keeps_the_form_of_xla():
    x, i = np.ones((50, 40), "f4"), np.zeros(6000, "i4")

    def add(x, i):
        return x.at[i].add(1.0)

    assert not uses(add, x, i)  # long rows
    assert not uses(add, x[:, 0], i[:100])
    assert not uses(add, x[:, 0].astype("f2"), i)
    assert not uses(lambda x, i: x.at[:, i].add(1.0), x[:3], i)
    assert not uses(phlox.vmap(add), x[:3], np.zeros((3, 3000), "i4"))
    with phlox.config.scope(native_kernels=False):
        assert not uses(add, x[:, 0], i)
