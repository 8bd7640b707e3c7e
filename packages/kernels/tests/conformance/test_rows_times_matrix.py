"""Products of a few rows with a matrix of float32, bfloat16 or int8, beside those of float64."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp

#: Matrices of more elements of a narrow dtype are multiplied with one row by XLA, which converts in registers.
FUSED = 1 << 18
#: lengths of rows and numbers of columns around those of vectors and blocks, and more than one thread has
SHAPES = [(257, 256), (256, 257), (1025, 1031), (64, 4100), (4099, 65), (768, 3072), (300, 300)]


def uses(f, *args):
    return "phlox_kernels_rows_times_matrix" in phlox.jit(lambda *args: f(*args)).lower(*args).as_text()


def drawn(shape, dtype, seed=0):
    return jnp.asarray(np.clip(np.random.default_rng(seed).normal(size=shape) * 40, -127, 127), dtype)


def check(f, x, w, rows):
    if rows > 1 or w.dtype == "float32" or w.size < FUSED:
        assert uses(f, x, w)
    result, expected = phlox.jit(lambda x, w: f(x, w))(x, w), f(np.asarray(x, "f8"), np.asarray(w, "f8"))
    assert (result.shape, result.dtype) == (expected.shape, x.dtype)
    scale = np.abs(np.asarray(x, "f8")).max() * np.abs(np.asarray(w, "f8")).max() * max(w.shape) ** 0.5
    np.testing.assert_allclose(
        np.asarray(result, "f8"), expected, rtol=float(jnp.finfo(x.dtype).eps), atol=1e-6 * scale
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_values(shape, dtype):
    w = drawn(shape, dtype)
    turned = jnp.array(w.T)
    for count in (1,) if dtype == "float32" else (1, 2, 5, 8):
        x = drawn((count, shape[0]), dtype if dtype != "int8" else ["bfloat16", "float32"][count % 2], seed=1)
        check(lambda x, w: x @ w.astype(x.dtype), x, w, count)
        check(lambda x, w: w.astype(x.dtype).T @ x.T, x, w, count)
        check(lambda x, w: x[0] @ w.astype(x.dtype), x, w, 1)
        check(lambda x, w: x @ w.T.astype(x.dtype), x, turned, count)
        check(lambda x, w: w.astype(x.dtype) @ x[0], x, turned, 1)


def test_a_part_of_an_array_is_a_matrix():
    w, x = drawn((3, 600, 700), "bfloat16"), drawn((2, 600), "bfloat16", seed=1)
    result = phlox.jit(lambda x, w: x @ w[1, :, ::2])(x, w)
    np.testing.assert_array_equal(result, x @ jnp.array(w[1, :, ::2]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("transposed", [False, True])
def test_nan_and_infinity_stay_in_their_columns(dtype, transposed):
    w = drawn((515, 517), dtype).at[514, 516].set(jnp.nan).at[0, 5].set(jnp.inf).at[1, 5].set(-jnp.inf)
    w = w.at[3, 7].set(jnp.inf)
    x = jnp.ones((1, 515), dtype)
    f = (lambda x, w: x @ w.T) if transposed else (lambda x, w: x @ w)
    w = jnp.array(w.T) if transposed else w
    assert uses(f, x, w) == (dtype == "float32" or not transposed)
    y = np.asarray(phlox.jit(f)(x, w)[0], "f4")
    assert np.isnan(y).nonzero()[0].tolist() == [5, 516]
    assert np.isinf(y).nonzero()[0].tolist() == [7]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_derivatives(dtype):
    w, x, direction = (drawn(shape, dtype, seed) / 40 for seed, shape in enumerate([(300, 400), (400,), (300,)]))
    slope = phlox.grad(lambda w, x: ((w @ x) * direction).astype("float32").sum(), (0, 1))
    assert uses(slope, w, x)
    wide_w, wide_x, wide_direction = (np.asarray(v, "f8") for v in (w, x, direction))
    for result, expected in zip(
        phlox.jit(slope)(w, x), (np.outer(wide_direction, wide_x), wide_direction @ wide_w), strict=True
    ):
        np.testing.assert_allclose(np.asarray(result, "f8"), expected, rtol=float(jnp.finfo(dtype).eps), atol=1e-4)


def test_what_keeps_the_form_of_xla():
    w = drawn((512, 512), "float32")

    def product(x, w):
        return x @ w

    assert uses(product, w[0], w)
    assert not uses(product, w[:2], w)
    assert not uses(product, w[0, :100], w[:100, :100])
    assert not uses(product, w[0, :2], jnp.ones((2, 100_000)))
    assert not uses(product, *[v.astype("float16") for v in (w[0], w)])
    assert not uses(product, w[:9].astype("bfloat16"), w.astype("bfloat16"))
    assert not uses(phlox.vmap(product), w[:4], jnp.stack([w] * 4))
    with phlox.config.scope(native_kernels=False):
        assert not uses(product, w[0], w)
    with phlox.enable_x64(True):
        assert not uses(product, *[np.asarray(v, "f8") for v in (w[0], w)])
