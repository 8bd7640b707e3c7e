"""phlox.numpy, the functions beyond the core: parts of numbers, angles, bits, grids, windows, editing, polynomials."""

import dataclasses

import numpy as np

import judge
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
    values,
    wide,
)


@dataclasses.dataclass(frozen=True)
class F:
    """A function as an argument, written as text, which is its name in the list of tests."""

    text: str

    def __call__(self, *args, **kwargs):
        return eval(f"lambda {self.text}")(*args, **kwargs)

    def __repr__(self):
        return f"F({self.text})"


NUMBERS = [
    *rows("numpy", "copysign heaviside logaddexp2", call(A(2, 3), A(3)), call(A(), A(2, dtype="other")),
        call(A(3), S(2)), call(S(-1.5), S(0.5))),
    *rows("numpy", "copysign heaviside logaddexp2", call(Special(), Special()), grad=False),
    *rows("numpy", "fmax fmin", call(A(2, 3), A(3)), call(A(2), A(2, dtype="other")), call(Special(), A()),
        call(x2=Special(), x1=A()), call(S(2), S(2.5)), call(A(3), S(1))),
    row("numpy.spacing", call(A(2, 3)), call(Special()), call(S(2)), grad=False),
    row("numpy.ldexp", call(A(2, 3), I(3)), call(A(), I(2, low=-20, high=20)), call(A(2), A(2, dtype="other")),
        call(A(4), np.array([1, 2, 3, 0], "uint8")), call(S(0.75), S(4)), call(A(3), np.int8(-3)), grad=False),
    row("numpy.frexp", call(A(2, 3)), call(A(4, low=-1e6, high=1e6)), call(Special()), call(S(3)), call(S(0.3))),
    row("numpy.modf", call(A(2, 3)), call(S(2.5)), call(A(3), None)),
    row("numpy.modf", call(Special()), grad=False),
    *rows("numpy", "isneginf isposinf iscomplex isreal", call(A(2, 3)), call(Special()), call(S(1)), call(S(2.0)),
        call(S(1j)), grad=False),
]  # fmt: skip

ANGLES = [
    *rows("numpy", "degrees rad2deg radians deg2rad sinc", call(A(2, 3)), call(S(2)), call(S(0.5)),
        call(np.zeros(2, "float32"))),
    *rows("numpy", "degrees rad2deg radians deg2rad sinc", call(Special()), grad=False),
    row("numpy.angle", call(A(2, 3)), call(A(3), deg=True), call(Special()), call(S(1)), call(S(-1.0)), call(S(1j))),
    row("numpy.unwrap", call(A(9, high=20.0)), call(A(3, 5, high=9.0), axis=0), call(A(6, high=30.0), period=6),
        call(A(6, high=30.0), 5.0, period=4.0), call(A(6, dtype="int32", high=30), period=6), call(A())),
]  # fmt: skip

BITS = [
    *rows("numpy", "gcd lcm", call(A(2, 3, low=-40, high=40), A(3, low=-40, high=40)), call(S(12), S(18)),
        call(I(4, low=-9, high=9), A(4, dtype="other")), call(np.zeros(2, int), I(2)), call(x1=I(), x2=I())),
    row("numpy.bitwise_count", call(A(2, 3, low=-100, high=100)), call(Special()), call(S(-7)), call(S(True))),
    row("numpy.divmod", call(A(2, 3), A(3)), call(A(3), A(3, dtype="other")), call(Special(), A()), call(S(7), S(-2)),
        call(S(7.5), S(2))),
    row("numpy.packbits", call(A(2, 11, whole=True)), call(A(2, 11, whole=True), axis=1), call(B(9, 2), 0, "little"),
        call(B(3), bitorder="middle"), call(B()), call(B(2, 8), axis=-1)),
    row("numpy.unpackbits", call(A(2, 3, dtype="uint8", low=0, high=255)), call(A(4)),
        call(A(2, 3, dtype="uint8", low=0, high=255), 1, 5), call(A(2, 3, dtype="uint8", low=0, high=255), axis=0,
        bitorder="little"), call(A(2, dtype="uint8"), count=-3), call(A(2, dtype="uint8"), count=20),
        call(A(2, dtype="uint8"), bitorder="middle")),
]  # fmt: skip

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
        call(A(2, low=1), A(2, low=1), num=3, axis=-1), call(1, 256, 9, dtype="float32"), dtypes=judge.FLOATS,
        tolerance=1e-4),
]  # fmt: skip

