"""phlox.numpy, statistics, searches, sets and places."""

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import (
    A,
    B,
    I,
    S,
    Special,
    batches,
    call,
    gradients,
    row,
    rows,
    second_derivatives,
    values,
    wide,
)

AXES = [
    call(A(2, 3, 4)),
    call(A(2, 3, 4), axis=1),
    call(A(2, 3, 4), (0, -1)),
    call(A(2, 3, 4), axis=(-1, 0), keepdims=True),
    call(S(2.5)),
    call(S(3)),
    call(A(3), axis=1),
]  # fmt: skip
QUANTILES = [
    call(A(6), 0.3),
    call(A(5), S(0.3)),
    call(A(4, 3), S(0.7), axis=0),
    call(A(2, 3, 4), A(2, low=0, high=1, dtype="float32"), (0, -1)),
    call(A(2, 3, 4), A(3, low=0, high=1, dtype="float32"), axis=1, keepdims=True),
    *[call(A(7), A(4, low=0, high=1, dtype="float32"), method=m)
      for m in ("linear", "lower", "higher", "midpoint", "nearest", "hazen")],
    call(A(3), S(0.5), 0, None, True),
    call(A(2, 3), A(1, 1, low=0, high=1)),
    call(A(0), 0.5),
    call(A(3), 2),
    call(S(2), 0.3),
    call(A(3), 1.5),
    call(Special(), 0.5),
    call(A(5), 0.3, weights=A(5, dtype="float32", low=0)),
]  # fmt: skip
F32 = {"dtype": "float32"}
INVERTED = [
    call(A(7), A(4, low=0, high=1, **F32), method="inverted_cdf"),
    call(A(4), A(1, low=0.5, high=0.5, **F32), method="inverted_cdf"),
    call(A(5), A(2, low=0, high=1, **F32), method="inverted_cdf", weights=A(5, low=0, **F32)),
    call(A(2, 5), A(2, low=0, high=1, **F32), 0, method="inverted_cdf", weights=A(2, low=0.1, **F32)),
]  # fmt: skip
SCANS = [
    call(A(2, 3)),
    call(A(2, 3), 0),
    call(A(4), dtype="float32"),
    call(A(4), 0, "int32"),
    call(A()),
]  # fmt: skip
FOLDS = [
    call(A(5), A(3)),
    call(A(2), A(5), "same"),
    call(A(6), A(4), "same"),
    call(A(3), A(4), "same"),
    call(A(3), A(4), mode="valid"),
    call(A(7), A(4), mode="full"),
    call(A(4), A(2, dtype="other")),
    call(A(4), A(0)),
    call(A(4), A(2, 2)),
    call(A(4), A(2), "middle"),
    call(A(3, dtype="float16"), A(2, dtype="int8"), preferred_element_type="float32"),
    call(A(150, dtype="float32"), A(130, dtype="float32"), "full"),
]  # fmt: skip

