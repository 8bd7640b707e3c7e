"""What numpy has beside its array functions: grids and joins by brackets, histograms of points, roots, files, kinds."""

import io

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, agree, call, outcome, row, values

TABLE = [
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
    row(
        "numpy.unravel_index",
        call(A(5, low=0, high=30), (2, 3, 4)),
        call(A(2, 3, low=-40, high=40), (4, 5)),
        call(A(5, low=0, high=9), 7),
        dtypes=["int32", "int8"],
    ),
]
test_values = values(TABLE)


def both(case, *args, what="", **options):
    agree(outcome(case, phlox, args), outcome(case, jax, args), row("numpy"), what, **options)


JOINS = {
    "numbers": lambda n, x: n.r_[1, 2.5, 3],
    "a slice": lambda n, x: n.r_[:4, 0, 1:10:3],
    "steps": lambda n, x: n.r_[-1:1:5j],
    "arrays": lambda n, x: n.r_[x, 0, x],
    "along axis 1": lambda n, x: n.r_["1", x[None], x[None]],
    "rank 2": lambda n, x: n.r_["0,2", x, x],
    "rank 2, in front": lambda n, x: n.r_["0,2,0", x, x],
    "rank 3": lambda n, x: n.r_["1,3,1", x, x],
    "columns": lambda n, x: n.c_[x, x, x],
    "columns of numbers": lambda n, x: n.c_[1:4, x],
    "columns of matrices": lambda n, x: n.c_[x[None], x[None], 0],
    "a wrong directive": lambda n, x: n.r_["up", x],
    "a late directive": lambda n, x: n.r_[x, "0"],
    "s_": lambda n, x: n.asarray(x)[n.s_[1:]],
    "index_exp": lambda n, x: n.asarray(x)[n.index_exp[::-1]],
}


@pytest.mark.parametrize("name", JOINS)
def test_what_is_indexed(name):
    both(lambda m, x: JOINS[name](m.numpy, x), np.array([1.0, 2.0, 3.0], np.float32))


def test_matrices_are_refused():
    with pytest.raises(NotImplementedError, match="matrices"):
        phlox.numpy.r_["r", 1, 2]


def test_mask_indices():
    both(lambda m: m.numpy.mask_indices(4, m.numpy.triu))
    both(lambda m: m.numpy.mask_indices(4, m.numpy.tril, 1))
    both(lambda m: m.jit(lambda: m.numpy.mask_indices(4, m.numpy.triu, size=12))())


@pytest.mark.parametrize(
    "p", [[1.0, -3.0, 2.0], [0.0, 0.0, 2.0, 1.0, 5.0], [1, 0, 0], [3.0], [0.0, 0.0], [], [2j, 1, 1]], ids=str
)
def test_roots(p):
    """As sets: the order of eigenvalues is no promise."""
    p = np.array(p, np.complex64 if any(isinstance(x, complex) for x in p) else np.float32)
    for strip in (True, False):
        mine, theirs = (np.asarray(m.numpy.roots(p, strip_zeros=strip)) for m in (phlox, jax))
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert (np.isnan(mine) == np.isnan(theirs)).all()
        known = [np.sort_complex(np.round(x[~np.isnan(x)], 4)) for x in (mine, theirs)]
        np.testing.assert_allclose(*known, atol=2e-4)
    both(lambda m, p: m.numpy.roots(p[None]), p)
    staged = phlox.jit(lambda p: phlox.numpy.roots(p, strip_zeros=False))(p)
    np.testing.assert_array_equal(np.isnan(staged), np.isnan(mine))


KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


@pytest.mark.parametrize("kind", [*KINDS, "float32", ("bool", np.int8), np.float16, "thing", 3])
def test_isdtype(kind):
    for dtype in ("bool", "int8", "uint32", "float16", ml_dtypes.bfloat16, "complex64", ml_dtypes.float8_e5m2):
        both(lambda m, d=dtype: m.numpy.isdtype(d, kind))


def test_names_of_types():
    for name in [
        "bool",
        "csingle",
        "cdouble",
        "int_",
        "uint",
        "float_",
        "complex_",
        "int2",
        "uint2",
        "float4_e2m1fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ]:
        assert np.dtype(getattr(phlox.numpy, name)) == np.dtype(getattr(jax.numpy, name)), name
        both(lambda m, n=name: getattr(m.numpy, n)(1), what=name)
    for name in ["array_repr", "array_str", "iterable", "get_printoptions", "set_printoptions", "printoptions"]:
        assert callable(getattr(phlox.numpy, name))
    assert phlox.numpy.array_str(phlox.numpy.arange(2)) == jax.numpy.array_str(jax.numpy.arange(2))
    assert phlox.numpy.iterable(phlox.numpy.arange(2))
    assert phlox.numpy.ComplexWarning is jax.numpy.ComplexWarning


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16"])
def test_files(dtype):
    x = judge.array(judge.rng("files", dtype), (2, 3), dtype)

    def there_and_back(m, x):
        file = io.BytesIO()
        m.numpy.save(file, m.numpy.asarray(x))
        file.seek(0)
        return m.numpy.load(file)

    both(there_and_back, x)
    file = io.BytesIO()
    phlox.numpy.savez(file, a=phlox.numpy.asarray(x))
    file.seek(0)
    assert list(phlox.numpy.load(file)) == ["a"]


def test_bytes_and_text():
    both(lambda m: m.numpy.frombuffer(bytes(range(16)), "float32", 2, 4))
    both(lambda m: m.numpy.frombuffer(bytes(range(16)), "int64"))
    both(lambda m: m.numpy.fromstring("1 2 3", "int32", sep=" "))
    both(lambda m: m.numpy.fromstring("1,2.5", sep=","))
    both(lambda m: m.numpy.fromfile("x"))
    both(lambda m: m.numpy.fromiter([1], int))


OUT = {
    "arange": lambda f, where: f(8, out_sharding=where),
    "bincount": lambda f, where: f(np.array([1, 2, 7]), length=8, out_sharding=where),
    "broadcast_to": lambda f, where: f(np.float32(1), (8,), out_sharding=where),
    "percentile": lambda f, where: f(np.ones((5, 8), np.float32), 50.0, 0, out_sharding=where),
    "ravel": lambda f, where: f(np.ones((2, 4)), out_sharding=where),
    "repeat": lambda f, where: f(np.ones(4), 2, out_sharding=where),
    "reshape": lambda f, where: f(np.ones((2, 4)), (8,), out_sharding=where),
}


@pytest.mark.parametrize("name", OUT)
def test_out_sharding(name):
    f = getattr(phlox.numpy, name)
    expected = np.asarray(OUT[name](f, None))
    with phlox.set_mesh(phlox.make_mesh((8,), ("a",))):
        got = OUT[name](f, phlox.P("a"))
        assert got.sharding.spec == phlox.P("a")
        np.testing.assert_array_equal(got, expected)
        with pytest.raises((ValueError, TypeError)):
            OUT[name](f, "a")