WINDOWS = [
    *rows("numpy", "bartlett blackman hamming hanning", call(5), call(8), call(1), call(0), call(M=2)),
    row("numpy.kaiser", call(5, 2.0), call(8, S(14.0)), call(1, 1.0), call(0, 3)),
    # In 16 bits jax rounds between the exponential and the Bessel function, and is one bit off.
    row("numpy.kaiser", call(M=4, beta=A(low=0)), dtypes=[d for d in judge.ALL if not d.endswith("float16")]),
    row("numpy.i0", call(A(2, 3)), call(A(4, low=-20, high=20)), call(np.array([50.0, 80.0], "float32")), call(S(2)),
        call(S(1.5)), dtypes=["int8", "uint16", "int32", "float32", "complex64"], tolerance=1e-4),
]  # fmt: skip

STACKS = [
    row("numpy.atleast_3d", call(A()), call(A(2), A(2, 3)), call(A(2, 3, 4)), call(S(2)), call()),
    row("numpy.dstack", call([A(2), A(2)]), call([A(2, 3), A(2, 3, 2)]), call([A(), A()]), call(A(2, 3)), call([]),
        call([A(2), A(2)], dtype="float16")),
    row("numpy.column_stack", call([A(2), A(2, 3)]), call([A(2), A(2)]), call([A(), S(1)]), call([])),
    row("numpy.block", call([[A(2, 2), A(2, 1)], [A(1, 3)]]), call(A(2)), call([A(2), A(3)]), call([A(), A(1)]),
        call([[A(2), A()]]), call([A(2), [A(2)]]), call([]), call((A(2),)), call([[A(2, 2)], [A(3, 2, dtype="other")]])),
    row("numpy.vsplit", call(A(4, 2), 2), call(A(5, 2), [2, 3]), call(A(5, 2), 2)),
    row("numpy.hsplit", call(A(2, 4), 2), call(A(4), 2), call(A(2, 5), [1])),
    row("numpy.dsplit", call(A(2, 1, 4), 2), call(A(1, 1, 3), (1,))),
    row("numpy.unstack", call(A(2, 3)), call(A(2, 3), axis=-1), call(A()), call(A(0, 2))),
    *rows("numpy", "fliplr flipud", call(A(2, 3)), call(A(2, 3, 2))),
    row("numpy.flipud", call(A(3))),
    row("numpy.rot90", call(A(2, 3)), *[call(A(2, 3), k) for k in (0, 2, 3, -1)], call(A(2, 3, 4), axes=(1, 2)),
        call(A(2, 3, 4), 1, (2, 0)), call(A(3)), call(A(2, 2), 1, (0, 0))),
    row("numpy.rollaxis", call(A(2, 3, 4), 2), call(A(2, 3, 4), 0, 2), call(A(2, 3, 4), axis=1, start=-1),
        call(A(2, 3), 0, 2), call(A(2, 3), 0, 3), call(A(2, 3), 2)),
]  # fmt: skip

PADS = [
    row("numpy.pad", call(A(3), 2), call(A(2, 3), (1, 2)), call(A(2, 3), ((1, 0), (0, 2)), constant_values=2),
        call(A(2, 3), {1: (1, 2)}), call(A(2, 3), 1, constant_values=((1, 2), (3, 4))), call(S(2), ()), call(A(3), -1),
        call(A(2, 3), ((1, 2),), "constant", constant_values=A()), call(A(2), ((1, 2), (3, 4))), call(A(2), 1, "none"),
        call(A(0, 2), 1), call(A(2), 1, "edge", constant_values=3), call(A(2, 3), np.array([[1, 0], [0, 1]]))),
    *[row("numpy.pad", call(A(3), (2, 1), mode), call(A(2, 3), ((1, 0), (2, 1)), mode=mode), call(A(3), 7, mode),
        call(A(1), 2, mode), call(A(0), 1, mode))
        for mode in ("edge", "wrap", "reflect", "symmetric", "maximum", "minimum", "mean", "linear_ramp", "empty")],
    *[row("numpy.pad", call(A(4), (2, 3), mode, reflect_type="odd"), call(A(3), (7, 8), mode, reflect_type="odd"),
        call(A(1), 2, mode, reflect_type="odd"), tolerance=1e-2)
        for mode in ("reflect", "symmetric")],
    row("numpy.pad", *[call(A(2, 5), 2, mode, stat_length=n) for mode in ("maximum", "mean") for n in (2, ((1, 2), (3, 9)))],
        call(A(3), 1, "minimum", stat_length=0), call(A(4), (2, 3), "linear_ramp", end_values=(5, 4)),
        call(A(2, 2), (2, 3), "linear_ramp", end_values=((5, 4), (1, 2)))),
    row("numpy.pad", call(A(2, 3), (1, 2), F("v, pair, axis, kwargs: v.at[:pair[0]].set(7).at[-pair[1]:].set(8)"))),
]  # fmt: skip

