"""Extrema, their positions, running reductions and positions of true elements, beside jax or NumPy."""

import contextlib
import re

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
        assert uses(lambda x, f=running: f(x, axis=0), x)
        assert not uses(lambda x, f=running: f(x, axis=0), x[:, :10])  # columns leave lanes of vectors empty
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


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: np.dtype(kind).name)
def test_extrema_tell_zeros_apart(kind):
    with wide():
        for shape in [(70, 100), (300, 1030), (1003, 70)]:
            x = np.full(shape, -0.0, kind)
            x[5, 7], x[-1, -1], x[2] = 0, 0, -1
            for y in (x, -x):
                for name, sign in (("max", False), ("min", True)):  # the sign of the zero that is beyond the other one
                    for axis in (0, 1, None):
                        got = np.asarray(getattr(jnp, name)(y, axis=axis))
                        assert (got == np.asarray(getattr(np, name)(y, axis=axis))).all()
                        beyond = ((y == 0) & (np.signbit(y) == sign)).any(axis=axis)
                        assert ((np.signbit(got) == sign) == beyond)[got == 0].all()


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
def test_one_nan_is_the_extremum(kind):
    """Wherever it is among the elements that are compared together."""
    with wide():
        for shape in [(3, 131), (90, 48), (70, 1030)]:
            x = np.ones(shape, kind)
            for at in (0, 1, 15, 16, 17, 31, 33, 47, x.size // 2, x.size - 1):
                y = x.copy()
                y.flat[at] = np.nan
                for name in ("max", "min"):
                    for axis in (0, 1):
                        expected = getattr(np, name)(y, axis=axis)
                        np.testing.assert_array_equal(getattr(jnp, name)(y, axis=axis), expected)
                assert np.argmax(y) == jnp.argmax(y) == jnp.argmin(y) == at
                same(jnp.argmax(y, axis=1), np.argmax(y, axis=1).astype(np.int64))


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
def test_sums_have_small_errors(kind):
    """In float32 however long a sum is: three additions, and one rounding. Those of float64 have no wider type."""
    random, unit = np.random.default_rng(4), np.finfo(kind).eps * (1 if kind == np.float32 else 8)
    with wide():
        for shape in [*SHAPES, (4097, 17), (2, 70_001), (60, 3, 1025), (1003, 300)]:
            signed = random.normal(size=shape).astype(kind)
            for axis in (-1, None, 0, *(((0, 1), (1, 2), 1) if len(shape) == 3 else ())):
                if signed.size < 16 * np.sum(signed, axis=axis).size:
                    continue
                for x in (signed, np.abs(signed)):
                    got = np.asarray(jnp.sum(x, axis=axis))
                    exact = np.sum(x.astype(np.longdouble), axis=axis)
                    assert got.dtype == kind
                    bound = unit * np.abs(exact) + 1.5 * unit * np.sum(np.abs(x), axis=axis, dtype=np.float64)
                    if x is not signed:
                        bound = 2 * unit * np.abs(exact)
                    assert (np.abs(got - exact) <= bound).all(), (shape, axis)


def test_sums_of_infinities_and_nan():
    x = np.ones((200, 300), np.float32)
    x[3, 5], x[4, 7], x[8, 9], x[9, 9] = np.inf, np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        for axis in (0, 1, None):
            np.testing.assert_array_equal(jnp.sum(x, axis=axis), np.sum(x, axis=axis))
    assert not np.signbit(jnp.sum(np.full((100, 100), -0.0, np.float32), axis=0)).any()  # XLA starts from 0
    assert jnp.sum(np.ones((0, 5000), np.float32), axis=0).tolist() == [0] * 5000


def test_sums_of_arguments_alone_call_a_kernel():
    """A kernel would take the sum out of the loop that computes the elements."""
    x = np.ones((100, 100), np.float32)
    assert uses(lambda x: x.mean(0), x)
    assert uses(lambda x: phlox.lax.fori_loop(0, 3, lambda _, c: c + x.sum(), 0.0), x)
    assert not uses(lambda x: (2 * x).sum(0), x)
    assert not uses(lambda x: x.sum(0), x.astype(np.float16))
    assert not uses(lambda x: x.sum(0), x[:, :10])
    assert not uses(lambda x: x.reshape(2, 5000).sum(0), x)


def term(f, *args):
    """The numbers by which the kernel of sums knows what a program adds: elements, squares, squared distances."""
    return [int(n) for n in re.findall(r"term = (\d)", phlox.jit(f).lower(*args).as_text())]


def test_sums_of_squares_and_variances_of_arguments_call_a_kernel():
    x = np.ones((100, 100), np.float32)
    for f in (lambda x: (x**2).sum(0), lambda x: (x * x).sum(1), lambda x: jnp.square(x).sum()):
        assert term(f, x) == [1]
    assert term(lambda x: (x**3).sum(0), x) == term(lambda x, y: (x * y).sum(0), x, x) == []
    assert term(lambda x: ((x + 1) ** 2).sum(0), x) == []
    # The mean is a sum of its own, which the compiler drops.
    for f in (jnp.var, lambda x: jnp.std(x, 1), lambda x: jnp.var(x, (0, 1), ddof=1)):
        assert term(f, x) == [0, 2]
    for f in (lambda x: jnp.var(x, 0, mean=x[:1]), lambda x: ((x - x.mean(1, keepdims=True)) ** 2).sum(0)):
        assert 2 not in term(f, x)
    assert 2 not in term(lambda x: ((x - x.sum(1, keepdims=True) / 99) ** 2).sum(1), x)
    assert term(jnp.var, x + 0 * 1j) == []
    assert term(lambda x: (x**2).sum(0), np.ones((3, 4096), np.float32)) == [1]
    assert term(lambda x: (x**2).sum(0), np.ones((3, 4000), np.float32)) == []


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
def test_squares_and_variances_have_small_errors(kind):
    random, unit = np.random.default_rng(5), np.finfo(kind).eps * (1 if kind == np.float32 else 8)
    with wide():
        for shape in [
            *SHAPES,
            (4097, 17),
            (2, 140_001),
            (300_001, 20),
            (60, 3, 1025),
            (1003, 300),
            (7, 5001),
            (8, 4096),
        ]:
            x = (random.normal(size=shape) + 3).astype(kind)
            for axis in (-1, None, 0, *((1,) if len(shape) == 3 else ())):
                exact = x.astype(np.longdouble)
                squares = phlox.jit(lambda x, axis=axis: (x**2).sum(axis))(x)
                # Eight numbers are added in the type of the elements, which few terms are, one after the other.
                np.testing.assert_allclose(squares, np.sum(exact**2, axis=axis), rtol=8 * unit)
                # The mean is rounded, and is as large as the distances or larger.
                variances = phlox.jit(lambda x, axis=axis: jnp.var(x, axis))(x)
                np.testing.assert_allclose(variances, np.var(exact, axis=axis), rtol=16 * unit, atol=(4 * unit) ** 2)


def test_variances_of_infinities_and_nan():
    x = np.ones((200, 300), np.float32)
    x[3, 5], x[4, 7] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        for axis in (0, 1, None):
            np.testing.assert_array_equal(jnp.var(x, axis=axis), np.var(x, axis=axis))


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
                same(getattr(lax, name)(x, 0), ufunc.accumulate(x, 0, dtype=kind))
                turned = ufunc.accumulate(x[::-1], 0, dtype=kind)[::-1]
                same(getattr(lax, name)(x, 0, True), np.ascontiguousarray(turned))


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


def chain(x, product):
    """A running sum or product in float64 whose results are rounded to float32. As one of float32 it does not return
    from infinity, nor a product from 0."""
    out = np.empty_like(x)
    state = np.full(len(x), 1.0 if product else -0.0)
    for i, elements in enumerate(x.T.astype(np.float64)):
        state = state * elements if product else state + elements
        out[:, i] = results = state.astype(np.float32)
        state = np.where(~np.isfinite(results) | (product & (results == 0)), results, state)
    return out


FAR = np.float32([np.finfo(np.float32).max, -3e38, 1e30, 1e-30, 1000, -0.0, 0, 1, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("rows", [1, 19, 70])
def test_running_sums_and_products_are_those_of_one_chain(rows):
    """However rows are divided: infinity, zero and nan stay, and the sign of zeros is that of the chain."""
    random = np.random.default_rng(rows)
    cases = [
        np.tile(np.r_[0, np.full(749, 1000)].astype(np.float32), (rows, 1)),
        np.full((rows, 400), -0.0, np.float32),
    ]
    for length in (300, 1150):
        some = random.choice(FAR, (1, length))
        cases += [np.where(random.random((rows, length)) < 0.01, some, np.full_like(some, often)) for often in FAR[:8]]
    with np.errstate(all="ignore"):
        for x in cases:
            for running, product in ((lax.cumsum, False), (lax.cumprod, True)):
                for reverse in (False, True):
                    expected = chain(x[:, ::-1], product)[:, ::-1] if reverse else chain(x, product)
                    for got in (running(x, 1, reverse), running(x.T, 0, reverse).T):
                        got = np.asarray(got)
                        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=0 if product else 1e24)
                        zero = expected == 0
                        assert np.array_equal(np.signbit(got)[zero], np.signbit(expected)[zero])


def test_one_long_row_does_not_return_from_infinity_or_zero():
    far = np.ones(200_000, np.float32)
    far[[70_000, 70_001, 70_002]] = 3e38, 3e38, -3e38
    np.testing.assert_array_equal(np.isinf(lax.cumsum(far)), np.arange(far.size) > 70_000)
    far[:] = 1.001
    far[100_000:] = 1 / np.float32(1.001) ** 2
    assert np.isinf(lax.cumprod(far)).sum() == far.size - np.isinf(lax.cumprod(far)).argmax()
    far[150_000] = 0
    assert np.isnan(lax.cumprod(far)[150_000:]).all()  # infinity times 0
    far[:] = 1000
    far[0] = 0
    assert not np.asarray(lax.cumprod(far)).any()


@pytest.mark.parametrize("rows", [1, 8, 11])
def test_running_extrema_tell_zeros_apart(rows):
    x = np.full((rows, 700), -0.0, np.float32)
    x[:, 300:400] = 0
    signs = lambda x: np.signbit(x).sum(1).tolist()
    assert signs(lax.cummax(x, 1)) == signs(lax.cummax(x.astype(np.float64), 1)) == [300] * rows
    assert signs(lax.cummin(-x, 1)) == [400] * rows
    assert signs(lax.cummin(-x, 1, True)) == [400] * rows


def test_positions_of_bools_that_change_in_shared_memory():
    """Each byte that is not 0 counts once, so that no position is beyond the end."""
    memory = np.zeros(100_000 + 64, np.uint8)
    octets = memory[-memory.ctypes.data % 64 :][:100_000]
    shared = jnp.from_dlpack(octets.view(bool))
    octets[:] = np.arange(octets.size) % 256
    assert shared.unsafe_buffer_pointer() == octets.ctypes.data
    for size in (100, 100_000, 120_000):
        places = np.asarray(jnp.nonzero(shared, size=size, fill_value=octets.size)[0])
        np.testing.assert_array_equal(places, np.r_[np.flatnonzero(octets), [octets.size] * size][:size])


def test_bools_of_foreign_functions_are_zero_and_one():
    octets = np.array([3, 0, 255, 128] * 100, np.uint8)
    sort = phlox.ffi.ffi_call("phlox_kernels_sort_1", phlox.ShapeDtypeStruct(octets.shape, bool))
    assert uses(jnp.sort, octets)  # which registers the kernels
    found = phlox.jit(lambda x: sort(x, dimension=np.int64(0)))(octets)
    assert np.asarray(found).view(np.uint8).tolist() == [0] * 100 + [1] * 300
    assert int(jnp.sum(found)) == 300


def test_calls_that_do_not_fit_are_refused():
    x = np.ones((4, 8), np.float32)
    assert uses(lambda x: jnp.sort(x, axis=0), np.ones((300, 8), np.float32))
    for name, out, attributes in (
        ("sort_1", ((3,), np.float32), {"dimension": np.int64(0)}),
        ("sort_1", ((4, 8), np.float32), {"dimension": np.int64(2)}),
        ("argsort_1", ((4, 8), np.uint8), {"dimension": np.int64(1)}),
        ("max_1", ((4,), np.float32), {"inner": np.int64(0)}),
        ("scan_2", ((4, 9), np.float32), {"axis": np.int64(0), "operation": np.int64(0), "reverse": np.int64(0)}),
        ("scan_2", ((4, 8), np.float32), {"axis": np.int64(2), "operation": np.int64(0), "reverse": np.int64(0)}),
        ("places_1", ((4, 8), np.int32), {}),
    ):
        call = phlox.ffi.ffi_call(f"phlox_kernels_{name}", phlox.ShapeDtypeStruct(*out))
        with pytest.raises(Exception, match="phlox_kernels: "):
            np.asarray(call(x, **attributes))


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
    for shape in [(256,), (513,), (40_000,), (100_001,), (40, 50)]:
        mask = random.random(shape) < share
        for size in (None, 1, mask.size // 3, mask.size, mask.size + 70):
            same(*(list(m.numpy.nonzero(mask, size=size, fill_value=-7)) for m in (phlox, jax)))
    rows = random.random((7, 3000)) < share
    for size in (5, 3000, 4000):
        places = lambda m, r, size=size: m.numpy.flatnonzero(r, size=size, fill_value=3000)
        same(*(m.vmap(lambda r, m=m: places(m, r))(rows) for m in (phlox, jax)))
