"""Products of many small matrices in pairs, beside NumPy's in float64."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax

#: rows, depth and columns around those of vectors and of rows that are computed together
SHAPES = [(8, 8, 8), (5, 3, 16), (16, 16, 16), (7, 2, 9), (3, 7, 6), (4, 4, 4), (6, 6, 6), (4, 16, 4), (1, 9, 16)]


def uses(f, *args):
    return "phlox_kernels_small_products" in phlox.jit(f).lower(*args).as_text()


def drawn(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_values(shape):
    rows, depth, columns = shape
    for count in (2500, 20_000):
        a, b = drawn(count, rows, depth), drawn(count, depth, columns)
        assert uses(jnp.matmul, a, b)
        bound = 1e-6 * (np.abs(a) @ np.abs(b))
        assert (np.abs(jnp.matmul(a, b) - a.astype(np.float64) @ b) <= bound).all()


def test_nan_and_infinity_stay_in_their_product():
    a, b = drawn(2500, 5, 5), drawn(2500, 5, 5)
    a[3, 1, 2], b[7, 4, 4], b[-1, 0, 0] = np.nan, np.inf, np.nan
    expected = np.einsum("nik,nkj->nij", a, b)
    np.testing.assert_allclose(jnp.matmul(a, b), expected, atol=1e-5)


def test_which_products_call_the_kernel():
    a = drawn(50, 60, 8, 8)
    assert uses(jnp.matmul, a, a) and uses(jnp.matmul, a[:, 0, :5], a[:, 0, :, :7]) is False
    assert not uses(jnp.matmul, a.astype(np.float64).astype(np.float16), a.astype(np.float16))
    assert not uses(lambda a: jnp.einsum("nmik,nmjk->nmij", a, a), a)
    assert not uses(jnp.matmul, a, a[0, 0])
    assert not uses(jnp.matmul, drawn(1000, 8, 17), drawn(1000, 17, 8))
    assert not uses(jnp.matmul, drawn(5000, 8, 8), drawn(5000, 8, 1))
    assert not uses(lambda a: lax.dot_general(a, a, (((3,), (2,)), ((1, 0), (1, 0)))), a)


def test_derivatives():
    a, b = drawn(400, 6, 6), drawn(400, 6, 6)
    gradient = phlox.grad(lambda a: (a @ b).sum())(jnp.asarray(a))
    np.testing.assert_allclose(gradient, np.ones_like(a) @ b.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)
