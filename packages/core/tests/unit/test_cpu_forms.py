"""The table of forms for CPUs agrees with the modules that have them."""

import importlib

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._ops import all_primitives, cpu


def test_the_table_names_the_modules_that_have_forms():
    primitives = all_primitives()
    modules = {name for rows in cpu.TABLE.values() for name in rows.modules}
    forms = {name: importlib.import_module(f"{cpu.__name__}.{name}").FORMS for name in modules}
    by_module = {name: {primitive.name for primitive in rows} for name, rows in forms.items()}
    assert by_module == {
        module: {name for name, rows in cpu.TABLE.items() if module in rows.modules} for module in modules
    }
    assert all(form.gain for rows in forms.values() for each in rows.values() for form in each)
    assert all(primitive is primitives[primitive.name] for rows in forms.values() for primitive in rows)


def test_small_programs_have_the_portable_rule():
    assert "func.call" not in phlox.jit(jnp.sin).lower(jnp.ones(1023)).as_text()
    assert "func.call" in phlox.jit(jnp.sin).lower(jnp.ones(1024)).as_text()


def test_a_primitive_of_a_user_has_no_forms():
    from phlox.extend import Primitive

    mine = Primitive("sin", types=lambda x: x, lower=lambda f, x: f.same("stablehlo.negate", x))
    np.testing.assert_array_equal(phlox.jit(mine.bind)(jnp.ones(2000)), -np.ones(2000))


# --- short axes -----------------------------------------------------------------------------------------

SHORT = [((4000, 3), 1), ((3, 4001), 0), ((16, 800), 0), ((40, 8, 50), 1), ((30, 60, 7), 2), ((100, 60, 2), -1)]


@pytest.mark.parametrize(
    ("shape", "axis", "dtype"), [*((*case, np.float32) for case in SHORT), (*SHORT[0], np.float64)]
)
def test_reductions_over_short_axes(shape, axis, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x[(0,) * len(shape)] = np.nan
    with phlox.enable_x64(dtype == np.float64):
        for name in ("sum", "max", "min", "mean"):
            f = phlox.jit(lambda x, name=name: getattr(jnp, name)(x, axis))
            assert "stablehlo.reduce" not in f.lower(x).as_text()
            out = np.asarray(f(x))
            assert out.dtype == dtype
            np.testing.assert_allclose(out, getattr(np, name)(x, axis), rtol=1e-5, atol=1e-6)
        expected = np.broadcast_to(np.expand_dims(2 * np.nan_to_num(x).sum(axis), axis), shape)
        gradient = phlox.jit(phlox.grad(lambda x: (x.sum(axis) ** 2).sum()))(np.nan_to_num(x))
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shape", "axis"), SHORT)
def test_reductions_of_reductions_over_short_axes(shape, axis):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for name, second in (("sum", 0), ("max", -1), ("min", None), ("sum", None)):
        f = phlox.jit(lambda x, name=name, second=second: getattr(getattr(x, name)(axis), name)(second))
        np.testing.assert_allclose(f(x), getattr(getattr(np, name)(x, axis), name)(second), rtol=1e-4, atol=1e-4)
    # Another reduction of it is of its own.
    np.testing.assert_allclose(phlox.jit(lambda x: x.sum(axis).max())(x), x.sum(axis).max(), rtol=1e-5)


def test_extrema_of_extrema_keep_nan():
    x = np.ones((12_000, 3), np.float32)
    x[5000, 1] = np.nan
    for name in ("max", "min", "sum"):
        assert np.isnan(phlox.jit(lambda x, name=name: getattr(getattr(x, name)(-1), name)())(x))


def test_a_sum_of_sums_is_one():
    text = phlox.jit(lambda x: (x**2).sum(-1).mean()).lower(jnp.ones((12_000, 3))).as_text()
    assert "across dimensions = [0, 1]" in text


def test_sums_of_short_rows_that_are_computed_are_right_for_all_readers():
    x = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)

    def f(x):
        norm = jnp.sqrt((x**2).sum(-1, keepdims=True))
        return x / norm, norm.max(), (x * norm).sum(0), norm.sum()

    norm = np.sqrt((x.astype(np.float64) ** 2).sum(-1, keepdims=True))
    for out, expected in zip(phlox.jit(f)(x), (x / norm, norm.max(), (x * norm).sum(0), norm.sum()), strict=True):
        np.testing.assert_allclose(out, expected, rtol=2e-5, atol=1e-4)
    stepped = phlox.jit(lambda x: lax.fori_loop(0, 5, lambda _, x: x / (1 + (x**2).sum(-1, keepdims=True)), x))(x)
    turned = x.astype(np.float64)
    for _ in range(5):
        turned = turned / (1 + (turned**2).sum(-1, keepdims=True))
    np.testing.assert_allclose(stepped, turned, rtol=1e-5)