APPLIED = [
    row("numpy.apply_along_axis", call(F("v: v[::-1] * 2"), 1, A(2, 3, 4)), call(F("v: v[0]"), 0, A(3, 2)),
        call(F("v, k: v[:, None] * k"), -1, A(2, 3), 2), call(F("v: v"), 2, A(2, 2))),
    row("numpy.apply_over_axes", call(F("x, axis: x.max(axis)"), A(2, 3, 4), (0, 2)),
        call(F("x, axis: x.max(axis, keepdims=True)"), A(2, 3), [-1]), call(F("x, axis: x.max()"), A(2, 3, 2), [0])),
    row("numpy.fromfunction", call(F("i, j: i * 2 + j"), (2, 3)), call(F("i: i"), (4,), dtype=int), call(F("i: i"), (3,), dtype="float16")),
    row("numpy.piecewise", call(A(4), [B(4), B(4)], [F("v: v * 2"), 5]), call(A(2, 3), [B(2, 3)], [1, F("v: v + v")]),
        call(A(3), [B(3)], [1, 2, 3]), call(A(3), [B(3)], [F("v, k, m: v * k + m")], 2, m=1),
        call(A(3), [np.array([True, False, True])], [F("v: v")])),
    row("numpy.select", call([B(3), B(3)], [A(3), A(3)]), call([B(2, 3), B(3)], [A(3), A(2, 1, dtype="other")], 7),
        call([B(3)], [A(3), A(3)]), call([], []), call([B()], [S(2)], default=A())),
    row("numpy.choose", call(I(3, low=0, high=1), [A(3), A(3)], mode="clip"),
        call(I(3, low=-4, high=4), [A(3), A(2, 1), A()], mode="wrap"), call(A(2), [A(2), A(2)], mode="clip"),
        call(I(2, low=0, high=1), [A(2), A(2)], mode="no")),
    row("numpy.choose", call(np.array([0, 1]), [A(2), A(2)]), call(np.array([0, 2]), [A(2), A(2)]), grad=False),
]  # fmt: skip

