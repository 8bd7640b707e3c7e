"""phlox.numpy, functions that move elements: shapes, joins, repetitions, diagonals, to the bit; pads, insertions."""

import dataclasses

import numpy as np
import pytest

import phlox
from conformance.harness import A, F, I, S, batches, both, call, gradients, row, rows, values, wide

SHAPES = [
    row("numpy.reshape", call(A(2, 6), (3, 4)), call(A(2, 6), -1), call(A(2, 3, 2), (3, -1)),
        call(A(2, 3), (3, 2), order="F"), call(A(0, 3), (3, 0)), call(A(), (1, 1)),
        call(A(2, 3), (4,)), call(A(2, 3), (-1, -1)), call(S(2), (1,))),
    row("numpy.ravel", call(A(2, 3)), call(A(2, 3, 2), "F"), call(A()), call(S(1.0)), call(A(0, 2))),
    *rows("numpy", "transpose", call(A(2, 3)), call(A(2, 3, 4)), call(A(2, 3, 4), (1, 2, 0)),
        call(A(2, 3), axes=(-1, 0)), call(A()), call(A(3)), call(A(2, 3), (0, 0)), call(A(2, 3), (0,))),
    row("numpy.permute_dims", call(A(2, 3, 4), (2, 0, 1)), call(A(2, 3), axes=(1, 0)), call(A(2, 3), (0,))),
    row("numpy.matrix_transpose", call(A(2, 3)), call(A(2, 3, 4)), call(A(3))),
    row("numpy.swapaxes", call(A(2, 3, 4), 0, -1), call(A(2, 3), axis1=1, axis2=0), call(A(2, 3), 0, 2)),
    row("numpy.moveaxis", call(A(2, 3, 4), 0, -1), call(A(2, 3, 4, 2), (0, 1), (-1, -2)),
        call(A(2, 3), source=1, destination=0), call(A(2, 3), (0,), (0, 1)), call(A(2), 3, 0)),
    row("numpy.expand_dims", call(A(2, 3), 0), call(A(2, 3), -1), call(A(2), (0, 2)), call(A(), axis=0),
        call(A(2), (0, 0)), call(A(2), 3)),
    row("numpy.squeeze", call(A(1, 3, 1)), call(A(1, 3, 1), 0), call(A(1, 3, 1), axis=(0, -1)), call(A(2, 3)),
        call(A(2, 1), 0), call(A(1, 1, 1))),
    row("numpy.broadcast_to", call(A(3), (2, 3)), call(A(2, 1), (4, 2, 3)), call(A(), (2,)), call(A(3), 3),
        call(A(3), (3, 2)), call(A(1), (0,)), call(S(2), (2, 2))),
    row("numpy.broadcast_arrays", call(A(3), A(2, 1)), call(A(2, 3)), call(A(), A(2), S(1)), call(A(2), A(3)),
        call()),
    row("numpy.broadcast_shapes", call((2, 1), (3,)), call(), call((), (4,)), call(3, (2, 1)), call((2,), (3,)),
        call((0, 1), (1, 3))),
    row("numpy.atleast_1d", call(A()), call(A(2)), call(A(), A(2, 2)), call(S(2)), call()),
    row("numpy.atleast_2d", call(A()), call(A(2)), call(A(2, 3, 4)), call(A(3), A()), call(S(2.0))),
    *rows("numpy", "shape size ndim", call(A(2, 3)), call(A()), call(S(2)), call([1, 2]), call([[1.0], [2.0]]),
        grad=False, vmap=False, jit=False),
    row("numpy.size", call(A(2, 3), 1), call(A(2, 3, 4), (0, -1)), call(A(2), axis=2), grad=False, vmap=False,
        jit=False),
]  # fmt: skip

JOINS = [
    *rows("numpy", "concatenate concat", call([A(2, 3), A(1, 3)]), call((A(2, 3), A(2, 2)), axis=1),
        call([A(2), A(2, dtype="other")]), call([A(2, 3)], -1), call([A(0, 2), A(1, 2)]), call([A(2), A(2, 2)]),
        call([A(2), A(2)], axis=1), call([A(), A()]), call([])),
    row("numpy.concatenate", call([A(2, 3), A(4)], axis=None), call([A(2), A(2)], dtype="float16"), call(A(2, 3, 2)),
        call([A(5, dtype="uint32"), A(1, dtype="int32")], dtype="float32")),
    row("numpy.stack", call([A(2, 3), A(2, 3)]), call([A(2, 3), A(2, 3)], axis=-1), call([A(), A(), S(1)]),
        call((A(3), A(3, dtype="other")), 1), call([A(2), A(3)]), call([]), call([A(2), A(2)], dtype="int32"),
        call(A(3, 2), axis=1)),
    *rows("numpy", "hstack vstack", call([A(2), A(3)]), call([A(3), A(3)]), call([A(2, 3), A(2, 3)]),
        call([A(2, 1, 2), A(2, 3, 2)]), call([A(), A()]), call([A(2), A(2)], dtype="float32"), call(A(2, 3))),
]  # fmt: skip

