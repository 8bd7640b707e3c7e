"""What may stand where a shape, axes, an option or an array of numbers is wanted: NumPy's integers and arrays, lists, bools.

Code that was written for jax computes shapes with NumPy and hands them over as they come.
"""

import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, I, Of, both, call, row, rows, values

SHAPE = np.array([3, 4])  # 12 elements
AXES = np.array([0, 2])


SHAPES = [
    *rows("numpy", "zeros ones empty", call(SHAPE), call(np.int64(3)), call(np.array(3)), call([np.int8(2), 3]),
        call((2.0,)), call("3"), call(np.ones((2, 2), int))),
    *rows("numpy", "full", call(SHAPE, 1.5), call(np.array([2]), A())),
    *rows("numpy", "reshape broadcast_to", call(A(3, 4), SHAPE), call(A(1, 4), list(SHAPE))),
    row("numpy.tile", call(A(2, 3), np.array([2, 1]))),
    row("numpy.indices", call(SHAPE)),
    row("numpy.unravel_index", call(I(4, low=0, high=11), SHAPE), call(5, 7)),
    row("numpy.ravel_multi_index", call((I(3, low=0), I(3, low=0)), SHAPE, mode="clip")),
    row("numpy.fromfunction", call(Of("numpy.add"), SHAPE)),
    row("method.reshape", call(A(2, 6), SHAPE), call(A(2, 6), np.int64(3), np.int32(4))),
    row("lax.reshape", call(A(2, 6), SHAPE), call(A(2, 6), SHAPE, np.array([1, 0]))),
    row("lax.full", call(SHAPE, 1.5)),
    row("lax.broadcast", call(A(2), SHAPE)),
    row("lax.broadcasted_iota", call("int32", SHAPE, np.array(1))),
    row("lax.dynamic_slice", call(A(4, 5), np.array([0, 1]), SHAPE)),
    row("lax.slice", call(A(4, 5), np.array([0, 1]), SHAPE, np.array([1, 2]))),
    row("image.resize", call(A(3, 2), SHAPE, "linear"), dtypes=("float32",)),
]  # fmt: skip

AXES_OF = [
    *rows("numpy", "sum prod max min any all mean var std ptp", call(A(2, 3, 4), AXES),
        call(A(2, 3, 4), np.array(1)), call(A(2, 3), axis=1.0)),
    *rows("numpy", "flip expand_dims squeeze", call(A(1, 3, 1), AXES), call(A(1, 3, 1), [0, 2]), call(A(1, 2), np.int64(0))),
    *rows("numpy", "transpose permute_dims", call(A(2, 3, 4), np.array([2, 0, 1]))),
    row("numpy.moveaxis", call(A(2, 3, 4), AXES, np.array([1, 0])), call(A(2, 3), np.array(0), 1), call(A(2, 3), 0.5, 1)),
    row("numpy.roll", call(A(2, 3, 4), np.array([1, 2]), AXES), call(A(2, 3, 4), 1, AXES)),
    *rows("numpy.linalg", "norm vector_norm", call(A(2, 3), axis=np.int64(0)), dtypes=("float32", "complex64")),
    row("numpy.linalg.vector_norm", call(A(2, 3, 4), axis=[0, 2]), call(A(2, 3, 4), axis=AXES),
        dtypes=("float32", "complex64")),
    *rows("nn", "softmax logsumexp", call(A(2, 3, 4), [0, 2]), call(A(2, 3, 4), AXES), call(A(2, 3), np.int64(0)),
        dtypes=("float32", "float16")),
    *rows("lax", "cumsum cummax", call(A(2, 3), np.array(1)), call(A(2, 3), 1, np.True_)),
    row("lax.dot_general", call(A(2, 3), A(2, 3), ((np.array([0]), np.array([0])), ((), ())))),
]  # fmt: skip

LISTS = [
    *rows("numpy", "array_equal array_equiv", call(A(2), [1.0, 2.0]), call([1, 2], [1, 2]), call([1, 2], (1, 2)),
        call([A(), A()], A(2)), call(A(2), None)),
    row("nn.one_hot", call([0, 2], 3), call((np.int64(1),), 2)),
    row("lax.full_like", call([1.0, 2.0], 3, "float16")),
    *rows("scipy.linalg", "cholesky svd eigh lu lu_factor qr polar", call([[2.0, 1.0], [1.0, 3.0]])),
    row("scipy.linalg.solve", call([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0])),
    row("scipy.linalg.solve_triangular", call([[2.0, 1.0], [0.0, 3.0]], [1.0, 2.0])),
]  # fmt: skip

OPTIONS = [
    row("numpy.trunc", call(x=A(3))),
    row("lax.dynamic_index_in_dim", call(A(4, 5), 1, allow_negative_indices=np.False_)),
]  # fmt: skip


test_value = values(SHAPES + AXES_OF + LISTS + OPTIONS)


def test_lengths_are_ints():
    """Whoever computed them: they are printed, and used as keys, as Python's integers."""
    n = np.int64(7)
    for x in (
        phlox.numpy.zeros((n, n)),
        phlox.random.split(phlox.random.key(0), (n, n)),
        phlox.lax.reduce_window(phlox.numpy.ones((13, 13)), 0.0, phlox.lax.add, (n, n), (n - 6, 1), "VALID"),
        phlox.ShapeDtypeStruct((n, n), "int8"),
    ):
        assert [type(length) for length in x.shape] == [int, int], x.shape
        assert x.shape == (7, 7)
        assert type(x.size) is int


@pytest.mark.parametrize("name", ["sum", "prod", "max", "all", "mean", "std", "ptp", "average", "flip", "expand_dims"])
def test_axes_are_arrays_in_a_tuple(name):
    mine, theirs = (
        getattr(m.numpy, name)(m.numpy.arange(24.0).reshape(2, 3, 4), axis=(m.numpy.array(0), np.int64(2)))
        for m in (phlox, judge.jax)
    )
    judge.compare(mine, theirs)


def test_a_shape_that_is_traced():
    """The error says what to do, as the mistake is the most common one under jit."""
    error = phlox.errors.TracerIntegerConversionError
    with pytest.raises(error, match=r"zeros: .* not known while the program is traced") as raised:
        phlox.jit(lambda n: phlox.numpy.zeros((n, 2)))(3)
    assert "static_argnums" in str(raised.value)
    judge.raises_alike(lambda m: m.jit(m.numpy.zeros)(3))


@pytest.mark.parametrize(
    "function", [lambda n, x: n.outer(x, x, 1), lambda n, x: n.trace(x[None], out=1), lambda n, x: n.stack([x], out=x)]
)
def test_out_is_refused(function):
    both(lambda m: function(m.numpy, m.numpy.ones(2)))
