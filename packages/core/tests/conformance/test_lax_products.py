"""phlox.lax, products: of arrays, in groups, with scales, and the algorithms that compute them."""

import functools
import itertools

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import A, batches, both, call, data, gradients, row, second_derivatives, values, wide

NUMBERS = (((1,), (0,)), ((), ()))

PRODUCTS = [
    row("lax.dot", call(A(3), A(3)), call(A(2, 3), A(3)), call(A(2, 3), A(3, 2)), call(A(3), A(3, 2)),
        call(A(2, 3), A(2)), call(A(2), A(2, dtype="other")),
        call(A(2, 3), A(3, 2), preferred_element_type="float32"), call(A(2, 3), A(3, 2), precision="highest"),
        call(A(2, 3, 2), A(2, 2)), twice=True),
    row("lax.dot_general", call(A(2, 3), A(3, 4), NUMBERS), call(A(2, 3), A(4, 3), (((1,), (1,)), ((), ()))),
        call(A(5, 2, 3), A(5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
        call(A(2, 5, 3), A(3, 4, 5), (((2,), (0,)), ((1,), (2,)))),
        call(A(2, 3, 4), A(4, 3), (((1, 2), (1, 0)), ((), ()))), call(A(2), A(3), (((), ()), ((), ()))),
        call(A(2, 3), A(2, 4), NUMBERS), call(A(2, 3), A(3, 4), (((1,), (0, 1)), ((), ()))),
        call(A(2, 3), A(3, 2), NUMBERS, "highest", "float32"),
        call(A(2, 3), A(3, 2), dimension_numbers=([[1], [0]], [[], []])),
        call(A(2, 3), A(3, 2, dtype="other"), NUMBERS),
        call(A(2, 3), A(3, 2), NUMBERS, precision=("high", "default")), twice=True),
]  # fmt: skip

#: Without second derivatives and 64 bits.
GROUPED = [
    row(
        "lax.dot",
        call(A(2, 3, 4), A(2, 4, 5), dimension_numbers=(((2,), (1,)), ((0,), (0,)))),
        call(A(2, 3), A(3, 4), dimension_numbers=((1, 0), ((), ()))),
        call(A(2, 3, 4), A(4)),
        dtypes=["float32", "int32"],
    ),
    row(
        "lax.ragged_dot",
        call(A(6, 3), A(2, 3, 4), np.array([2, 4])),
        call(A(6, 3), A(3, 3, 4), np.array([2, 0, 3])),
        call(A(6, 3), A(2, 3, 4), np.array([2, 4]), preferred_element_type=np.float32),
        call(A(6, 3), A(2, 3, 4), np.array([2.0, 4.0])),
        dtypes=["float32", "bfloat16"],
    ),
    row(
        "lax.scaled_dot",
        call(A(2, 8), A(8, 3)),
        call(A(2, 8), A(8, 3), lhs_scale=A(2, 4), rhs_scale=A(2, 3)),
        call(A(5, 2, 8), A(5, 8, 3), lhs_scale=A(5, 2, 1), preferred_element_type=np.float32),
        call(A(2, 8), A(8, 3), lhs_scale=A(2, 8)),
        call(A(2, 8), A(7, 3)),
        call(A(8), A(8)),
        dtypes=["float32"],
        grad=False,
        vmap=False,  # the compiler drops roundings to bfloat16 as it pleases
    ),
]

TABLE = PRODUCTS

test_value = values(TABLE + GROUPED)
test_gradient = gradients(TABLE + GROUPED)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE + GROUPED)
test_64_bits = wide(TABLE)

RAGGED = {
    "rows": ((6, 3), (2, 3, 4), ((((1,), (1,)), ((), ())), [0], [0])),
    "rows of a batch": ((5, 6, 3), (2, 5, 3, 4), ((((2,), (2,)), ((0,), (1,))), [1], [0])),
    "contracted": ((6, 3), (6, 4), ((((0,), (0,)), ((), ())), [0], [])),
    "contracted in a batch": ((5, 6, 3), (5, 6, 4), ((((1,), (1,)), ((0,), (0,))), [1], [])),
    "a batch": ((6, 2, 3), (6, 3, 4), ((((2,), (1,)), ((0,), (0,))), [0], [])),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_dot_general(name):
    left, right, numbers = RAGGED[name]
    x, y, sizes = data(left), data(right, "float32", 1), np.array([2, 3], np.int32)

    def product(m, x, y, sizes):
        return m.lax.ragged_dot_general(x, y, sizes, m.lax.RaggedDotDimensionNumbers(*numbers))

    both(product, x, y, sizes)
    both(lambda m, *xs: m.jit(functools.partial(product, m))(*xs), x, y, sizes, what="jit")
    total = lambda m, x, y: (product(m, x, y, sizes) ** 2).sum()
    if numbers[2]:  # jax has no derivative of the others
        both(lambda m, x, y: m.grad(lambda *xs: total(m, *xs), (0, 1))(x, y), x, y, what="grad")
    if "in a batch" in name or "of a batch" in name:
        own = np.array([[2, 3], [0, 6], [1, 1], [6, 0], [3, 3]], np.int32)
        both(product, x, y, own, what="groups of each example")


PRESETS = [p.name for p in jax.lax.DotAlgorithmPreset]


@pytest.mark.parametrize("name", PRESETS)
def test_algorithms(name):
    for dtype in ("float32", "bfloat16", "float16"):
        x, y = data((3, 4), dtype), data((4, 2), dtype, 1)
        both(lambda m, x, y: m.lax.dot(x, y, precision=name), x, y, what=dtype)
        both(lambda m, x, y: m.jit(lambda x, y: m.numpy.matmul(x, y, precision=name))(x, y), x, y, what=f"{dtype}, jit")
    mine, theirs = (m.lax.DotAlgorithmPreset[name] for m in (phlox, jax))
    types = lambda ts: None if ts is None else [np.dtype(t) for t in (ts if isinstance(ts, tuple) else (ts,))]
    assert (repr(mine), str(mine), mine.value) == (repr(theirs), str(theirs), theirs.value)
    for what in ("supported_lhs_types", "supported_rhs_types", "accumulation_type"):
        assert types(getattr(mine, what)) == types(getattr(theirs, what)), what


def test_an_algorithm_of_ones_own():
    """CPUs refuse it; the text says what is asked for."""
    x = np.ones((2, 2), np.float32)
    both(lambda m, x: m.lax.dot(x, x, precision=m.lax.DotAlgorithm("float32", "float32", "float32")), x)
    both(lambda m, x: m.lax.dot(x, x, precision="F7"), x)
    both(lambda m, x: m.grad(lambda x: m.lax.dot(x, x.T, precision="BF16_BF16_F32_X3").sum())(x), x)


def test_products_of_two_kinds_of_bytes():
    """The numbers of neither kind are rounded to the other."""
    kinds = [getattr(jax.numpy, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz")]
    x, y = np.random.default_rng(0).normal(size=(2, 4, 4))
    for first, second in itertools.permutations(kinds, 2):
        a, b = np.asarray(x, first), np.asarray(y, second)
        got = phlox.lax.dot(a, b, preferred_element_type="float32")
        np.testing.assert_allclose(got, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("name", ["int2", "int4", "uint4", "float4_e2m1fn"])
def test_sums_of_products_of_fewer_than_eight_bits(name):
    """XLA compiles no such product for CPUs, and jax raises its error."""
    dtype = getattr(phlox.numpy, name)
    numbers = np.arange(-2, 2) if name == "int2" else np.arange(4)
    x = phlox.numpy.asarray(numbers.reshape(2, 2), dtype)
    out = "float32" if name.startswith("float") else "int32"
    y = np.asarray(numbers.reshape(2, 2), out)
    np.testing.assert_array_equal(phlox.jit(lambda x: phlox.lax.dot(x, x, preferred_element_type=out))(x), y @ y)
    image = x.reshape(1, 1, 2, 2)
    result = phlox.lax.conv_general_dilated(image, image, (1, 1), "VALID", preferred_element_type=out)
    np.testing.assert_array_equal(result, np.sum(y * y).reshape(1, 1, 1, 1))


def test_derivatives_of_products_of_bytes():
    """The products of an fp8 layer's backward pass, some of which XLA's CPU does not compute in bfloat16."""

    def products(m, x, y, g):
        e4m3, e5m2 = m.numpy.float8_e4m3fn, m.numpy.float8_e5m2
        options = {"precision": m.lax.Precision.HIGHEST, "preferred_element_type": m.numpy.float32}
        x, y, g = x.astype(e4m3), y.astype(e4m3), (g * 2).astype(e5m2)
        by_x = m.lax.dot_general(g, y, (((2,), (1,)), ((), ())), **options)
        by_y = m.lax.transpose(m.lax.dot_general(g, x, (((0, 1), (0, 1)), ((), ())), **options), (1, 0))
        return by_x, by_y

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in [(2, 3, 64), (64, 32), (2, 3, 32)]]
    both(products, *arrays)
    assert "bf16" not in phlox.jit(functools.partial(products, phlox)).lower(*arrays).as_text()


def test_flags_name_the_algorithms():
    from phlox._base import config

    assert {"DEFAULT", *config.ALGORITHMS} == set(phlox.lax.DotAlgorithmPreset.__members__)


def test_gradients_of_bfloat16_products_are_rounded_as_in_jax():
    """XLA leaves the rounding of a product out if a conversion to float32 follows, and not if a transpose stands between."""
    rng = np.random.default_rng(0)
    x, w, c = (rng.normal(size=shape).astype(np.float32) for shape in [(8, 5), (5, 4), (8, 4)])

    def gradient(m, w):
        product = lambda w: (x.astype("bfloat16") @ w.astype("bfloat16")).astype("float32")
        return m.jit(m.grad(lambda w: (product(w) * c).sum()))(w)

    np.testing.assert_array_equal(gradient(phlox, w), gradient(jax, w))