PRODUCTS = [
    row("numpy.vecdot", call(A(2, 3), A(3)), call(A(2, 3), A(2, 1), axis=0), call(A(3), A(2)), call(A(), A(3)),
        call(A(2), A(2, dtype="other")), call(A(2), A(2), preferred_element_type="float32")),
    row("numpy.matvec", call(A(2, 3), A(3)), call(A(2, 2, 3), A(2, 3)), call(A(2, 3), A(2)), call(A(2), A(2))),
    row("numpy.vecmat", call(A(3), A(3, 2)), call(A(2, 3), A(2, 3, 1)), call(A(2), A(3, 2)), call(A(2), A(2))),
    row("numpy.cross", call(A(3), A(3)), call(A(2, 3), A(3)), call(A(2), A(2)), call(A(2), A(3)), call(A(4, 3), A(4, 2)),
        call(A(3, 2), A(3, 2), axis=0), call(A(3, 2), A(2, 3), axisa=0, axisc=0), call(A(4), A(4)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.kron", call(A(2), A(3)), call(A(2, 2), A(1, 3)), call(A(2), A(2, 2)), call(A(), A(2, dtype="other"))),
]  # fmt: skip

EDITS = [
    row("numpy.append", call(A(2), A(2, 2)), call(A(2, 3), A(1, 3), 0), call(A(2), S(1)), call(A(2, 3), A(3), axis=0)),
    row("numpy.resize", call(A(3), 5), call(A(2, 3), (2, 2)), call(A(2), (3, 3)), call(A(0), 2), call(A(2), (0,)),
        call(A(2), -1)),
    row("numpy.delete", call(A(4), 1), call(A(3, 2), -1, axis=0), call(A(2, 3), 4), call(A(5), slice(None, None, 2)),
        call(A(5), np.array([1, 1, -1])), call(A(3), np.array([True, False, True])), call(A(3), 5),
        call(A(2, 4), np.array([1, 3]), 1, assume_unique_indices=True), call(A(3), np.array([True])),
        call(A(3), np.array([1.0]))),
    row("numpy.delete", call(A(5), np.array([-1, 0, 2]), assume_unique_indices=True)),
    row("numpy.insert", call(A(3), 1, A()), call(A(3), np.array([2, 0]), A(2)), call(A(2, 3), 1, A(3), axis=0),
        call(A(2, 3), [1], A(2, 1), 1), call(A(2, 3), np.array([0, 3]), A(), axis=-1), call(A(3), -1, A(2)),
        call(A(4), slice(0, 4, 2), A(2)), call(A(3), np.array([1.5]), A()), call(A(3), np.array([0, 0]), A(2)),
        call(A(2, 2), I(2, low=-3, high=3), A(2, 2, dtype="other"), 0), call(A(2), np.zeros((1, 1), int), A())),
    row("numpy.trim_zeros", call(np.array([0, 1, 0, 2, 0])), call(np.array([0.0, 1.0, 0.0]), "f"),
        call(np.array([0.0, 1.0, 0.0]), trim="B"), call(np.zeros(3)), call(np.array([[0, 0], [0, 1]])),
        call(np.array([[0, 0], [0, 1]]), axis=0)),
]  # fmt: skip

SAMPLES = [
    row("numpy.diff", call(A(4)), call(A(2, 5), 2, 0), call(A(2, 3), n=2), call(A(3), prepend=A(), append=A(2)),
        call(A(2, 3), axis=0, append=A(1, 3)), call(A()), call(A(3), -1), call(A(3), 0), call(A(2), 3), call(A(0))),
    row("numpy.ediff1d", call(A(4)), call(A(2, 2), to_begin=A(2)), call(A(3), A(), A(2, 2)), call(A(1)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.trapezoid", call(A(4)), call(A(2, 3), axis=0), call(A(3), A(3)), call(A(2, 3), A(3), axis=1),
        call(A(3), dx=A()), call(A(2, 3), A(2, 3)), call(A(4), None, S(2)), call(A(4), dx=A(3))),
    row("numpy.gradient", call(A(4)), call(A(3, 3)), call(A(4), S(2.0)), call(A(2, 3), A(low=1), A(low=1)),
        call(A(2, 4), np.array([0.0, 1.0, 3.0, 4.0], "float32"), axis=1), call(A(3, 2), axis=(0,)), call(A(1)),
        call(A(3), edge_order=2), call(A(3, 3), 1.0, 2.0, 3.0), call(A(3), np.arange(2.0))),
    row("numpy.interp", *[call(A(5, low=-1, high=4), np.array([0.0, 1.0, 3.0], "float32"), A(3, dtype="float32"), **options)
        for options in ({}, {"left": 7.0, "right": S(8.0)}, {"left": "extrapolate", "right": "extrapolate"},
        {"period": 2.5}, {"left": "no"})], call(S(0.5), np.arange(3), np.arange(3)), call(A(), A(2), A(3)),
        dtypes=["int8", "uint8", "int32", "bfloat16", "float32", "complex64"]),
]  # fmt: skip

POLYNOMIALS = [
    row("numpy.polyval", call(A(3), A(2)), call(A(3), S(2)), call(A(3, 2), A(2)), call(A(3), A(2, dtype="other")),
        call(A(0), A(2)), call(A(2), A(2), unroll=1)),
    *rows("numpy", "polyadd polysub", call(A(3), A(2)), call(A(2), A(2, dtype="other")), call(A(1), A(3)),
        dtypes=[d for d in judge.ALL if d != "bool"]),
    row("numpy.polymul", call(A(3), A(2)), call(A(2), A(2, dtype="other")), call(A(0), A(2)),
        call(np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0]), trim_leading_zeros=True), jit=False),
    row("numpy.polydiv", call(A(4), A(2, low=1)), call(A(2), A(3, low=1)), call(A(3), A(1, low=1)), tolerance=1e-2),
    row("numpy.polyder", call(A(4)), call(A(4), 2), call(A(3), m=0), call(A(3), -1), call(A(2), 3)),
    row("numpy.polyint", call(A(3)), call(A(3), 2), call(A(3), m=0), call(A(3), -1), call(A(2), 2, A(2)),
        call(A(2), 3, S(1)), call(A(2), 2, A(3))),
    row("numpy.poly", call(A(3)), call(A(1)), call(A()), call(A(0)), call(A(2, 3)), tolerance=3e-2),
]  # fmt: skip

TABLE = [
    *NUMBERS,
    *ANGLES,
    *BITS,
    *MATRICES,
    *GRIDS,
    *WINDOWS,
    *STACKS,
    *PADS,
    *APPLIED,
    *PRODUCTS,
    *EDITS,
    *SAMPLES,
    *POLYNOMIALS,
]

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)
