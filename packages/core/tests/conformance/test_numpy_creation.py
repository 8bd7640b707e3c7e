"""phlox.numpy, functions that make arrays: of numbers, lists, arrays; triangles, diagonals, grids, windows; r_ and c_."""

from decimal import Decimal
from fractions import Fraction

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, B, I, S, batches, both, call, gradients, row, rows, values, wide

WIDE = np.arange(3.0) / 7  # float64, which becomes float32
LONG = np.arange(3)  # int64

LISTS = [
    call([1, 2, 3]),
    call([1.0, 2]),
    call([[1, 2], [3, 4]]),
    call([True, False]),
    call([1 + 2j, 3]),
    call([]),
    call([[], []]),
    call((1, (2,))),
    call([[1, 2], [3]]),
    call(3),
    call(2.5),
    call(True),
    call(1j),
    call(WIDE),
    call(LONG),
    call(np.float64(2.5)),
    call(np.int64(7)),
    call(np.float16(0.1)),
    call(np.bool_(True)),
    call([np.float32(1), 2.0]),
    call([np.int8(1), np.int16(2)]),
    call([A(), S(1.0)]),
    call([A(2), A(2)]),
    call([[A(), 1], [2, 3]]),
    call(A(2, 3)),
    call(A(2), dtype="float32"),
    call(A(2), dtype="int16"),
    call([1, 2], "float32"),
    call([1.5, -2.5], "int32"),
    call(1, dtype="complex64"),
    call(S(2), dtype="float16"),
    call(300, dtype="uint8"),
    call(-1, dtype="uint32"),
    call(2 ** 40),
    call([2 ** 40]),
    call("abc"),
    call(None),
    call([1, None]),
    call(range(3)),
    call(b"ab"),
    call(np.array(["a"])),
    call({"a": 1}),
    call([1, 2], dtype="nonsense"),
    call([1, 2], dtype=float),
    call([0, 1], dtype=bool),
    call("1.5", dtype="float32"),
    call([["1", " 2 "], ["3", "nan"]], dtype=float),
    call(["1", 2.5], dtype="complex64"),
    call(np.array(["1", "20"]), dtype="int32"),
    call(np.array([1, "2"], object), dtype="float32"),
    call([b"1"], dtype="uint8"),
    call(["1.5"], dtype=int),
    call([""], dtype=float),
    call(["1", "2"]),
    call(["1", None], dtype=float),
    call(["300"], dtype="uint8"),
    call(np.ones((2, 3))[:, ::2]),
    call(Fraction(1, 2), dtype="float32"),
    call(Decimal("2.7"), dtype="int32"),
    call([[Fraction(1, 2)], [2]], dtype="float16"),
    call([Decimal("1.5"), None], dtype="float32"),
    call(Fraction(1, 2)),
    call([Decimal("1.5")]),
]  # fmt: skip

FILLED = [
    call(3),
    call((2, 3)),
    call(()),
    call((0, 2)),
    call([2]),
    call((2,), "int8"),
    call((2,), dtype="bfloat16"),
    call(2, bool),
    call((2,), "float64"),
    call(np.int32(2)),
    call(-1),
    call(2.5),
    call((2,), "nonsense"),
    call("ab"),
]  # fmt: skip
LIKE = [
    call(A(2, 3)),
    call(A(2), dtype="float16"),
    call(A(2), shape=(3, 1)),
    call(S(2)),
    call(S(2.5)),
    call(np.arange(2)),
    call(S(2), "float32"),
    call([1, 2]),
]  # fmt: skip
DIAGONAL = [
    call(3),
    call(2, 3),
    call(3, k=1),
    call(3, 4, -1),
    call(2, dtype="int8"),
    call(0),
    call(3, None, 5),
    call(-1),
]  # fmt: skip