STATISTICS = [
    *rows("numpy", "nansum nanprod", *AXES, call(A(3, 4), 0, "float32"), call(A(3, 4), where=B(3, 4), initial=2),
        call(Special())),
    *rows("numpy", "nanmax nanmin", *AXES, call(A(3, 4), where=B(3, 4), initial=0), call(A(0)), call(A(3, 2), initial=1)),
    *rows("numpy", "nanmax nanmin", call(Special()), grad=False),
    *rows("numpy", "nanmean", *AXES, call(A(3, 4), 0, "float16"), call(A(3, 4), where=B(3, 4)), call(Special()),
        twice=True),
    *rows("numpy", "nanvar nanstd", *AXES, call(A(3, 4), ddof=1), call(A(3, 4), where=B(3, 4)),
        call(A(3, 4), 1, "float32"), call(A(3, 4), 0, mean=A(1, 4)), twice=True),
    *rows("numpy", "var std", call(A(3, 4), 0, mean=A(1, 4)), call(A(3), mean=S(1.0)), twice=True),
    *rows("numpy", "nanargmax nanargmin", call(A(2, 3)), call(A(2, 3), axis=-1, keepdims=True), call(Special()),
        call(S(2)), grad=False, dtypes=judge.REAL),
    *rows("numpy", "nancumsum nancumprod", *SCANS, call(Special()), grad=False),
    *rows("numpy", "nancumsum nancumprod", *SCANS),
    *rows("numpy", "cumulative_sum cumulative_prod", *[call(A(2, 3), axis=1, include_initial=i) for i in (True, False)],
        call(A(4)), call(A(4), dtype="float32"), call(A(2, 2)), call(A()), call(A(0), include_initial=True)),
    *rows("numpy", "quantile nanquantile percentile nanpercentile", *QUANTILES),
    *rows("numpy", "median nanmedian", call(A(5)), call(A(3, 4), axis=1), call(A(3, 4), (0, 1), keepdims=True),
        call(S(2)), call(Special()), call(A(0, 2), 0)),
    row("numpy.cov", call(A(2, 5)), call(A(5)), call(A(5), A(5, dtype="other")), call(A(5, 2), rowvar=False),
        call(A(2, 5), bias=True), call(A(2, 5), ddof=2), call(A(2, 5), fweights=I(5, low=1, high=3)),
        call(A(2, 5), aweights=A(5, low=0.5, dtype="float32")),
        call(A(2, 5), None, True, False, 2, I(5, low=1, high=3), A(5, low=0.5, dtype="float32")),
        call(A(2, 5), fweights=A(5, dtype="float32")), call(A(2, 5), aweights=A(4, dtype="float32")),
        call(A(2, 5), dtype="float32"), call(A(2, 2, 2)), call(A(4, 1), rowvar=False), call(S(2))),
    row("numpy.corrcoef", call(A(2, 5)), call(A(5)), call(A(5), A(5)), call(A(5, 2), rowvar=False), call(S(2.0)),
        call(A(2, 5), dtype="float32")),
    *rows("numpy", "convolve correlate", *FOLDS, twice=True),
]  # fmt: skip

# jax gives float32 for narrow floats by this method, and refuses 64 bits: a table of the others.
SHARES = rows("numpy", "quantile nanquantile", *INVERTED, dtypes=["float32", "int32", "uint8", "bool"])

