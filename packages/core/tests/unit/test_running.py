"""Cumulative reductions of many numbers, whose form for CPUs has blocks, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import phlox
from phlox import lax

WAYS = {
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}
SHAPES = [((140_003,), 0), ((400, 351), 1), ((351, 400), 0), ((20, 70, 100), 1)]


def _expected(name, x, axis, reverse):
    x = np.flip(x, axis) if reverse else x
    out = WAYS[name](x, axis)
    return np.flip(out, axis) if reverse else out


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_whole_numbers_and_extrema_are_exact(shape, axis, reverse):
    rng = np.random.default_rng(5)
    floats = rng.normal(size=shape).astype(np.float32)
    floats[rng.random(shape) < 1e-4] = np.nan
    whole = rng.integers(-50, 50, shape).astype(np.int32)
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        x = floats if name in ("cummax", "cummin") else whole
        got = phlox.jit(lambda x, name=name: getattr(lax, name)(x, axis=axis, reverse=reverse))(x)
        np.testing.assert_array_equal(got, _expected(name, x, axis, reverse).astype(x.dtype))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cumlogsumexp"])
def test_sums_and_products(name, shape, axis, reverse):
    rng = np.random.default_rng(5)
    x = rng.normal(size=shape).astype(np.float32)
    x = np.exp(x / 100) if name == "cumprod" else x
    got = phlox.jit(lambda x: getattr(lax, name)(x, axis=axis, reverse=reverse))(x)
    expected = _expected(name, x.astype(np.float64), axis, reverse)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-4 if name == "cumsum" else 2e-5)


def test_derivatives_and_batches():
    x = np.random.default_rng(5).normal(size=(400, 350)).astype(np.float32)
    slopes = phlox.jit(phlox.grad(lambda x: (lax.cumsum(x, axis=1) * x).sum()))(x)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(slopes, np.cumsum(wide, 1) + _expected("cumsum", wide, 1, True), atol=1e-4)
    mapped = phlox.jit(phlox.vmap(lax.cumsum, in_axes=1, out_axes=1))(x)
    np.testing.assert_allclose(mapped, np.cumsum(wide, 0), atol=1e-4)


def test_where_it_is_used():
    def windows(length):
        x = phlox.ShapeDtypeStruct((length,), "float32")
        return phlox.jit(lax.cumsum).lower(x).as_text().count("reduce_window")

    assert windows(100_000) == 1
    assert windows(200_000) == 3