def test_sums_of_short_rows_on_the_way_to_results_are_not_stored():
    x = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)

    def stores(f):
        return "stablehlo.while" in phlox.jit(f).lower(x).as_text()

    assert not stores(lambda x: jnp.sqrt((x**2).sum(-1)))
    assert not stores(lambda x: (x.max(1), x.sum(1)))
    np.testing.assert_allclose(phlox.jit(lambda x: jnp.sqrt((x**2).sum(-1)))(x), np.linalg.norm(x, axis=1), rtol=1e-6)
    # Read by a larger loop, twice, by a reduction, or by the caller of a function, who may do any of these.
    for f in (
        lambda x: x / x.sum(-1, keepdims=True),
        lambda x: (y := x.sum(-1), y * y),
        lambda x: jnp.exp(x.sum(-1)).max(),
        lambda x: phlox.jit(lambda x: x.sum(-1))(x),
    ):
        assert stores(f)


# lhs, rhs, ((contracted), (batch)) of them
PRODUCTS = [
    ((4000, 3), (3, 3), (((1,), (0,)), ((), ()))),
    ((3, 4000), (4, 3), (((0,), (1,)), ((), ()))),
    ((4, 4), (4, 4000), (((1,), (0,)), ((), ()))),
    ((2, 30, 200), (2, 3), (((0,), (0,)), ((), ()))),
    ((2000, 8), (2000, 8), (((1,), (1,)), ((0,), (0,)))),
    ((3, 4000), (4000, 3), (((0,), (1,)), ((1,), (0,)))),
    ((2000, 3, 3), (2000, 3), (((2,), (1,)), ((0,), (0,)))),
    ((2000, 3, 2), (2, 3, 2000), (((1,), (1,)), ((0,), (2,)))),
    ((4, 30, 5, 20), (30, 20, 4, 6), (((0,), (2,)), ((3, 1), (1, 0)))),
    ((500, 5, 5), (500, 5, 5), (((2,), (1,)), ((0,), (0,)))),
    ((400, 7, 3), (400, 7, 9), (((1,), (1,)), ((0,), (0,)))),
    ((2100, 8, 8), (2100, 8, 8), (((2,), (2,)), ((0,), (0,)))),
]


@pytest.mark.parametrize(("lhs", "rhs", "numbers"), PRODUCTS)
def test_products_over_short_axes(lhs, rhs, numbers):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(np.float32) for shape in (lhs, rhs))
    f = phlox.jit(lambda x, y: lax.dot_general(x, y, numbers))
    assert "stablehlo.dot" not in f.lower(x, y).as_text()
    names, (contracted, batch) = "abcdefgh", numbers
    left, right = list(names[: x.ndim]), list(names[x.ndim : x.ndim + y.ndim])
    for pairs in (contracted, batch):
        for i, j in zip(*pairs, strict=True):
            right[j] = left[i]
    others = [c for c in left + right if (c in left) != (c in right)]
    out = [*(left[i] for i in batch[0]), *others]
    expected = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x.astype(np.float64), y)
    np.testing.assert_allclose(f(x, y), expected, rtol=1e-5, atol=1e-5)


def test_layers_of_networks_and_long_axes_keep_the_operations():
    assert "stablehlo.dot" in phlox.jit(jnp.matmul).lower(jnp.ones((2000, 4)), jnp.ones((4, 64))).as_text()
    for shape in ((1000, 8, 8), (1000, 9, 9), (100, 20, 20)):
        assert "stablehlo.dot" in phlox.jit(jnp.matmul).lower(jnp.ones(shape), jnp.ones(shape)).as_text()
    assert "stablehlo.reduce" in phlox.jit(lambda x: x.sum(-1)).lower(jnp.ones((2000, 9))).as_text()
    assert "stablehlo.reduce" in phlox.jit(lambda x: x.sum(-1)).lower(jnp.ones((3999, 3))).as_text()