ARRAYS = [
    *rows("numpy", "array asarray", *LISTS, jit=False),
    row("numpy.array", call([1, 2], ndmin=3), call(A(2), ndmin=2), call(A(2), copy=False),
        call([1], None, copy=True)),
    row("numpy.copy", call(A(2, 3)), call([1, 2]), call(S(2))),
    row("numpy.astype", call(A(3), "float32"), call(A(3), "int8"), call(A(3), "bool"), call(A(3), "complex64"),
        call(A(3), "bfloat16"), call(A(3), float), call(A(3), dtype=int), call(S(2.5), "int32"),
        call(A(3), "float64")),
    row("numpy.astype", *[call(A(4, low=0, high=100), d) for d in ("uint8", "int16", "uint32", "float16",
        "float8_e4m3fn", "float8_e5m2", "int4", "uint4")]),
    row("numpy.zeros", *FILLED),
    row("numpy.ones", *FILLED),
    row("numpy.empty", *FILLED),
    *rows("numpy", "zeros_like ones_like empty_like", *LIKE),
    row("numpy.full", call(3, 2.5), call((2, 3), A(3)), call(2, A()), call(2, S(1)), call((2,), 1, "float16"),
        call((2,), A(3)), call((), True), call((2,), [1, 2])),
    row("numpy.full_like", call(A(2, 3), 2.5), call(A(2), A(), dtype="float32"), call(A(2), S(1)),
        call(A(2), 1, shape=(3, 2)), call(A(2, 3), A(3)), call(S(1), 2.5)),
    row("numpy.eye", *DIAGONAL),
    row("numpy.tri", *DIAGONAL),
    row("numpy.identity", call(3), call(2, "int32"), call(0)),
    row("numpy.arange", call(5), call(2, 7), call(2, 10, 3), call(5.0), call(0, 1, 0.1), call(1, 0, -0.25),
        call(10, 0, -3), call(0), call(3, 1), call(-1), call(stop=4, start=1), call(5, dtype="float32"),
        call(2, 6, dtype="bfloat16"), call(2.5, 6, dtype="int32"), call(np.int8(4)), call(np.float32(3)),
        call(0, 5, step=2), call(0, 4, 0), call("a"), call(3, dtype="uint8"), call(0, 3, 0.7, "int32"),
        call(2 ** 31 - 2, 2 ** 31 - 1), call(3.0), call(1j), call(True)),
    row("numpy.linspace", call(0, 1), call(0, 1, 5), call(0.0, 2.0, 4, endpoint=False), call(A(), A(), 3),
        call(A(2), A(2), 4), call(A(2, 1), A(3), num=3), call(0, 10, 5, dtype="int32"), call(0, 1, 1), call(0, 1, 0),
        call(-3, 3, 7, retstep=True), call(0, 1, 3, False, True), call(1, 1j, 3), call(0, 5, 6, dtype="float16"),
        call(A(2), A(2), 3, axis=-1), call(0, 1, -1), exact=False),
]  # fmt: skip


NUMBERS = [
    row("numpy." + name, call(2.7), call(A(3, low=0)), call([1, 2]), call(True), grad=False)
    for name in [
        "bool_",
        "int4",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint4",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float16",
        "float32",
        "float64",
        "single",
        "double",
        "complex64",
        "complex128",
    ]
]

MATRICES = [
    *rows("numpy", "tril triu", call(A(3, 3)), call(A(2, 3, 4), 1), call(A(3, 2), k=-1), call(A(3))),
    *rows("numpy", "tril_indices triu_indices", call(3), call(3, 1), call(3, k=-1, m=4), call(2, m=0)),
    *rows("numpy", "tril_indices_from triu_indices_from", call(A(3, 4)), call(A(3, 2), 1), call(A(2, 2, 2)), vmap=False),
    row("numpy.diag_indices", call(3), call(2, 3), call(-1), call(0)),
    row("numpy.diag_indices_from", call(A(3, 3)), call(A(2, 2, 2)), call(A(2, 3)), call(A(2)), vmap=False),
    row("numpy.diagflat", call(A(2, 2)), call(A(3), 1), call(A(2), k=-2), call(A())),
    row("numpy.fill_diagonal", call(A(3, 4), A(), inplace=False), call(A(3, 3), A(2), inplace=False), call(A(3, 3), A()),
        call(A(4, 4), A(2, 2), inplace=False), call(A(2, 2, 2), S(1), inplace=False), call(A(2), S(1), inplace=False),
        call(A(2, 2), S(1), True, inplace=False), call(A(2, 3, 2), S(1), inplace=False)),
    row("numpy.vander", call(A(3)), call(A(3), 2), call(A(3), N=4, increasing=True), call(A(2, 2)), call(A(3), -1),
        call(A(3), 0)),
]  # fmt: skip

