"""Extrema, their positions, running reductions and positions of true elements, beside jax or NumPy."""

import contextlib

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
import phlox.numpy as jnp
from phlox import lax
from sorted_bits import drawn, same

KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
#: one row and many, on both sides of vectors, blocks and parts of a row on threads
SHAPES = [(300,), (5001,), (131_075,), (3, 70_000), (17, 1024), (1000, 63), (2, 3, 1030), (90, 48)]
EXTREMA = ["argmax", "argmin", "max", "min"]


@contextlib.contextmanager
def wide():
    """64-bit types in both libraries, and no warnings of NumPy about nan."""
    with phlox.enable_x64(True), jax.enable_x64(True), np.errstate(invalid="ignore"):
        yield


def uses(f, *args):
    """Whether the program of `f` calls a kernel."""
    return "phlox_kernels" in phlox.jit(f).lower(*args).as_text()


def test_what_calls_a_kernel():
    x = np.ones((100, 64), np.float32)
    for name in EXTREMA:
        extremum = getattr(jnp, name)
        for axis in (-1, None, *(() if "arg" in name else (0,))):
            assert uses(lambda x, f=extremum, axis=axis: f(x, axis=axis), x)
        assert not uses(extremum, x[:3])
    for running in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin):
        assert uses(lambda x, f=running: f(x, axis=1), x)
        assert not uses(lambda x, f=running: f(x, axis=0), x)
    assert not uses(lambda x: lax.cumsum(x, axis=1), x.astype(np.float16))
    large = phlox.ShapeDtypeStruct((5000, 5000), np.float32)
    assert not uses(lambda x: jnp.abs(x).max(1), large)  # which need not be in memory
    assert "phlox_kernels_argmax" not in phlox.jit(lambda x: jnp.abs(x).argmax(1)).lower(large).as_text()
    assert uses(lambda x: jnp.nonzero(x, size=10), x)
    with phlox.config.scope(native_kernels=False):
        assert not uses(lambda x: (x.max(1), x.argmax(1), x.cumsum(1), jnp.nonzero(x, size=10)), x)


@pytest.mark.parametrize("kind", [*KINDS, *FLOATS], ids=lambda kind: np.dtype(kind).name)
def test_positions_of_extrema_are_those_of_jax(kind):
    random = np.random.default_rng(0)
    with wide():
        for shape in SHAPES:
            x = drawn(random, kind, shape)
            for few in (x, np.where(np.isfinite(x.astype(np.float64)), x, x.dtype.type(1)), np.zeros_like(x)):
                for name in ("argmax", "argmin"):
                    same(getattr(jnp, name)(few, axis=-1), getattr(jax.numpy, name)(few, axis=-1))
    with phlox.enable_x64(False), jax.enable_x64(False):
        x = drawn(random, np.float32, (3, 5000))
        same(jnp.argmax(x, axis=-1), jax.numpy.argmax(x, axis=-1))


