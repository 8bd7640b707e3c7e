"""Every reduction of arrays of every dtype, beside exact values: those of NumPy on the same numbers in float64.

Where a dtype has no infinity, no zero or no sign, reductions that start at such a number show it.
"""

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax

#: Not float6: XLA's compiler for CPUs converts none of them.
SMALL_FLOATS = [
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
FLOATS = [*SMALL_FLOATS, "float16", "bfloat16", "float32", "float64"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)]
DTYPES = [*FLOATS, *INTEGERS, "bool"]
SHAPE = (3, 70)

#: Functions of a library and an array whose results are elements or positions, so that every bit is right.
SELECTING = {
    "max": lambda m, x: m.max(x, axis=1),
    "min": lambda m, x: m.min(x),
    "argmax": lambda m, x: m.argmax(x, axis=1),
    "argmin": lambda m, x: m.argmin(x, axis=0),
    "nanmax": lambda m, x: m.nanmax(x, axis=1),
    "nanmin": lambda m, x: m.nanmin(x, axis=1),
    "nanargmax": lambda m, x: m.nanargmax(x, axis=1),
    "nanargmin": lambda m, x: m.nanargmin(x, axis=1),
    "cummax": lambda m, x: np.maximum.accumulate(x, 1) if m is np else lax.cummax(x, 1),
    "cummin": lambda m, x: np.minimum.accumulate(x, 0) if m is np else lax.cummin(x, 0, reverse=False),
    "maximum.reduce": lambda m, x: m.maximum.reduce(x, axis=1),
    "sort": lambda m, x: m.sort(x, axis=1),
    "descending": lambda m, x: np.sort(x, 1)[:, ::-1] if m is np else lax.rev(jnp.sort(x, axis=1), (1,)),
    "argsort": lambda m, x: m.argsort(x, axis=1, **({"kind": "stable"} if m is np else {})),
    "partition": lambda m, x: m.partition(x, 2, axis=1)[:, 2],
    "lexsort": lambda m, x: m.lexsort((x[0], x[1])),
    "any": lambda m, x: m.any(x, axis=1),
    "all": lambda m, x: m.all(x, axis=1),
    "count_nonzero": lambda m, x: m.count_nonzero(x, axis=1),
    "top_k": lambda m, x: np.sort(x, 1)[:, ::-1][:, :3] if m is np else lax.top_k(x, 3)[0],
    "top_k positions": lambda m, x: np.argsort(-1.0 * x, 1, kind="stable")[:, :3] if m is np else lax.top_k(x, 3)[1],
    "segment_max": lambda m, x: x[:2].max(0) if m is np else phlox.ops.segment_max(x, np.array([0, 0, 1]), 2)[0],
    "segment_min": lambda m, x: x[:2].min(0) if m is np else phlox.ops.segment_min(x, np.array([0, 0, 1]), 2)[0],
    "windows": lambda m, x: (
        x.reshape(3, 35, 2).max(2) if m is np else lax.reduce_window(x, least(x.dtype), lax.max, (1, 2), (1, 2))
    ),
}
#: functions whose results are rounded
ROUNDING = {
    "mean": lambda m, x: m.mean(x, axis=1),
    "median": lambda m, x: m.median(x, axis=1),
    "nanmedian": lambda m, x: m.nanmedian(x, axis=1),
    "quantile": lambda m, x: m.quantile(x, 0.3, axis=1),
    "percentile": lambda m, x: m.percentile(x, 62.5, axis=1),
    "nanquantile": lambda m, x: m.nanquantile(x, 0.5, axis=1),
}


def least(dtype):
    """The least element of a dtype; minus infinity is neutral for all floats, also for those that do not hold it."""
    if dtype.kind == "b":
        return False
    return -np.inf if jnp.issubdtype(dtype, np.floating) else np.asarray(int(ml_dtypes.iinfo(dtype).min)).astype(dtype)


def drawn(name, has_nan=False):
    """Numbers of a dtype: below zero where it has a sign, and distinct enough for an order."""
    random = np.random.default_rng(SHAPE)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if name == "bool":
        return random.random(SHAPE) < 0.5
    if name not in FLOATS:
        info = ml_dtypes.iinfo(dtype)
        lowest, highest = max(int(info.min), -(2**40)), min(int(info.max), 2**40)
        return random.integers(lowest, highest + 1, SHAPE).astype(dtype)
    x = random.uniform(-6, -1, SHAPE)
    x = (2.0 ** np.round(x) if name == "float8_e8m0fnu" else x).astype(dtype)
    if has_nan:
        x[:, 5], x[0, 9], x[2] = x[1, 0], np.nan, x[1]
    return x


