"""argmax and argmin of many floats, whose form for CPUs looks at groups; NumPy prefers nan and the first place, too."""

from __future__ import annotations

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp

SHAPES = [(140_000,), (150_021,), (400, 350), (64, 2100), (3, 220, 210)]
KINDS = ["drawn", "ties", "zeros", "nan", "infinite", "both infinities", "nothing but infinities", "denormal"]


def _array(shape, kind):
    rng = np.random.default_rng(3)
    x = rng.normal(size=shape).astype(np.float32)
    some = rng.random(shape) < 0.01
    if kind == "ties":
        return np.round(x)
    if kind == "zeros":
        return np.where(x > 0, np.float32(0), np.float32(-0.0))
    if kind == "nan":
        return np.where(some, np.where(x > 0, np.float32(np.nan), -np.float32(np.nan)), x)
    if kind == "infinite":
        return np.where(some, np.float32(-np.inf), x)
    if kind == "both infinities":
        return np.where(some, np.copysign(np.float32(np.inf), x), x)
    if kind == "nothing but infinities":
        return np.full(shape, -np.inf, np.float32)
    if kind == "denormal":  # which counts as zero on CPUs
        return np.where(some, np.float32(0), np.float32(1e-40))
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_first_extremum(shape, kind):
    x = _array(shape, kind)
    known = np.zeros(shape, np.float32) if kind == "denormal" else x
    for axis in range(x.ndim):
        for name in ("argmax", "argmin"):
            got = phlox.jit(getattr(jnp, name), static_argnums=1)(x, axis)
            np.testing.assert_array_equal(got, getattr(np, name)(known, axis))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    x = jnp.asarray(_array((64, 2100), "drawn")).astype(dtype)
    np.testing.assert_array_equal(phlox.jit(jnp.argmax, static_argnums=1)(x, 1), np.argmax(np.asarray(x), 1))


def test_batches():
    x = _array((50, 60, 50), "ties")
    for axis in range(3):
        got = phlox.jit(phlox.vmap(jnp.argmax, in_axes=axis))(x)
        moved = np.moveaxis(x, axis, 0)
        np.testing.assert_array_equal(got, np.argmax(moved.reshape(len(moved), -1), 1))


def test_where_it_is_used():
    def text(size, dtype):
        return phlox.jit(jnp.argmax).lower(phlox.ShapeDtypeStruct((size,), dtype)).as_text()

    assert "stablehlo.case" in text(200_000, "float32")
    assert "stablehlo.case" not in text(1000, "float32")
    assert "stablehlo.case" not in text(200_000, "int32")