@pytest.mark.parametrize("kind", [*KINDS, *FLOATS], ids=lambda kind: np.dtype(kind).name)
def test_extrema_are_those_of_numpy(kind):
    """Not of jax, whose extrema of many floats lose nan on CPUs."""
    random = np.random.default_rng(1)
    with wide():
        for shape in SHAPES:
            x = drawn(random, kind, shape)
            ordered = random.normal(size=shape).astype(kind)
            for y in (x, ordered, np.where(x != x, np.zeros_like(x), x)):
                for name in ("max", "min"):
                    for axis in (-1, None, 0, *(((0, 1), (1, 2), 1) if len(shape) == 3 else ())):
                        got = np.asarray(getattr(jnp, name)(y, axis=axis))
                        expected = np.asarray(getattr(np, name)(y, axis=axis))
                        assert got.dtype == expected.dtype
                        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_running_reductions_of_integers(name):
    random = np.random.default_rng(2)
    ufunc = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}[name]
    with wide():
        for kind in KINDS:
            for shape in SHAPES:
                x = random.integers(0, 256, (*shape, np.dtype(kind).itemsize), dtype=np.uint8).view(kind)[..., 0]
                x = np.where(random.random(shape) < 0.1, x, x.dtype.type(1))
                same(getattr(lax, name)(x, len(shape) - 1), ufunc.accumulate(x, -1, dtype=kind))
                turned = ufunc.accumulate(x[..., ::-1], -1, dtype=kind)[..., ::-1]
                same(getattr(lax, name)(x, len(shape) - 1, True), np.ascontiguousarray(turned))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_reductions_of_floats(reverse):
    """Sums and products are those of NumPy in float64, rounded; extrema are NumPy's."""
    random = np.random.default_rng(3)
    for shape in [
        *SHAPES,
        *((int(random.integers(1, 20)), int(n)) for n in random.integers(256, 9000, 8 * judge.CASES)),
    ]:
        x = random.normal(size=shape).astype(np.float32)
        near = np.exp(random.normal(size=shape) / 20).astype(np.float32)
        turned = (lambda x: x[..., ::-1]) if reverse else (lambda x: x)
        for running, y, expected in ((lax.cumsum, x, np.cumsum), (lax.cumprod, near, np.cumprod)):
            wanted = turned(expected(turned(y).astype(np.float64), -1))
            got = np.asarray(running(y, y.ndim - 1, reverse))
            assert got.dtype == np.float32
            np.testing.assert_array_less(np.abs(got - wanted), 0.501 * np.spacing(np.abs(wanted).astype(np.float32)))
        some = x.copy()
        some.flat[random.integers(0, x.size, 2)] = [np.nan, np.inf]
        for running, wanted in ((lax.cummax, np.maximum), (lax.cummin, np.minimum)):
            got = running(some, x.ndim - 1, reverse)
            with np.errstate(invalid="ignore"):
                expected = turned(wanted.accumulate(turned(some), -1))
            np.testing.assert_array_equal(got, expected)
    ends = np.ones(5000, np.float32)
    ends[[1000, 3000]] = [np.inf, -np.inf]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(lax.cumsum(ends), np.cumsum(ends))


def test_derivatives_and_batches():
    random = np.random.default_rng(4)
    x = random.normal(size=(9, 1000)).astype(np.float32)
    weights = random.normal(size=(9, 1000)).astype(np.float32)
    gradient = phlox.grad(lambda x: (jnp.cumsum(x, 1) * weights).sum())(x)
    np.testing.assert_allclose(gradient, np.cumsum(weights[:, ::-1].astype(np.float64), 1)[:, ::-1], atol=1e-4)
    for f in (
        lambda m: m.grad(lambda x: m.numpy.cumprod(1 + x / 50, 1).sum())(x),
        lambda m: m.grad(lambda x: (x.max(1) - x.min(1)).sum())(x),
        lambda m: m.vmap(lambda r: m.lax.cummax(r, 0), 1, 1)(x.T),
        lambda m: m.vmap(m.numpy.argmax, 1)(x.T),
        lambda m: m.vmap(lambda r: m.numpy.nonzero(r > 0, size=400, fill_value=-1)[0], 1)(x.T),
    ):
        np.testing.assert_allclose(f(phlox), f(jax), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.97, 1])
def test_positions_of_true_elements(share):
    random = np.random.default_rng(5)
    for shape in [(513,), (40_000,), (100_001,), (40, 50)]:
        mask = random.random(shape) < share
        for size in (None, 1, mask.size // 3, mask.size, mask.size + 70):
            same(*(list(m.numpy.nonzero(mask, size=size, fill_value=-7)) for m in (phlox, jax)))
    rows = random.random((7, 3000)) < share
    for size in (5, 3000, 4000):
        places = lambda m, r, size=size: m.numpy.flatnonzero(r, size=size, fill_value=3000)
        same(*(m.vmap(lambda r, m=m: places(m, r))(rows) for m in (phlox, jax)))