@pytest.mark.parametrize("name", DTYPES)
def test_every_reduction_of_every_dtype(name):
    with phlox.enable_x64(True):
        for has_nan in (False, True)[: 1 + (name in FLOATS and name != "float4_e2m1fn")]:
            x = drawn(name, has_nan)
            exact = x if name == "bool" else x.astype(np.float64)
            rounding = {} if name == "bool" else ROUNDING
            functions = {**SELECTING, **rounding}
            if name == "bool":
                functions = {word: f for word, f in functions.items() if "cum" not in word}
            if has_nan:  # NumPy has no top_k, in which nan is first
                functions = {word: f for word, f in functions.items() if "top_k" not in word}
            got = phlox.jit(lambda x, functions=functions: {word: f(jnp, x) for word, f in functions.items()})(x)
            for word, f in functions.items():
                with np.errstate(all="ignore"):
                    expected = np.asarray(f(np, exact)).astype(np.float64)
                found = np.asarray(got[word]).astype(np.float64)
                eps = 0.0
                if word in rounding and name in FLOATS:
                    eps = 1.0 if name == "float8_e8m0fnu" else float(ml_dtypes.finfo(x.dtype).eps)
                np.testing.assert_allclose(
                    found, expected, rtol=max(eps, 1e-6 if word in rounding else 0), err_msg=word
                )


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_initial_values_and_selections(name):
    x = drawn(name)
    exact, mask = x.astype(np.float64), np.arange(SHAPE[1]) % 3 > 0
    for of, outside in (("max", -np.inf), ("min", np.inf)):
        expected = getattr(np, of)(exact, axis=1, where=mask, initial=outside)
        for initial in (outside, np.float32(outside)):
            found = getattr(jnp, of)(x, axis=1, where=mask, initial=initial)
            np.testing.assert_array_equal(np.asarray(found).astype(np.float64), expected)
        found = getattr(jnp, of)(x, axis=1, initial=x[0, 0])
        expected = getattr(np, of)(exact, axis=1, initial=exact[0, 0])
        np.testing.assert_array_equal(np.asarray(found).astype(np.float64), expected)


def test_means_do_not_overflow_on_the_way():
    x = np.full(1000, 3, ml_dtypes.float8_e4m3fn)
    assert (float(jnp.mean(x)), float(jnp.var(x))) == (3, 0)
    assert np.asarray(jnp.cumsum(np.full(4, 2, ml_dtypes.float8_e8m0fnu))).astype(float).tolist() == [2, 4, 8, 8]


#: functions of a library and positive numbers whose squares or sums may be out of the range of a short float
SQUARING = {
    **{f"norm {order}": lambda m, x, order=order: m.linalg.norm(x, order, axis=0) for order in (2, 3, -2)},
    "vector_norm": lambda m, x: m.linalg.vector_norm(x),
    "matrix_norm": lambda m, x: m.linalg.matrix_norm(x.reshape(20, 30)),
    "std": lambda m, x: m.std(x, ddof=1),
    "nanstd": lambda m, x: m.nanstd(x),
    "corrcoef": lambda m, x: m.corrcoef(x[:300], x[300:]),
    "trapezoid": lambda m, x: m.trapezoid(x, dx=0.001),
    "trapezoid of points": lambda m, x: m.trapezoid(x[:2], x[:2] / x[0]),
    "standardize": lambda m, x: (
        (x - x.mean()) / x.std() if m is np else phlox.nn.standardize(x, epsilon=0, algorithm="stable")
    ),
    "sem": lambda m, x: x.std(ddof=1) / 600**0.5 if m is np else phlox.scipy.stats.sem(x),
    "detrend": lambda m, x: x - x.mean() if m is np else phlox.scipy.signal.detrend(x, type="constant"),
    "cumulative_trapezoid": lambda m, x: (
        0.0005 * np.cumsum(x[1:] + x[:-1]) if m is np else phlox.scipy.integrate.cumulative_trapezoid(x, dx=0.001)
    ),
}


@pytest.mark.parametrize("scale", [2.0**-13, 50.0])
def test_squares_and_sums_out_of_the_range_of_float16(scale):
    """The numbers themselves, and the results, are in the range."""
    x = (scale * (1 + np.random.default_rng(0).random(600))).astype(np.float16)
    for word, f in SQUARING.items():
        result = f(jnp, jnp.asarray(x))
        expected = f(np, x.astype(np.float64))
        assert result.dtype == x.dtype, word
        np.testing.assert_allclose(np.float64(result), expected, 1e-2, 1e-3 * np.abs(expected).max(), err_msg=word)
    x = (500 * (1 + np.random.default_rng(0).random(600))).astype(np.float16)
    weights = np.float16(scale) * x
    for options in ({}, {"aweights": weights}):
        np.testing.assert_allclose(float(jnp.cov(x, **options)), np.cov(x.astype(float), **options), 1e-2)


def test_counts_do_not_stop_where_short_floats_have_no_odd_numbers():
    """Ones added one by one stop at 256 in bfloat16 and at 2,048 in float16, as in jax."""
    ones, zeros = np.ones(5000), np.zeros(5000, int)
    for dtype in ("float16", "bfloat16"):
        x = jnp.asarray(ones, dtype)
        exact = jnp.asarray(5000, dtype)
        assert jnp.histogram(x, bins=1)[0].tolist() == [exact]
        assert jnp.histogram(x, bins=1, weights=x, range=(0, 2), density=True)[0].tolist() == [0.5]
        assert jnp.bincount(zeros, weights=x).tolist() == [exact]
        assert phlox.ops.segment_sum(x, zeros).tolist() == [exact]
        assert phlox.ops.segment_sum(x, zeros).dtype == x.dtype


def test_norms_of_integers_whose_squares_wrap_around():
    x = np.array([100, 27, -101], np.int8)
    assert float(jnp.linalg.vector_norm(x)) == pytest.approx(np.linalg.norm(x.astype(float)))
    assert float(jnp.linalg.vector_norm(x, ord=3)) == pytest.approx(np.linalg.norm(x.astype(float), 3))
    assert jnp.linalg.vector_norm(np.array([np.inf, np.inf]), ord=-2) == np.inf
