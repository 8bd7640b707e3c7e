"""Products of matrices of int8, summed in int32, beside NumPy's."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._xla.platforms import processor

KERNEL = "phlox_kernels_byte_products"
IS_FAST = "avx512_vnni" in processor().split()
#: rows, depth and columns around those of groups, steps and panels, and more than one thread has
SHAPES = [(12, 1000, 100), (13, 1001, 97), (100, 301, 203), (512, 512, 64), (8, 4099, 33), (257, 64, 130)]


def drawn(shape, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def product(a, b, contracted=0):
    numbers = (((a.ndim - 1,), (contracted,)), ((), ()))
    return lax.dot_general(a, b, numbers, preferred_element_type=jnp.int32)


def uses(f, *args):
    return KERNEL in phlox.jit(f).lower(*args).as_text()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("contracted", [0, 1])
def test_values(shape, contracted):
    rows, depth, columns = shape
    a, b = drawn((rows, depth)), drawn((depth, columns), 1)
    stored = b.T.copy() if contracted else b
    assert uses(lambda a, b: product(a, b, contracted), a, stored) == IS_FAST
    result = phlox.jit(product, static_argnums=2)(a, stored, contracted)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32))


def test_largest_sums():
    a, b = np.full((16, 1 << 12), -128, np.int8), np.full((1 << 12, 40), -128, np.int8)
    np.testing.assert_array_equal(phlox.jit(product)(a, b), np.full((16, 40), 1 << 26))


def test_rows_of_several_axes_and_batches():
    a, b = drawn((3, 5, 7, 300)), drawn((300, 100), 1)
    assert uses(product, a, b) == IS_FAST
    expected = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(phlox.jit(product)(a, b), expected)
    mapped = phlox.vmap(product, (0, None))
    np.testing.assert_array_equal(phlox.jit(mapped)(a, b), expected)


def test_what_keeps_the_form_of_xla():
    a, b = drawn((64, 512)), drawn((512, 64), 1)
    assert not uses(lambda a, b: a @ b, a, b)  # int8 sums
    assert not uses(product, a.astype(np.int16), b.astype(np.int16))
    assert not uses(product, a[:4], b)
    assert not uses(product, a, b[:, :8])
    with phlox.config.scope(native_kernels=False):
        assert not uses(product, a, b)
