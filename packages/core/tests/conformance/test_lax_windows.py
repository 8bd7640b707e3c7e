"""phlox.lax, reductions over axes and windows: general ones, pooling and its derivatives, running and rounded ones, top_k."""

import functools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import (
    A,
    Special,
    agree,
    batches,
    call,
    gradients,
    outcome,
    row,
    rows,
    second_derivatives,
    values,
    wide,
)

NUMBERS = judge.INTS + judge.FLOATS + judge.COMPLEX
REAL = judge.INTS + judge.FLOATS

PIECES = [
    row("lax.split", call(A(5), (2, 3)), call(A(2, 4), [1, 0, 3], 1), call(A(2, 4), (2, 2), axis=-1), call(A(5), (2, 2)),
        call(A(5), (6, -1)), exact=True),
    row("lax.stack", call([A(2), A(2)]), call([A(2, 3), A(2, 3)], axis=1), call([A(2)], -1), call([A(2), A(3)]),
        call([A(2), A(2, dtype="other")]), call([]), exact=True),
    row("lax.unstack", call(A(3)), call(A(2, 3), 1), call(A(2, 3), axis=-1), call(A()), exact=True),
    row("lax.tile", call(A(3), (2,)), call(A(2, 3), (2, 2)), call(A(), ()), call(A(3), (0,)), call(A(3), (1, 2)),
        exact=True),
    row("lax.broadcast_like", call(A(3), A(2, 3)), call(A(), A(2)), call(A(1, 3), A(2, 3)), call(A(2), A(3)),
        exact=True),
    row("lax.round", call(Special()), call(A(4)), call(A(5, whole=True)), call(np.float32([0.5, 1.5, -0.5, 2.5]), 1),
        call(np.float32([0.5, 1.5, -0.5, 2.5]), 0), call(A(2, dtype="int32")), dtypes=judge.FLOATS, exact=True),
]  # fmt: skip

TABLE = [
    *PIECES,
    row("lax.cumlogsumexp", call(A(5)), call(A(3, 4), 1), call(A(3, 4), axis=0, reverse=True), call(A(0)),
        call(A(5, whole=True)), call(A(3), 1), call(Special()), dtypes=judge.FLOATS, twice=True),
    row("lax.reduce_xor", call(A(2, 3), (0,)), call(A(2, 3, 4), (0, 2)), call(A(2), ()), grad=False),
    row("lax.reduce_precision", call(A(5), 5, 10), call(A(2, 3), exponent_bits=8, mantissa_bits=2), call(A(), 3, 0),
        call(A(2), 0, 3), call(A(2), 3, -1), call(A(2, dtype="int32"), 5, 10), dtypes=judge.FLOATS),
    row("lax.top_k", call(A(7), 3), call(A(3, 5), 2), call(A(5, 3), 2, axis=0), call(A(2, 5, 3), 4, axis=-2),
        call(A(6, whole=True), 6), call(A(4), 0), call(A(4), 5), call(A(4), -1), call(A(), 0), call(Special(), 5),
        call(A(4, dtype="complex64"), 2), dtypes=REAL),
    *rows("lax", "approx_max_k approx_min_k", call(A(9), 3), call(A(3, 5), 2), call(A(5, 3), 2, 0),
        call(A(6), 2, recall_target=0.5), call(A(20), 3, aggregate_to_topk=False), call(A(4), 5), call(A(4), 0),
        call(A(), 1), call(A(4, dtype="int32"), 2), dtypes=judge.FLOATS),
]  # fmt: skip

test_value = values(TABLE)
test_gradient = gradients(TABLE)
test_second_derivative = second_derivatives(TABLE)
test_vmap = batches(TABLE)
test_64_bits = wide(TABLE)


def test_shapes_of_windows():
    for args in [((10, 8), (3, 2), (1, 2), [(1, 1), (0, 0)]), ((10,), (3,), (2,), [(0, 1)], (2,), (3,))]:
        judge.compare(phlox.lax.reduce_window_shape_tuple(*args), jax.lax.reduce_window_shape_tuple(*args), weak=False)


# --- pooling: functions that are recognized ----------------------------------------------------------------

START = {"add": 0, "max": -np.inf, "min": np.inf}
WINDOWS = {
    "plain": {"window_dimensions": (2, 2)},
    "strides": {"window_dimensions": (3, 2), "window_strides": (2, 1), "padding": "SAME"},
    "lower": {"window_dimensions": (2, 4), "window_strides": (1, 2), "padding": "SAME_LOWER"},
    "pads": {"window_dimensions": (2, 3), "window_strides": (1, 3), "padding": [(1, 0), (2, 3)]},
    "base": {"window_dimensions": (2, 3), "base_dilation": (2, 3)},
    "gaps": {"window_dimensions": (2, 2), "window_dilation": (1, 3), "window_strides": (2, 1)},
}