SORTED = [
    call(A(5, low=0, high=0), A(4)),
    call(I(6, low=0, high=0), I(2, 3)),
    call(Special(), Special()),
    call(A(2, 2), A(3)),
    call(A(0), A(3)),
    call(A(4, low=1, high=1), S(1)),
    call(A(4, low=1, high=1), S(1.0), "right"),
    *[call(A(7, low=0, high=0), A(3, whole=True), side, method=m)
      for side in ("left", "right") for m in ("sort", "compare_all", "scan_unrolled", "bisect")],
    call(A(3), A(2), "middle"),
    call(A(3), A(2), sorter=I(3, low=1, high=1)),
]  # fmt: skip
SEARCHES = [
    row("numpy.searchsorted", *SORTED, grad=False),
    row("numpy.digitize", call(A(2, 3), A(4, low=1, high=1)), call(A(4, whole=True), A(3, low=0, high=0), right=True),
        call(A(3), A(0)), call(A(3), A(2, 2)), call(A(3), A(1), method="sort"), grad=False),
    row("numpy.bincount", call(I(6, low=-1, high=4), length=4), call(I(6, low=0, high=4), A(6), length=5),
        call(A(4), length=2), call(I(2, 2), length=3), call(I(3), A(2), length=3),
        dtypes=["int8", "uint16", "float32", "bfloat16", "complex64"]),
    row("numpy.bincount", call(I(6, low=-1, high=4)), call(I(6, low=0, high=4), minlength=7),
        call(I(3, low=0, high=3), A(3)), call(I(0)), call(B(3)), dtypes=["float32", "int16"], jit=False, vmap=False,
        grad=False),
]  # fmt: skip
FOUND = [
    call(A(6, low=-1, high=1, whole=True)),
    call(A(2, 3, low=-1, high=1, whole=True)),
    call(A(0, 2)),
    call(A()),
    call(Special()),
]  # fmt: skip
SIZED = [
    call(A(6, low=-1, high=1, whole=True), size=4),
    call(A(2, 3, low=-1, high=1, whole=True), size=5, fill_value=-1),
    call(A(2, 3, low=-1, high=1, whole=True), size=0),
    call(A(2, 3), size=9, fill_value=(7, 8)),
    call(A(3), size=4, fill_value=(7, 8)),
    call(A(0, 2), size=2),
    call(B(3), size=3, fill_value=7.5),
]  # fmt: skip
PLACES = [
    *rows("numpy", "nonzero flatnonzero argwhere where", *FOUND, jit=False, vmap=False, grad=False),
    *rows("numpy", "nonzero argwhere where", *SIZED, grad=False),
    row("numpy.flatnonzero", call(A(2, 3, low=-1, high=1, whole=True), size=4, fill_value=9), grad=False),
    row("numpy.where", call(A(2), A(2)), call(B(2), A(2), A(2), size=2)),
    row("numpy.compress", call(B(3), A(3, 2), 0), call(B(2), A(3)), call(B(2, 2), A(3)), call(B(3), A(2, 3), axis=-1),
        jit=False, vmap=False, grad=False),
    row("numpy.compress", call(B(3), A(3, 2), 0, size=2), call(B(2), A(3), size=3, fill_value=1),
        call(B(2), A(3), size=4)),
    row("numpy.extract", call(B(2, 3), A(2, 3)), call(A(3, whole=True), A(3)), jit=False, vmap=False, grad=False),
    row("numpy.extract", call(B(2, 3), A(2, 3), size=4), call(B(3), A(3), size=3, fill_value=1)),
    row("numpy.place", call(A(2, 3), B(2, 3), A(2), inplace=False), call(A(3), B(3), A(1)),
        call(A(3), B(2), A(1), inplace=False), call(A(3), B(3), A(0), inplace=False)),
    row("numpy.put", *[call(A(2, 3), I(1, low=i, high=i), A(2), m, inplace=False) for m in (None, "clip", "wrap",
        "raise", "edge") for i in (-9, -2, 4, 9)], call(A(3), I(1), A(1)), call(A(3), I(2, low=0, high=1), S(2), inplace=False), grad=False),
    row("numpy.put_along_axis", call(A(2, 3), I(2, 1), A(2, 1), 1, inplace=False),
        call(A(2, 3), I(1, 3, low=-2, high=1), A(1, 3), 0, inplace=False), call(A(2, 3), I(2, low=3, high=3), S(1), None,
        inplace=False), call(A(2), I(1), A(1), 0), call(A(2, 2), I(1), A(1), 0, inplace=False), grad=False),
    row("numpy.argsort", call(A(4), dtype="int8"), call(A(4), descending=True, dtype="uint8"), grad=False),
    row("numpy.round", call(A(3), 1, None), call(A(3), out=3)),
    row("numpy.take_along_axis", call(A(3), I(4), 0, wrap_negative_indices=False),
        call(A(2, 3), I(2, 2), 1, wrap_negative_indices=True), grad=False),
]  # fmt: skip

