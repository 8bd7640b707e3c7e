"""Python integers that an integer dtype does not hold: comparisons are right, and all else is refused, as in NumPy 2."""

import operator

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, jit, lax, vmap

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def elements(dtype):
    limits = np.iinfo(dtype)
    return np.array([limits.min, 0, 5, 44, limits.max], dtype)


def numbers(dtype):
    """Numbers in and around the range of the dtype, and those that wrap to its elements."""
    limits, size = np.iinfo(dtype), 2 ** np.iinfo(dtype).bits
    return [limits.min - 1, limits.min, 44, limits.max, limits.max + 1, 5 - size, 44 + size]


def compared(x, numbers):
    """For each number the results of all comparisons, and of the mirrored ones."""
    return [[[op(x, n), MIRRORED[op](n, x)] for op in COMPARISONS] for n in numbers]


FORMS = {
    "eager": compared,
    "constants of a program": lambda x, numbers: jit(lambda x: compared(x, numbers))(x),
    "arguments": jit(compared),
    "weak arrays": lambda x, numbers: compared(x, [jnp.asarray(n) for n in numbers]),
    "vmap": lambda x, numbers: vmap(compared, (0, None), -1)(x, numbers),
    "a committed array": lambda x, numbers: compared(phlox.device_put(x, phlox.devices()[0]), numbers),
}
MIRRORED = {
    operator.eq: operator.eq,
    operator.ne: operator.ne,
    operator.lt: operator.gt,
    operator.le: operator.ge,
    operator.gt: operator.lt,
    operator.ge: operator.le,
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_comparisons_are_of_values(form, x64):
    with phlox.enable_x64(x64):
        limits = np.iinfo("int64" if x64 else "int32")
        for dtype in ["int64", "uint64", *DTYPES] if x64 else DTYPES:
            x, tried = elements(dtype), numbers(dtype)
            if form != "constants of a program":  # a number outside of the default integer dtype is no argument
                tried = [n for n in tried if limits.min <= n <= limits.max]
            results = FORMS[form](jnp.asarray(x), tried)
            for n, pairs in zip(tried, results, strict=True):
                for op, pair in zip(COMPARISONS, pairs, strict=True):
                    expected = [op(int(v), n) for v in x]
                    assert [r.tolist() for r in pair] == [expected, expected], (dtype, n, op)


@pytest.mark.parametrize("x64", [False, True])
def test_arrays_of_different_dtypes_are_compared_by_value(x64):
    with phlox.enable_x64(x64):
        for first, second in (("uint32", "int32"), ("int8", "uint32"), ("uint64", "int64"), ("int16", "uint64")):
            if "64" in first + second and not x64:
                continue
            x, y = elements(first)[:, None], elements(second)
            for compare in COMPARISONS:
                expected = [[compare(int(v), int(w)) for w in y] for v in x[:, 0]]
                assert compare(jnp.asarray(x), jnp.asarray(y)).tolist() == expected, (first, second, compare)


def test_searches_are_by_value():
    x = jnp.array([5, 44, 200], "uint8")
    for n in (-300, -212, -1, 5, 44, 255, 256, 261, 300):
        assert jnp.isin(x, n).tolist() == [n == 5, n == 44, n == 200]
        assert bool(jnp.isin(n, x)) == (n in (5, 44, 200)) == (n in x)
        for side in ("left", "right"):
            expected = int(np.searchsorted([5, 44, 200], n, side))
            for method in ("scan", "scan_unrolled", "sort", "compare_all"):
                assert int(jnp.searchsorted(x, n, side, method=method)) == expected
                assert int(jit(lambda x: jnp.searchsorted(x, n, side, method=method))(x)) == expected
        assert int(jnp.digitize(n, x)) == int(np.digitize(n, [5, 44, 200]))
        assert jnp.isclose(x, n).tolist() == [n == 5, n == 44, n == 200]


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_clip(run):
    x = jnp.array([5, 200], "uint8")
    for low, high in ((-1, 300), (10, 300), (-5, 100), (None, 256), (-1, None), (3, 7), (0, 255)):
        expected = np.clip(np.array([5, 200]), low, high).tolist()
        for clip in (jnp.clip, lambda x, low, high: x.clip(low, high)):
            got = run(lambda x: clip(x, low, high))(x)
            assert (got.dtype, got.tolist()) == (np.uint8, expected)
        bounds = [v if v is None else jnp.asarray(v) for v in (low, high)]
        assert jnp.clip(x, *bounds).tolist() == expected
    for low, high in ((300, 400), (None, -1), (-5, -1), (256, None)):
        with pytest.raises(errors.NumberRangeError, match="clip"):
            run(lambda x: jnp.clip(x, low, high))(x)
    assert jit(jnp.clip)(x, 300, 400).tolist() == [255, 255]  # not known while the program is traced


OPERATIONS = {
    **{op.__name__: op for op in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)},
    **{op.__name__: op for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift)},
    "reflected sub": lambda x, n: n - x,
    "reflected pow": lambda x, n: n**x,
    "maximum": jnp.maximum,
    "gcd": jnp.gcd,
    "where": lambda x, n: jnp.where(x > 6, x, n),
    "select": lambda x, n: jnp.select([x > 6], [x], n),
    "full": lambda x, n: jnp.full(2, n, x.dtype),
    "full_like": jnp.full_like,
    "lax.full": lambda x, n: lax.full((2,), n, x.dtype),
    "asarray": lambda x, n: jnp.asarray(n, x.dtype),
    "set": lambda x, n: x.at[0].set(n),
    "add at": lambda x, n: x.at[0].add(n),
    "min at": lambda x, n: x.at[0].min(n),
    "get": lambda x, n: x.at[7].get(mode="fill", fill_value=n),
    "take": lambda x, n: jnp.take(x, np.array([7]), mode="fill", fill_value=n),
    "put": lambda x, n: jnp.put(x, 0, n, inplace=False),
    "fill_diagonal": lambda x, n: jnp.fill_diagonal(x[:, None], n, inplace=False),
    "pad": lambda x, n: jnp.pad(x, 1, constant_values=n),
    "insert": lambda x, n: jnp.insert(x, 0, n),
    "append": jnp.append,
    "hstack": lambda x, n: jnp.hstack([x, n]),
    "stack": lambda x, n: jnp.stack([x[0], n]),
    "ediff1d": lambda x, n: jnp.ediff1d(x, to_end=n),
    "diff": lambda x, n: jnp.diff(x, append=n),
    "unique": lambda x, n: jnp.unique(x, size=4, fill_value=n),
    "arange": lambda x, n: jnp.arange(n, n + 2, dtype=x.dtype),
    "sum": lambda x, n: jnp.sum(x, initial=n, dtype=x.dtype),
    "max": lambda x, n: jnp.max(x, initial=n),
    "polyval": jnp.polyval,
    "outer": jnp.outer,
    "a carry": lambda x, n: lax.fori_loop(0, 0, lambda i, c: x[0], n),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_out_of_range_are_refused(name):
    f = OPERATIONS[name]
    x = jnp.array([5, 7], "uint8")
    assert f(x, 3).dtype == jit(lambda x: f(x, 3))(x).dtype == np.uint8
    for n in (300, -1, 256):
        for run in (f, f, lambda x, n: jit(lambda x: f(x, n))(x)):  # the second eager call takes the fast path
            with pytest.raises(OverflowError, match=str(n)):
                run(x, n)
    f(x, 3)
    with pytest.raises(OverflowError):
        f(phlox.device_put(x, phlox.devices()[0]), 300)
    assert f(x.astype("int16"), 300).dtype == np.int16