def start(name, dtype):
    if np.dtype(judge.array(judge.rng(), (), dtype).dtype).kind in "iu" and name != "add":
        info = np.iinfo(dtype)
        return np.dtype(dtype).type(info.min if name == "max" else info.max)
    return np.asarray(START[name]).astype(judge.array(judge.rng(), (), dtype).dtype)[()]


def pool(name, options, dtype):
    return lambda m, x: m.lax.reduce_window(x, start(name, dtype), getattr(m.lax, name), **options)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", START)
def test_pooling(name, window, dtype):
    x = np.round(judge.array(judge.rng(name, window), (4, 5), dtype))  # with ties
    judge.agree(pool(name, WINDOWS[window], dtype), x, exact=dtype in ("int32", "uint8"))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", START)
def test_derivatives_of_pooling(name, window):
    x = judge.array(judge.rng(name, window), (4, 5), "float32")
    case = pool(name, WINDOWS[window], "float32")
    pushed = lambda m, x: m.jvp(lambda x: case(m, x), (x,), (np.cos(3 * np.asarray(x)) if m is None else x * x,))
    judge.agree(pushed, x)
    pulled = lambda m, x: m.grad(lambda x: (case(m, x) * judge.weights(case(m, x).shape).astype("float32")).sum())(x)
    row_ = row("lax.reduce_window")
    finite = lambda m, x: m.numpy.where(m.numpy.isfinite(pulled(m, x)), pulled(m, x), 0.0)
    agree(outcome(finite, phlox, [x]), outcome(finite, jax, [x]), row_, "reverse")
    # Along a direction, of the gradient of a curved function of the result: second order, both ways.
    curved = lambda m, x: m.jvp(m.grad(lambda x: m.numpy.tanh(case(m, x)).sum()), (x,), (x * 0.5,))[1]
    agree(outcome(curved, phlox, [x]), outcome(curved, jax, [x]), row_, "second order")
    batch = np.stack([x, x[::-1], -x])
    for axis in (0, -1):
        mapped = lambda m, xs, a=axis: m.vmap(m.grad(lambda x: m.numpy.tanh(case(m, x)).sum()), a, a)(xs)
        xs = np.moveaxis(batch, 0, axis)
        agree(outcome(mapped, phlox, [xs]), outcome(mapped, jax, [xs]), row_, f"vmap along {axis}")


def test_ties_of_a_pool_go_to_one_element():
    x = np.zeros((2, 4), np.float32)
    for name in ("max", "min"):
        judge.agree(lambda m, x, n=name: m.grad(lambda x: pool(n, WINDOWS["plain"], "float32")(m, x).sum())(x), x)
        same = {"window_dimensions": (1, 2), "window_strides": (1, 1), "padding": "SAME"}
        judge.agree(lambda m, x, n=name: m.grad(lambda x: pool(n, same, "float32")(m, x).sum())(x), x)


# --- functions of the user's --------------------------------------------------------------------------------