ORDERS = [
    row("numpy.lexsort", call([A(6, whole=True, low=0, high=1), A(6, low=0, high=1, whole=True)]),
        call(A(2, 5, low=0, high=1, whole=True)), call([A(2, 3), A(2, 3)], axis=0), call([A(2), A(3)]), call(()),
        call((S(1), S(2))), call([Special()]), grad=False),
    *rows("numpy", "partition argpartition", call(A(6), 2), call(A(3, 4), -2), call(A(3, 4), 1, axis=0), call(A(3), 5),
        call(A(7, whole=True, low=0, high=2), 3), dtypes=["int8", "int32", "uint8", "float32", "bfloat16", "complex64"],
        grad=False),
    row("numpy.partition", call(A(6), 2), call(A(3, 4), 1, axis=0), dtypes=["float32"]),
    row("numpy.sort_complex", call(A(4)), call(A(2, 3)), call(A()), grad=False),
]  # fmt: skip
MANY = A(7, low=0, high=3, whole=True)
SETS = [
    row("numpy.unique", call(MANY), call(MANY, True, True, True), call(A(2, 3, low=0, high=2, whole=True), True, True,
        True), call(A(4, 2, low=0, high=1, whole=True), True, True, True, axis=0), call(A(2, 3, low=0, high=1,
        whole=True), axis=-1, return_inverse=True), call(A(0), True, True, True), call(A(0), size=2), call(S(2), True),
        call(A(0, 2), axis=0), call(A(2), axis=3), call(Special()), jit=False, vmap=False, grad=False),
    row("numpy.unique", call(MANY, True, True, True, size=9), call(MANY, True, True, True, size=2),
        call(MANY, True, True, True, size=6, fill_value=5), call(A(0), size=2, fill_value=3),
        call(A(4, 2, low=0, high=1, whole=True), True, True, True, 0, size=5, fill_value=2),
        call(A(4, 2, low=0, high=1, whole=True), axis=1, size=2), grad=False),
    *rows("numpy", "unique_all unique_counts unique_inverse unique_values", call(A(2, 3, low=0, high=2, whole=True)),
        jit=False, vmap=False, grad=False),
    *rows("numpy", "unique_all unique_counts unique_inverse unique_values", call(MANY, size=6, fill_value=4),
        call(MANY, size=-1),
        grad=False),
    row("numpy.isin", *[call(A(2, 3, whole=True), A(4, dtype="other", whole=True), method=m) for m in ("auto", "sort",
        "binary_search", "compare_all", "guess")], call(A(3), A(0)), call(S(1), A(3), invert=True), grad=False),
    row("numpy.union1d", call(MANY, A(2, 2, dtype="other", whole=True)), jit=False, vmap=False, grad=False),
    row("numpy.union1d", call(MANY, A(3, whole=True), size=9), call(MANY, A(3), size=12, fill_value=7),
        call(MANY, A(3), size=1), grad=False),
]  # fmt: skip
SETOPS = [
    *rows("numpy", "intersect1d setdiff1d setxor1d", call(MANY, A(2, 2, whole=True)), call(A(0), A(2)),
        call(S(1), S(2)), jit=False, vmap=False, grad=False),
    *rows("numpy", "intersect1d setdiff1d setxor1d", call(MANY, A(3, whole=True), size=3, fill_value=7),
        call(MANY, A(3, whole=True, low=0), size=5), grad=False,
        dtypes=["int8", "uint16", "int32", "float32", "bfloat16", "complex64"]),
    row("numpy.intersect1d", call(MANY, A(5, whole=True), return_indices=True, size=4), grad=False),
]  # fmt: skip
HISTOGRAMS = [
    row("numpy.histogram_bin_edges", call(A(6)), call(A(2, 3), 3, (-1, 2)), call(A(4), A(3, low=0, high=0)),
        call(A(3, low=1, high=1), 2), grad=False),
    row("numpy.histogram", call(A(9, dtype="float32", low=-4)), call(A(2, 3, dtype="int32"), 3, (-1.5, 2.5)),
        call(A(9, dtype="float32"), np.array([-2.0, 0.0, 1.0, 2.5], "float32")),
        call(A(9, dtype="float32"), 4, (-2.5, 2.0), A(9, dtype="float32")),
        call(A(9, dtype="float32"), 4, (-2.5, 2.0), density=True), call(A(3), 2, weights=A(2)), grad=False),
    row("numpy.ravel_multi_index", call((I(4, low=0, high=1), I(4, low=0, high=2)), (2, 3)),
        call((I(4, low=0, high=1), I(4, low=0, high=2)), (2, 3), order="F", dtype="int16"), call((S(1), S(5)), (2, 3)),
        jit=False, vmap=False, grad=False),
    row("numpy.ravel_multi_index", *[call((I(4), I(4)), (2, 3), mode=m) for m in ("clip", "wrap", "edge")], grad=False),
]  # fmt: skip
#: Of points in several dimensions: only values are compared.
JOINT = [
    row(
        "numpy.histogramdd",
        call(A(20, 2), 3),
        call(A(20, 3), [2, 3, 4]),
        call(A(20, 2), 3, [(-1, 1), None], A(20)),
        call(A(20, 2), [np.array([-2.0, 0.0, 1.0]), 4], density=True),
        call(A(20, 2), [2, 3, 4]),
        call(A(20, 2), 3, weights=A(19)),
        call(A(20, 2), 3, range=[(0, 1)]),
        dtypes=["float32", "int32"],
        jit=False,
    ),
    row(
        "numpy.histogram2d",
        call(A(20), A(20)),
        call(A(20), A(20), 3, density=True),
        call(A(20), A(20), np.array([-2.0, 0.0, 1.0, 2.0])),
        call(A(20), A(20), [2, 4], [(-1, 1), (0, 2)], A(20)),
        dtypes=["float32", "int32"],
        jit=False,
    ),
]