GRIDS = [
    row("numpy.meshgrid", call(A(2), A(3)), call(A(2), A(3), A(2), indexing="ij"), call(A(2), A(3), sparse=True),
        call(A(2)), call(), call(A(), A(2, dtype="other")), call(A(2), indexing="ji"), call(A(2, 2), A(2))),
    row("numpy.indices", call((2, 3)), call((2, 3), "float32"), call((2, 3), sparse=True), call([2], dtype="int8"),
        call(())),
    row("numpy.ix_", call(I(2), I(3)), call(B(3), I(2)), call(), call(I(2, 2)),
        call(np.zeros(0), I(1))),
    row("numpy.mgrid.__getitem__", call((slice(0, 3), slice(1, 2))), call(slice(0, 1, 5j)), call(slice(0.0, 2.0, 0.5)),
        call((slice(0, 3), slice(0, 1, 3j))), call((slice(2),)), call((slice(-1, 1, 3j), slice(-1, 1, 2j)))),
    row("numpy.ogrid.__getitem__", call((slice(0, 3), slice(1, 2))), call(slice(0, 1, 5j)), call(slice(0.0, 2.0, 0.5)),
        call((slice(0, 3), slice(0, 1, 3j))), call((slice(2),))),
    row("numpy.logspace", call(0, 2), call(0, 2, 5), call(A(), A(), 3), call(A(2), A(2), num=3, axis=-1),
        call(0, 3, 4, base=2.0, dtype="int32"), call(0.0, 2.0, 4, False), call(0, 2, 3, True, A(low=1)),
        tolerance=1e-4),
    row("numpy.geomspace", call(1, 8), call(1, 8, 4), call(A(low=1), A(low=1), 3), call(-1.0, -8.0, 4, endpoint=False),
        call(A(2, low=1), A(2, low=1), num=3, axis=-1), call(1, 256, 9, dtype="float32"), dtypes=["float32"],
        tolerance=1e-4),
    # In 16 bits jax rounds between the logarithm and the division by that of 10.
    row("numpy.geomspace", call(A(low=1), A(low=1), 3), call(A(2, low=1), A(2, low=1), num=3, axis=-1),
        dtypes=["float16", "bfloat16"]),
]  # fmt: skip

WINDOWS = [
    *rows("numpy", "bartlett blackman hamming hanning", call(5), call(8), call(1), call(0), call(M=2), call(5.0)),
    row("numpy.kaiser", call(5, 2.0), call(8, S(14.0)), call(1, 1.0), call(0, 3), call(4.7, 2.0)),
    # In 16 bits jax rounds between the exponential and the Bessel function, and is one bit off.
    row("numpy.kaiser", call(M=4, beta=A(low=0)), dtypes=[d for d in judge.ALL if not d.endswith("float16")]),
]  # fmt: skip

TABLE = [*ARRAYS, *NUMBERS, *MATRICES, *GRIDS, *WINDOWS]

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


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


@pytest.mark.parametrize("name", ["numpy.zeros_like", "numpy.ones_like", "numpy.empty_like"])
def test_arrays_like_a_weak_type_are_strong(name):
    """The type of a result of `eval_shape` may be weak; arrays made from it are not."""
    make = lambda m: getattr(m.numpy, name.removeprefix("numpy."))(m.eval_shape(lambda: 1.0))
    assert not make(phlox).weak_type
    assert not make(jax).weak_type


def test_vander_without_columns():
    x = np.array([1, 2, 3], np.uint16)
    mine = phlox.numpy.vander(x, 0)
    assert (mine.shape, mine.dtype) == (np.vander(x, 0).shape, np.uint16)