COMPUTATIONS = {
    "product": lambda m: lambda a, b: a * b,
    "mixed": lambda m: lambda a, b: a + b + a * b,
    "logs": lambda m: lambda a, b: m.numpy.logaddexp(a, b),
}


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (), (1, 0)])
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_reduce(name, axes):
    x = judge.array(judge.rng(name, axes), (3, 5), "float32", 0.2, 1.5)
    neutral = np.float32({"product": 1, "logs": -np.inf}.get(name, 0))
    case = lambda m, x: m.lax.reduce(x, neutral, COMPUTATIONS[name](m), axes)
    judge.agree(case, x)
    judge.agree_vmap(case, x)
    if name != "logs":  # jax's own derivative of it at the padding is nan
        judge.agree(lambda m, x: m.grad(lambda x: (case(m, x) ** 2).sum())(x), x)
        judge.agree(lambda m, x: m.jvp(lambda x: case(m, x), (x,), (x,)), x)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_reduce_window(name, window):
    x = judge.array(judge.rng(name, window), (4, 5), "float32", 0.2, 1.5)
    neutral = np.float32({"product": 1, "logs": -np.inf}.get(name, 0))
    case = lambda m, x: m.lax.reduce_window(x, neutral, COMPUTATIONS[name](m), **WINDOWS[window])
    judge.agree(case, x)
    judge.agree(lambda m, xs: m.vmap(lambda x: case(m, x), -1, 0)(xs), np.stack([x, 2 * x], -1))
    if name in ("product", "mixed"):
        judge.agree(lambda m, x: m.jvp(lambda x: case(m, x), (x,), (x,)), x)


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "complex64"])
@pytest.mark.parametrize("name", ["add", "mul", "max", "min", "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_known_computations(name, dtype):
    """The result is the same whether the initial value is neutral, which makes another program, or not."""
    x = judge.array(judge.rng(name, dtype), (3, 4), dtype)
    for first in (0, 1, -1 if dtype not in ("uint8", "bool") else 1):
        first = np.asarray(first).astype(x.dtype)[()]
        case = lambda m, x, first=first: m.lax.reduce(x, first, getattr(m.lax, name), (0,))
        agree(outcome(case, phlox, [x]), outcome(case, jax, [x]), row("lax.reduce"), name)


def test_several_arrays_are_reduced_together():
    x, i = judge.array(judge.rng("several"), (4, 5), "float32"), np.arange(20, dtype=np.int32).reshape(4, 5)

    def best(m):
        def pick(a, b):
            first = a["x"] >= b["x"]
            return {k: m.numpy.where(first, a[k], b[k]) for k in a}

        return pick

    starts = {"x": np.float32(-np.inf), "i": np.int32(0)}
    judge.agree(lambda m, x, i: m.lax.reduce({"x": x, "i": i}, starts, best(m), (1,)), x, i)
    judge.agree(lambda m, x, i: m.lax.reduce_window({"x": x, "i": i}, starts, best(m), (2, 2), (2, 1), "SAME"), x, i)
    # jax has no derivative of this reduction; it is that of a maximum.
    largest = lambda m, x: {"x": x.max(1)} if m is jax else m.lax.reduce({"x": x, "i": i}, starts, best(m), (1,))
    judge.agree(lambda m, x: m.grad(lambda x: (largest(m, x)["x"] ** 2).sum())(x), x)


def test_computations_may_close_over_arrays():
    """In jax they may not."""
    x, bound = judge.array(judge.rng("closing over"), (3, 4), "float32"), phlox.numpy.asarray([2.5, 0.0])
    bounded = lambda a, b: phlox.numpy.maximum(phlox.numpy.minimum(a + b, bound[0]), bound.sum() - 3)
    expected = [functools.reduce(lambda a, b: max(min(a + b, 2.5), -0.5), row, 0.0) for row in x.tolist()]
    for run in (phlox.lax.reduce, phlox.jit(phlox.lax.reduce, static_argnums=(2, 3))):
        judge.same_values(np.asarray(run(x, np.float32(0), bounded, (1,))), np.float32(expected))


@pytest.mark.parametrize(
    "case",
    [
        lambda m: m.lax.reduce(np.ones(3), np.float32(0), lambda a, b: a + b, (1,)),
        lambda m: m.lax.reduce(np.ones(3, np.float32), np.int32(0), lambda a, b: a + b, (0,)),
        lambda m: m.lax.reduce(np.ones(3, np.float32), np.zeros(2, np.float32), lambda a, b: a + b, (0,)),
        lambda m: m.lax.reduce((np.ones(3, np.float32),), np.float32(0), lambda a, b: a, (0,)),
        lambda m: m.lax.reduce((), (), lambda a, b: a, (0,)),
        lambda m: m.lax.reduce_window((), (), lambda a, b: a, (1,)),
        lambda m: m.lax.reduce_window(np.ones(3, np.float32), np.float32(0), m.lax.add, (2, 2)),
        lambda m: m.lax.reduce_window(np.ones(3, np.float32), np.float32(0), m.lax.add, (2,), (0,)),
        lambda m: m.lax.reduce_window(np.ones(3, np.float32), np.float32(0), m.lax.add, (0,)),
        lambda m: m.lax.reduce_window(np.ones(3, np.float32), np.float32(0), m.lax.add, (2,), padding="NONE"),
        lambda m: m.lax.reduce_window(np.ones(3, np.float32), np.int32(0), lambda a, b: a + b, (2,)),
        lambda m: m.jit(lambda c: m.lax.reduce(np.ones(3, np.float32), np.float32(0), lambda a, b: a + b * c, (0,)))(
            2.0
        ),
    ],
)
def test_what_does_not_fit_is_refused(case):
    judge.raises_alike(case)


def test_derivatives_over_windows_of_any_function():
    """Forward mode has them; reverse mode says that it does not, under jit too (thread 7815 of jax-ml/jax)."""
    x = np.float32([1, 2, 3])
    over = lambda x, start, function: phlox.lax.reduce_window(x, start, function, (2,), (1,), "VALID").sum()
    for function, start, slopes in ((phlox.lax.mul, 1, [2, 4, 2]), (phlox.lax.add, 0, [1, 2, 1])):
        run = phlox.jit(functools.partial(over, function=function))
        np.testing.assert_array_equal(phlox.jacfwd(run)(x, np.float32(start)), slopes)
        with pytest.raises(phlox.errors.MissingRuleError, match="reduce_window"):
            phlox.grad(run)(x, np.float32(start))


SCATTERS = "scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max"


@pytest.mark.parametrize("mode", [None, "clip", "drop", "promise_in_bounds"])
@pytest.mark.parametrize("name", SCATTERS.split())
def test_scatters(name, mode):
    x, y = (judge.array(judge.rng(name, i), shape, "float32") for i, shape in enumerate([(4, 3), (3, 3)]))
    places = np.int32([[0], [2], [1]] if mode == "promise_in_bounds" else [[3], [-1], [9]])

    def case(m, x, y):
        numbers = m.lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return getattr(m.lax, name)(x, places, y, numbers, unique_indices=mode == "promise_in_bounds", mode=mode)

    judge.agree(case, x, y)
    if (name, mode) not in (("scatter_min", "clip"), ("scatter_max", "clip")):  # jax loses tangents of what it moved
        judge.agree(lambda m, x, y: m.grad(lambda x: (case(m, x, y) ** 2).sum())(x), x, y)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
def test_random_bits_of_the_compiler(algorithm, dtype):
    case = lambda m, key: m.lax.rng_bit_generator(key, (5,), dtype, m.lax.RandomAlgorithm[algorithm])
    judge.agree(case, np.uint32([1, 2, 3, 4]), exact=True)
    assert str(phlox.lax.RandomAlgorithm[algorithm]) == str(jax.lax.RandomAlgorithm[algorithm])
    judge.raises_alike(lambda m: m.lax.rng_bit_generator(np.uint32([1, 2, 3, 4]), (5,), "int32"))


def test_uniform_numbers_of_the_compiler():
    drawn = np.asarray(phlox.lax.rng_uniform(np.float32(2), np.float32(3), (1000,)))
    assert 2 <= drawn.min() < 2.1 and 2.9 < drawn.max() < 3
    judge.raises_alike(lambda m: m.lax.rng_uniform(np.zeros(2, np.float32), np.float32(1), (2,)))
    judge.raises_alike(lambda m: m.lax.rng_uniform(np.float32(0), np.int32(1), (2,)))


def test_enumerations_and_shapes():
    for name in ("RoundingMethod", "GatherScatterMode", "FftType", "Precision", "RandomAlgorithm"):
        assert str(list(getattr(phlox.lax, name))) == str(list(getattr(jax.lax, name)))
    for shape in ((2, 3), ()):
        judge.compare(phlox.lax.shape_as_value(shape), jax.lax.shape_as_value(shape), exact=True)
    judge.agree(lambda m: m.jit(lambda n: m.lax.shape_as_value((n, 4)))(2), exact=True)


@pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_running_reductions_round_as_jax_does(name, reverse):
    """The same order of operations, so the same bits; also in the derivative of sums, which is one of them."""
    x = np.random.default_rng(0).standard_normal((3, 300)).astype(np.float32)
    runs = lambda m: m.jit(lambda x: getattr(m.lax, name)(x, axis=1, reverse=reverse))
    np.testing.assert_array_equal(np.asarray(runs(phlox)(x)), np.asarray(runs(jax)(x)))
    if name == "cumsum":
        pulled = [m.jit(m.grad(lambda x, m=m: (x * runs(m)(x)).sum()))(x) for m in (phlox, jax)]
        np.testing.assert_allclose(*map(np.asarray, pulled), rtol=1e-5, atol=1e-4)
        text = phlox.jit(phlox.grad(lambda x: (x * runs(phlox)(x)).sum())).lower(x).as_text()
        assert text.count("reduce_window") == 2


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 8, 13])
def test_derivatives_of_products_where_factors_are_zero(length, axis):
    x = np.random.default_rng(length).standard_normal((length, 3)).astype(np.float32)
    x[length // 2 :: 4] = 0
    pulled = [m.grad(lambda x, m=m: (m.numpy.prod(x, axis) * np.float32(2)).sum())(x) for m in (phlox, jax)]
    np.testing.assert_allclose(*map(np.asarray, pulled), rtol=1e-5, atol=1e-6)