def test_numbers_in_range_are_not_touched():
    for dtype in DTYPES:
        limits = np.iinfo(dtype)
        for n in (limits.min, limits.max):
            if -(2**31) <= n < 2**31:
                assert (jnp.zeros(2, dtype) + n).tolist() == [n, n]
            assert jit(lambda x: x + n)(jnp.zeros(2, dtype)).tolist() == [n, n]
            assert jnp.full(2, n, dtype).tolist() == [n, n]


def test_conversions_that_are_asked_for_wrap():
    assert int(jit(lambda n: n.astype("uint32"))(-1)) == 2**32 - 1
    assert int(lax.convert_element_type(300, "uint8")) == int(jnp.astype(300, "uint8")) == 44
    assert int(jnp.asarray(300).astype("uint8")) == 44
    assert phlox.random.bits(phlox.random.key(-1)) == phlox.random.bits(phlox.random.key(2**32 - 1))


@pytest.mark.parametrize("size", [129, 257, 300])
@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_axes_that_are_longer_than_the_range_of_indices(dtype, mode, size):
    """Gather, scatter and their gradients, as NumPy computes them with int64."""
    indices = np.array([0, 43, 127, *([-1, -128] if dtype == "int8" else [128, 200, 255])])
    nearest = np.clip(indices, 0, size - 1)
    is_used = (indices == nearest) | (mode == "clip")
    x, y = np.arange(1, size + 1, dtype=np.float32), np.arange(1, len(indices) + 1, dtype=np.float32)
    read = np.where(is_used, x[nearest], 0)
    written = np.bincount(nearest, np.where(is_used, y, 0), size)
    narrow = indices.astype(dtype)[:, None]

    def gather(x):
        numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        return lax.gather(x, narrow, numbers, (1,), mode=mode, fill_value=0)

    def scatter(y):
        return lax.scatter_add(np.zeros_like(x), narrow, y, lax.ScatterDimensionNumbers((), (0,), (0,)), mode=mode)

    assert np.array_equal(gather(x), read)
    assert np.array_equal(phlox.grad(lambda x: gather(x) @ y)(x), written)
    assert np.array_equal(scatter(y), written)
    assert np.array_equal(phlox.grad(lambda y: scatter(y) @ x)(y), read)
    assert np.array_equal(lax.index_take(x, [narrow[:, 0]], (0,)), x[indices % size])
    assert np.array_equal(phlox.nn.one_hot(narrow[:, 0], size), np.eye(256, size)[indices] * (indices >= 0)[:, None])