PARTS = [
    row("numpy.split", call(A(6), 3), call(A(4, 6), 2, axis=1), call(A(6), (2, 3)), call(A(6), [1, 1, 4]),
        call(A(5), 2), call(A(4, 2), 2, -2)),
    row("numpy.array_split", call(A(7), 3), call(A(2, 5), 2, axis=-1), call(A(2), 4), call(A(5), [2])),
    row("numpy.flip", call(A(2, 3)), call(A(2, 3), 0), call(A(2, 3, 4), axis=(0, -1)), call(A()), call(A(2), 1)),
    row("numpy.roll", call(A(5), 2), call(A(2, 3), 1), call(A(2, 3), -1, axis=1), call(A(2, 3), (1, 2), (0, 1)),
        call(A(2, 3), 7, 0), call(A(4), I()), call(A(0), 2), call(A(2, 3), 1, axis=(0, 1)), call(A(2, 3), I(2), 1)),
    row("numpy.repeat", call(A(3), 2), call(A(2, 3), 2, axis=1), call(A(2, 3), 0, 0), call(A(2, 3), (1, 2, 0), -1),
        call(A(2), 3, axis=1), call(A(), 3), call(A(3), np.array([1, 0, 2])), call(A(2, 3), np.array([2, 1]), axis=0),
        call(A(4), repeats=np.array([2])), call(A(3), I(3, low=0), total_repeat_length=5), call(A(3), (1, 2)),
        call(A(4), repeats=[2]), call(A(3), True)),
    row("numpy.tile", call(A(3), 2), call(A(2, 3), (2, 1)), call(A(2), (2, 1, 2)), call(A(2, 3, 1), 2),
        call(A(), (2, 2)), call(A(2), ())),
    row("numpy.diag", call(A(3)), call(A(3, 3)), call(A(2), 1), call(A(2), k=-2), call(A(3, 4), 1), call(A(3, 2), -1),
        call(A(2, 2), 5), call(A(2, 2, 2)), call(A())),
    row("numpy.diagonal", call(A(3, 3)), call(A(3, 4), 1), call(A(2, 3, 4), 0, 1, 2),
        call(A(2, 3, 4), offset=-1, axis1=-1, axis2=0), call(A(2)), call(A(3, 3), 0, 1, 1)),
    row("numpy.trace", call(A(3, 3)), call(A(3, 4), 1), call(A(2, 3, 4), -1, 1, 2), call(A(3, 3), dtype="float32"),
        call(A(2, 3, 2), axis1=2, axis2=0), call(A(2)), exact=False),
]  # fmt: skip

METHODS = [
    row("method.reshape", call(A(2, 6), (3, 4)), call(A(2, 6), 3, 4), call(A(2, 6), -1),
        call(A(2, 3), 3, 2, order="F")),
    row("method.transpose", call(A(2, 3)), call(A(2, 3, 4), (1, 2, 0)), call(A(2, 3, 4), 1, 2, 0),
        call(A(3, 2), None)),
    *rows("method", "ravel flatten", call(A(2, 3)), call(A(2, 3), "F")),
    row("method.squeeze", call(A(1, 3)), call(A(1, 3, 1), axis=-1)),
    row("method.swapaxes", call(A(2, 3), 0, 1)),
    row("method.repeat", call(A(2, 3), 2, axis=0), call(A(2), 2)),
    row("method.diagonal", call(A(3, 3)), call(A(3, 3), 1)),
    row("method.trace", call(A(3, 3)), exact=False),
    row("method.astype", call(A(3), "float32"), call(A(3), "int8"), call(A(3, low=0), "bool"),
        call(A(3), "complex64"), call(A(3), "float64"), call(A(3), float), call(A(3), dtype=int)),
    row("method.copy", call(A(3))),
    row("method.view", call(A(4), "uint8"), call(A(3)), call(A(3, dtype="float32"), "int32"), grad=False),
    *rows("method", "conj conjugate", call(A(3))),
]  # fmt: skip


def exact(table):
    """Moving elements changes no bit."""
    return [dataclasses.replace(one, exact=one.path not in ("numpy.trace", "method.trace")) for one in table]


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

TABLE = [*exact(SHAPES + JOINS + PARTS + METHODS), *STACKS, *PADS, *EDITS]

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


PADDED = {
    "pad by medians": lambda n: n.pad(np.array([[1, 5, 2], [7, 7, 0]]), ((1, 2), (3, 0)), "median"),
    "pad nothing by medians": lambda n: n.pad(np.zeros((0, 2), np.float32), 1, "median"),
    "pad some axes": lambda n: n.pad(np.zeros((1, 2)), {0: (1, 2), -1: 1}),
    "pad in an unknown mode": lambda n: n.pad(np.zeros(2), 1, "mode"),
    "pad by medians of floats": lambda n: n.pad(np.array([1.0, 5.0, 2.5, 4.0]), 2, "median", stat_length=(2, 3)),
}


@pytest.mark.parametrize("name", PADDED)
def test_pads(name):
    both(lambda m: PADDED[name](m.numpy))


@pytest.mark.parametrize("order", ["A", "K"])
def test_order_in_memory(order):
    x = np.arange(24).reshape(2, 3, 4)
    for a in (x, x.T, np.asfortranarray(x), x.transpose(1, 0, 2), x[:, ::2]):
        np.testing.assert_array_equal(phlox.numpy.ravel(a, order), a.ravel(order))
    np.testing.assert_array_equal(phlox.numpy.array(x).T.flatten(order), x.T.ravel())


def test_roll_by_traced_numbers_in_a_sequence():
    x = np.arange(12.0).reshape(3, 4)
    both(lambda m: m.jit(lambda n: m.numpy.roll(x, (n, -1), (0, 1)))(2))
    both(lambda m: m.jit(lambda n: m.numpy.roll(x, [n, n], 1))(3))
    both(lambda m: m.vmap(lambda n: m.numpy.roll(x, (n, -n), (0, 1)))(np.arange(-2, 7)))
