"""The memory of compiled functions of vectors: it grows as the vectors do, not as the product of their lengths."""

from __future__ import annotations

import os

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax, ops, random
from phlox.scipy import interpolate, ndimage, signal, stats

N = 2048
KEY = phlox.eval_shape(lambda: random.key(0))


def spec(*shape, dtype="float32"):
    return lambda n: phlox.ShapeDtypeStruct(tuple(size(n) if callable(size) else size for size in shape), dtype)


whole = lambda n: n
X = spec(whole)
INDICES = spec(whole, dtype="int32")
MASK = spec(whole, dtype="bool")
ROWS = spec(whole, 4)
COLUMNS = spec(4, whole)
key = lambda n: KEY


def sized(name):
    return lambda *args: getattr(jnp, name)(*args, size=args[0].shape[0])


FUNCTIONS = {
    **{
        f"numpy.{name}": (getattr(jnp, name), X)
        for name in [
            "sort",
            "argsort",
            "cumsum",
            "cumprod",
            "median",
            "nanmedian",
            "diff",
            "ptp",
            "unwrap",
            "gradient",
            "var",
            "cov",
        ]
    },
    "numpy.cov rows": (jnp.cov, COLUMNS),
    "numpy.quantile": (jnp.quantile, X, X),
    "numpy.nanquantile": (jnp.nanquantile, X, X),
    "numpy.searchsorted": (jnp.searchsorted, X, X),
    "numpy.searchsorted sort": (lambda a, v: jnp.searchsorted(a, v, method="sort"), X, X),
    "numpy.digitize": (jnp.digitize, X, X),
    "numpy.isin": (jnp.isin, X, X),
    "numpy.isin of integers": (jnp.isin, INDICES, INDICES),
    **{f"numpy.{name}": (sized(name), X, X) for name in ["intersect1d", "setdiff1d", "setxor1d", "union1d"]},
    **{f"numpy.{name}": (sized(name), X) for name in ["unique", "unique_all"]},
    "numpy.unique rows": (lambda a: jnp.unique(a, axis=0, size=a.shape[0], return_inverse=True), ROWS),
    "numpy.bincount": (lambda a: jnp.bincount(a, length=a.shape[0]), INDICES),
    "numpy.histogram": (jnp.histogram, X, X),
    "numpy.histogram many bins": (lambda a: jnp.histogram(a, a.shape[0]), X),
    "numpy.interp": (jnp.interp, X, X, X),
    "numpy.nonzero": (sized("nonzero"), MASK),
    "numpy.repeat": (lambda a, r: jnp.repeat(a, r, total_repeat_length=a.shape[0]), X, INDICES),
    "numpy.delete": (
        lambda a, i: jnp.delete(a, i, assume_unique_indices=True),
        X,
        spec(lambda n: n // 2, dtype="int32"),
    ),
    "numpy.insert": (jnp.insert, X, INDICES, X),
    "numpy.convolve": (jnp.convolve, X, spec(7)),
    "numpy.convolve equal lengths": (jnp.convolve, X, X),
    "numpy.polyval": (jnp.polyval, X, X),
    "numpy.partition": (lambda a: jnp.partition(a, a.shape[0] // 2), X),
    "numpy.take": (jnp.take, X, INDICES),
    "numpy.at add": (lambda a, i, v: a.at[i].add(v), X, INDICES, X),
    "numpy.lexsort": (lambda a, b: jnp.lexsort((a, b)), X, X),
    "numpy.linalg.svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), ROWS),
    "numpy.linalg.lstsq": (jnp.linalg.lstsq, ROWS, X),
    "numpy.linalg.norm nuc": (lambda a: jnp.linalg.norm(a, "nuc"), ROWS),
    "gradient of pinv": (phlox.grad(lambda a: jnp.linalg.pinv(a).sum()), ROWS),
    "gradient of nuc": (phlox.grad(lambda a: jnp.linalg.norm(a, "nuc")), ROWS),
    "gradient of svd": (phlox.grad(lambda a: jnp.linalg.svd(a, full_matrices=False)[0].sum()), ROWS),
    "gradient of cumprod": (phlox.grad(lambda a: jnp.cumprod(a).sum()), X),
    "gradient of sort": (phlox.grad(lambda a: jnp.sort(a)[0]), X),
    "gradient of interp": (phlox.grad(lambda *args: jnp.interp(*args).sum(), (0, 1, 2)), X, X, X),
    "random.permutation": (random.permutation, key, X),
    "random.choice p": (lambda k, p: random.choice(k, p.shape[0], p.shape, p=p), key, X),
    "random.choice p distinct": (
        lambda k, p: random.choice(k, p.shape[0], (p.shape[0] // 2,), replace=False, p=p),
        key,
        X,
    ),
    "random.categorical": (random.categorical, key, X),
    "random.gamma": (random.gamma, key, X),
    "random.binomial": (lambda k, p: random.binomial(k, 10, p), key, X),
    "random.multinomial": (lambda k, p: random.multinomial(k, 10.0, p), key, X),
    "lax.top_k": (lambda a: lax.top_k(a, a.shape[0] // 2), X),
    "lax.cumlogsumexp": (lax.cumlogsumexp, X),
    "lax.associative_scan": (lambda a: lax.associative_scan(jnp.add, a), X),
    "ops.segment_sum": (lambda a, i: ops.segment_sum(a, i, num_segments=a.shape[0]), X, INDICES),
    "ops.segment_prod": (lambda a, i: ops.segment_prod(a, i, num_segments=a.shape[0]), X, INDICES),
    "stats.rankdata": (stats.rankdata, X),
    "stats.mode": (stats.mode, X),
    "signal.convolve": (signal.fftconvolve, X, X),
    "signal.welch": (signal.welch, X),
    "ndimage.map_coordinates": (lambda a, c: ndimage.map_coordinates(a, [c], 1), X, X),
    "interpolate": (lambda g, v, p: interpolate.RegularGridInterpolator((g,), v)(p[:, None]), X, X, X),
}


def memory(fun, specs, n):
    analysis = phlox.jit(fun).lower(*[make(n) for make in specs]).compile().memory_analysis()
    return analysis.temp_size_in_bytes + analysis.output_size_in_bytes


#: which share of the functions runs: each of them compiles two programs, about 0.3 s
SHARE = min(1.0, float(os.environ.get("PHLOX_TEST_CASES", "1")) / 3)
ALWAYS = {"random.choice p", "numpy.isin", "numpy.intersect1d", "numpy.repeat", "numpy.delete"}
SELECTED = [name for i, name in enumerate(FUNCTIONS) if name in ALWAYS or int(i * SHARE) != int((i + 1) * SHARE)]


@pytest.mark.parametrize("name", SELECTED)
def test_memory_is_linear(name):
    fun, *specs = FUNCTIONS[name]
    small, large = memory(fun, specs, N), memory(fun, specs, 4 * N)
    # Sixteen times for a product of lengths; up to 64 KiB are those of libraries.
    assert large <= 6 * small + 2**16, f"{small} bytes for {N} elements, {large} for {4 * N}"


def test_no_element_of_probability_zero_is_drawn():
    p = np.random.default_rng(0).random(30_000).astype(np.float32)
    p[::3] = 0
    drawn = random.choice(random.key(2), len(p), (500_000,), p=p / p.sum())  # jax draws one of them with this key
    assert (p[np.asarray(drawn)] > 0).all()
    with pytest.raises(ValueError, match="only 2 have a probability"):
        random.choice(random.key(0), 4, (3,), replace=False, p=np.array([0.5, 0, 0.5, 0]))
