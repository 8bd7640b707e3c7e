"""searchsorted of many values, which takes another form for short vectors, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("length", [1, 5, 24, 25, 31, 32, 127, 128, 300])
def test_many_values(length, side):
    rng = np.random.default_rng(4)
    a = np.sort(np.round(rng.normal(size=length), 1)).astype(np.float32)
    a[-1] = np.nan
    v = np.round(rng.normal(size=(50, 100)), 1).astype(np.float32)
    v[0, :5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    expected = np.searchsorted(a, v, side)
    got = phlox.jit(lambda a, v: jnp.searchsorted(a, v, side))(a, v)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(phlox.vmap(lambda v: jnp.searchsorted(a, v, side))(v), expected)


def test_bins():
    x = np.random.default_rng(4).normal(size=10_000).astype(np.float32)
    for bins in (10, 100):
        counts, edges = phlox.jit(jnp.histogram, static_argnums=1)(x, bins)
        np.testing.assert_array_equal(counts, np.histogram(x, np.asarray(edges))[0])
    falling = np.linspace(2, -2, 9).astype(np.float32)
    np.testing.assert_array_equal(jnp.digitize(x, falling), np.digitize(x, falling))
