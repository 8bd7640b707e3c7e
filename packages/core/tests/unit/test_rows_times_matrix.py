"""Products of a few rows with a large matrix of narrow numbers, which XLA would convert to float32 as a whole."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp

#: lengths of the contracted axis, and widths: with parts that divide the axis, with none, and one long axis
SHAPES = [(768, 1536), (1031, 1021), (64, 20_000), (20_000, 64), (5000, 257)]
NARROW = ["bfloat16", "float16", "int8", "uint8"]

PRODUCTS = {
    "rows x matrix": lambda x, w: x @ w.astype(x.dtype),
    "rows x matrix, flat": lambda x, w: x[0] @ w.astype(x.dtype),
    "batch of rows x matrix": lambda x, w: x[:, None] @ w.astype(x.dtype),
    "matrix x columns": lambda x, w: w.T.astype(x.dtype) @ x.T,
    "matrix x vector": lambda x, w: w.astype(x.dtype).T @ x[0],
    "first axis of both": lambda x, w: jnp.tensordot(x.T, w.astype(x.dtype), (0, 0)),
}


def drawn(shape, dtype, seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype("f4")
    return jnp.asarray(np.clip(np.abs(values) * 40 if dtype == "uint8" else values * 40, -127, 127), dtype)


def temporary(f, *args):
    """The bytes that the compiled program allocates for intermediate results."""
    return phlox.jit(lambda *args: f(*args)).lower(*args).compile().memory_analysis().temp_size_in_bytes


def reference(f, x, w):
    """The product in float64."""
    with phlox.enable_x64(True), phlox.config.scope(native_kernels=False):
        return np.asarray(f(jnp.asarray(np.asarray(x, "f8")), jnp.asarray(np.asarray(w, "f8"))))


def check(f, x, w):
    result, expected = phlox.jit(lambda x, w: f(x, w))(x, w), reference(f, x, w)
    assert result.shape == expected.shape
    assert result.dtype == x.dtype
    scale = np.abs(np.asarray(x, "f8")).max() * np.abs(np.asarray(w, "f8")).max() * max(w.shape) ** 0.5
    digits = float(jnp.finfo(x.dtype).eps)
    np.testing.assert_allclose(np.asarray(result, "f8"), expected, rtol=digits + 1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("kind", PRODUCTS)
@pytest.mark.parametrize("dtype", NARROW)
def test_values_and_memory(kind, dtype):
    f = PRODUCTS[kind]
    for number, (length, width) in enumerate(SHAPES):
        x_dtype = dtype if "float" in dtype else ["bfloat16", "float32"][number % 2]
        x = drawn((1 + number % 4, length), x_dtype, seed=1) / 40
        for transposed in (False, True):
            w = drawn((width, length) if transposed else (length, width), dtype)
            turned = (lambda x, w: f(x, w.T)) if transposed else f
            check(turned, x, w)
            # A part of the matrix in float32 is 1 MB. All of it would be 2 MB and more.
            assert temporary(turned, x, w) < 1.8e6


@pytest.mark.parametrize("dtype", NARROW)
def test_one_row_times_a_matrix_of_many_elements(dtype):
    """The loop has two turns. Each writes sums of eight products, 1.2 MB; the matrix in float32 is 19 MB."""
    x_dtype = dtype if "float" in dtype else "float32"
    x, w = drawn((1, 2304), x_dtype, seed=1) / 40, drawn((2304, 2048), dtype)
    f = PRODUCTS["rows x matrix"]
    check(f, x, w)
    assert temporary(f, x, w) < 1.8e6


def test_the_sum_of_bfloat16_is_rounded_once():
    x, w = jnp.ones((1, 4096), "bfloat16"), jnp.full((4096, 256), 1.0, "bfloat16").at[0].set(0.5)
    assert (x @ w == jnp.bfloat16(4095.5)).all()
    assert phlox.lax.dot(x, w, preferred_element_type="float32")[0, 0] == 4095.5


def test_nan_and_infinity_stay_in_their_columns():
    w = drawn((1031, 1021), "bfloat16").at[1030, 1020].set(jnp.nan).at[0, 5].set(jnp.inf).at[1, 5].set(-jnp.inf)
    w = w.at[3, 7].set(jnp.inf)
    for x in (jnp.ones((1, 1031), "bfloat16"), jnp.ones((3, 1031), "bfloat16")):
        for y in (x @ w, phlox.jit(lambda x, w: x @ w.T)(x, jnp.array(w.T))):
            assert np.isnan(np.asarray(y[0], "f4")).nonzero()[0].tolist() == [5, 1020]
            assert np.isinf(np.asarray(y[0], "f4")).nonzero()[0].tolist() == [7]


def test_derivatives_and_batches():
    w, x, direction = (drawn((n, 1024), "bfloat16", seed) / 40 for seed, n in enumerate((1024, 2, 2)))
    slopes = phlox.jit(phlox.grad(lambda x, w: ((x @ w) * direction).astype("float32").sum(), (0, 1)))(x, w)
    wide_w, wide_x, wide_direction = (np.asarray(v, "f8") for v in (w, x, direction))
    for slope, expected in zip(slopes, (wide_direction @ wide_w.T, wide_x.T @ wide_direction), strict=True):
        np.testing.assert_allclose(np.asarray(slope, "f8"), expected, rtol=0.008, atol=1e-4)
    check(lambda x, w: phlox.vmap(lambda row: row @ w.astype(row.dtype))(x), x, w)
    check(lambda x, w: phlox.lax.map(lambda row: row @ w.astype(row.dtype), x), x, w)


def test_conversions_that_round_are_done():
    """Weights of float32 that are rounded to bfloat16 are not read in float32."""
    w = jnp.full((1024, 1024), 1.001, "float32")
    assert (jnp.ones((1, 1024), "bfloat16") @ w.astype("bfloat16") == 1024).all()
    w = jnp.full((1024, 1024), 1.001, "float16")
    assert (jnp.ones((1, 1024), "float32") @ w.astype("bfloat16").astype("float32") == 1024).all()


def test_other_products_are_those_of_xla():
    def loops(f, *args):
        return "stablehlo.while" in phlox.jit(f).lower(*args).as_text()

    w = drawn((1024, 1024), "bfloat16")
    with phlox.config.scope(native_kernels=False):
        assert loops(lambda x, w: x @ w, w[:2], w)
        assert not loops(lambda x, w: x @ w, w[:2].astype("float32"), w.astype("float32") + 1)
        assert not loops(lambda x, w: x @ w, w, w)
        assert not loops(lambda x, w: x @ w, w[:2, :256], w[:256])
        whole = [w[:n].astype("int8") for n in (2, 1024)]
        assert not loops(lambda x, w: phlox.lax.dot(x, w, preferred_element_type="int32"), *whole)
        mesh = phlox.make_mesh((2,), ("x",), axis_types=(phlox.sharding.AxisType.Auto,))
        split = phlox.device_put(w, phlox.NamedSharding(mesh, phlox.P(None, "x")))
        assert not loops(lambda x, w: x @ w, w[:2], split)