COMPARED = STATISTICS + SEARCHES + PLACES + ORDERS + SETS + SETOPS + HISTOGRAMS
TABLE = COMPARED + JOINT

test_value = values(TABLE + SHARES)
test_gradient = gradients(COMPARED)
test_second_derivative = second_derivatives(COMPARED)
test_vmap = batches(COMPARED)
test_64_bits = wide(COMPARED)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_places_in_long_arrays_of_16_bits(name, dtype):
    """They are computed in the dtype of the shares: numbers of 16 bits end at 65504, or count in steps of 256 there."""
    x, share = np.random.default_rng(5).normal(size=70_001), 31.37 if "percentile" in name else 0.3137
    mine, theirs = (getattr(m.numpy, name)(m.numpy.asarray(x, dtype), share) for m in (phlox, jax))
    assert mine.dtype == theirs.dtype == dtype
    assert float(mine) == float(theirs)


def test_quantiles_with_weights_along_axes():
    random = np.random.default_rng(6)
    x, w = random.normal(size=(3, 4, 5)).astype("float32"), random.random((5, 3)).astype("float32")
    options = {"axis": (2, 0), "weights": w, "method": "inverted_cdf"}
    np.testing.assert_array_equal(phlox.numpy.quantile(x, 0.3, **options), np.quantile(x, 0.3, **options))


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "median", "nanmax", "nanstd"]
)
def test_axes_in_any_order(name):
    x = np.random.default_rng(0).uniform(1, 2, (3, 2, 2))
    where = {} if name == "median" else {"where": x > 1.2}
    where |= {"initial": 1.0} if name.endswith("max") or name == "min" else {}
    for axis in ((1, 0), (2, 0), (0, -2), (2, 1, 0)):
        for options in ({}, where):
            for keepdims in (False, True):
                both = [getattr(m, name)(x, axis=axis, keepdims=keepdims, **options) for m in (phlox.numpy, np)]
                assert both[0].shape == both[1].shape
                np.testing.assert_allclose(*both, rtol=1e-4)


def test_quantiles_at_infinite_elements():
    """NumPy and jax have nan for the largest and the smallest element."""
    x, q = np.float32([np.inf, 1, -np.inf]), np.float32([0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(phlox.numpy.quantile(x, q), [-np.inf, -np.inf, 1, np.inf, np.inf])
    np.testing.assert_array_equal(phlox.numpy.nanquantile(np.append(x, np.float32(np.nan)), q[::4]), [-np.inf, np.inf])
    assert float(phlox.grad(phlox.numpy.quantile, 1)(np.float32([1, 2, 5]), 0.25)) == 2


def test_means_whose_sums_are_beyond_float16():
    """jax has infinity and nan."""
    x = np.full(2**17, 3, np.float16)
    assert float(phlox.numpy.nanmean(x)) == 3
    assert float(phlox.numpy.average(x, weights=x)) == 3
    assert phlox.numpy.average(x, weights=x).dtype == x.dtype


@pytest.mark.parametrize("name", ["unique", "union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"])
def test_sets_with_several_nan(name):
    """All nan of an array are one value, whichever part of a complex number is nan; it equals none of another array."""
    nan = np.nan
    real = np.float32([nan, 1, nan, 2]), np.float32([2, nan, nan, 5])
    parts = np.complex64([complex(nan, 1), 1 + 2j, complex(0, nan), 0, complex(3, nan), -1j])
    for a, b in (real, (parts, parts[::-1]), (parts, parts[1:2]), (parts[:0], parts[:0]), (real[0], real[0][:0])):
        arrays = (a,) if name == "unique" else (a, b)
        mine, theirs = (getattr(m, name)(*arrays) for m in (phlox.numpy, jax.numpy))
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(getattr(np, name)(*arrays)))
