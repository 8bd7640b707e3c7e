"""top_k of integers, which XLA gets as floats on CPUs, beside a stable sort by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint8", "int16", "uint16", "bool"])
@pytest.mark.parametrize("k", [1, 9, 100])
def test_integers(dtype, k):
    rng = np.random.default_rng(2)
    if dtype == "bool":
        x = rng.random((50, 100)) < 0.1
    else:
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, (50, 100), dtype=dtype, endpoint=True)
        x[:, 3], x[:, 4] = info.min, info.max
        x[0] = info.min + rng.integers(0, 5, 100).astype(dtype)
        x[1] = info.max - rng.integers(0, 5, 100).astype(dtype)
        x[2] = rng.integers(0, 3, 100).astype(dtype) - np.dtype(dtype).type(info.min < 0)
        if dtype == "int32":
            x[5] = 0x7F800000 + rng.integers(-3, 4, 100)  # the bits of infinity, and of nan
    order = np.argsort(-x.astype(np.int64), axis=1, kind="stable")[:, :k]
    values, places = phlox.jit(lax.top_k, static_argnums=1)(x, k)
    assert values.dtype == x.dtype
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))


def test_other_axes_and_batches():
    x = np.random.default_rng(2).integers(-9, 9, (40, 30, 5)).astype(np.int32)
    values, places = phlox.jit(lambda x: lax.top_k(x, 4, axis=0))(x)
    order = np.argsort(-x, axis=0, kind="stable")[:4]
    np.testing.assert_array_equal(places, order)
    mapped = phlox.jit(phlox.vmap(lambda x: lax.top_k(x, 3)[0], in_axes=1))(x)
    np.testing.assert_array_equal(mapped, -np.sort(-np.moveaxis(x, 1, 0), axis=-1)[..., :3])
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=0))


def test_derivatives_of_empty_arrays():
    """Tangents have the shape of the result, also if there is nothing to select from."""
    x = jnp.zeros((0, 4))
    _, slopes = phlox.jvp(lambda x: lax.top_k(x, 2)[0], (x,), (x,))
    assert slopes.shape == (0, 2)
    assert phlox.grad(lambda x: (lax.top_k(x, 2)[0] ** 2).sum())(x).shape == (0, 4)
