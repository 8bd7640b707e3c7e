"""Sines, cosines and tangents, beside those of the C library in double precision."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp


def numbers(count=1 << 16):
    """float32 of all magnitudes, and those that are near zeros of both functions or not finite."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 32, count, np.uint32).view(np.float32)
    usual = random.normal(size=count) * 10.0 ** random.integers(-8, 9, count)
    near = random.integers(-(1 << 27), 1 << 27, count) * (np.pi / 2)
    special = np.array([0.0, -0.0, 1e-45, -1e-40, 2.0**-13, 2.0**27, -(2.0**27), 134217720, np.inf, -np.inf, np.nan])
    return np.concatenate([bits, *(x.astype(np.float32) for x in (usual, near, special))])


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_errors_are_half_a_unit(name):
    x, f = numbers(), getattr(jnp, name)
    assert "phlox_kernels_sine" in phlox.jit(f).lower(x).as_text()
    with np.errstate(invalid="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
    values = np.asarray(f(x))
    np.testing.assert_array_equal(np.isnan(values), ~np.isfinite(x))
    finite = np.isfinite(x)
    units = np.abs(values[finite] - exact[finite]) / np.spacing(np.abs(exact[finite]).astype(np.float32))
    assert units.max() < 0.502
    # Numbers without a bit in front of the point count as zero for XLA: sin(x) and tan(x) are x.
    small = np.abs(x) < 2.0**-13
    if name != "cos":
        np.testing.assert_array_equal(values[small].view(np.uint32), x[small].view(np.uint32))


def test_blocks_with_and_without_large_numbers():
    x = np.linspace(-50, 50, 10_007, dtype=np.float32)
    for place in (0, 255, 256, 9_999, 10_006):
        y = x.copy()
        y[place] = 3e38
        np.testing.assert_allclose(jnp.sin(y), np.sin(y.astype(np.float64)), atol=1e-7)


def test_which_programs_call_the_kernel():
    def calls(f, *shape, dtype=np.float32):
        return "phlox_kernels_sine" in phlox.jit(f).lower(phlox.ShapeDtypeStruct(shape, dtype)).as_text()

    assert calls(jnp.sin, 4096) and calls(jnp.cos, 3000, 3000) and calls(jnp.tan, 4096)
    assert not calls(jnp.sin, 4095)
    assert not calls(jnp.sin, 4096, dtype=np.float16)
    # Large arrays that are computed on the way stay in the loop of XLA.
    assert calls(lambda x: jnp.sin(x + 1), 1 << 17) and not calls(lambda x: jnp.sin(x + 1), 1 << 18)
