"""Convolutions of float32 beside those of float64, and what of them keeps XLA's form."""

import jax
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
#: shapes of the images and the kernel, strides, padding, dilation, dimension numbers
CASES = {
    "same": ((2, 32, 17, 19), (40, 32, 3, 3), (1, 1), "SAME", (1, 1), NCHW),
    "channels last": ((3, 20, 21, 16), (3, 5, 16, 24), (2, 1), [(2, 0), (1, 5)], (1, 2), NHWC),
    "stem": ((2, 30, 33, 3), (7, 7, 3, 64), (2, 2), [(3, -2), (3, 3)], (1, 1), NHWC),
    "pointwise": ((8, 14, 14, 32), (1, 1, 32, 17), (1, 1), "VALID", (1, 1), NHWC),
    "more padding than image": ((8, 6, 7, 32), (3, 3, 32, 20), (1, 1), [(9, 0), (0, 20)], (3, 2), NHWC),
    "mixed orders": ((5, 9, 40, 11), (12, 3, 40, 3), (1, 2), "SAME", (1, 1), ("NHCW", "OHIW", "CHNW")),
    "one axis": ((4, 200, 16), (5, 16, 40), (2,), "SAME", (1,), ("NWC", "WIO", "NWC")),
    "one axis, channels first": ((4, 16, 200), (40, 16, 3), (1,), "VALID", (3,), ("NCW", "OIW", "NCW")),
}


def drawn(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def uses(f, *args):
    return "phlox_kernels_conv" in phlox.jit(lambda *args: f(*args)).lower(*args).as_text()


def exact(f, *args):
    """The result of jax in float64."""
    with jax.enable_x64(True):
        return np.asarray(f(jax, *(np.asarray(x, "f8") for x in args)))


def check(f, *args, rtol=1e-5):
    assert uses(lambda *args: f(phlox, *args), *args)
    expected = exact(f, *args)
    result = phlox.jit(lambda *args: f(phlox, *args))(*args)
    assert (result.shape, result.dtype) == (expected.shape, np.float32)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def convolution(strides, padding, dilation, numbers):
    options = {"rhs_dilation": dilation, "dimension_numbers": numbers}
    return lambda m, x, w: m.lax.conv_general_dilated(x, w, strides, padding, **options)


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    shape, window, *rest = CASES[case]
    check(convolution(*rest), drawn(shape), drawn(window, 1))


@pytest.mark.parametrize("numbers", [NHWC, NCHW])
def test_gradients(numbers):
    shape, window = ((4, 12, 13, 16), (3, 3, 16, 24)) if numbers is NHWC else ((4, 16, 12, 13), (24, 16, 3, 3))
    f = convolution((1, 1), "SAME", (1, 1), numbers)

    def slope(argnum):
        return lambda m, x, w: m.grad(lambda *xw: (m.numpy.sin(f(m, *xw))).sum(), argnum)(x, w)

    for argnum in (0, 1):
        check(slope(argnum), drawn(shape), drawn(window, 1), rtol=1e-4)


def test_batches():
    f = convolution((1, 1), "SAME", (1, 1), NHWC)
    check(lambda m, x, w: m.vmap(lambda x: f(m, x, w))(x), drawn((3, 2, 9, 9, 16)), drawn((3, 3, 16, 24), 1))


def test_nan_and_infinity_reach_the_results_of_jax():
    f = convolution((1, 1), "SAME", (1, 1), NHWC)
    x, w = drawn((1, 14, 14, 16)), drawn((3, 3, 16, 24), 1)
    x[0, 3, 4, 5], x[0, 10, 10, 0], w[0, 0, 2, 7] = np.nan, np.inf, np.inf
    assert uses(lambda *args: f(phlox, *args), x, w)
    result, expected = phlox.jit(lambda x, w: f(phlox, x, w))(x, w), f(jax, x, w)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_what_keeps_the_form_of_xla():
    x, w = jnp.asarray(drawn((2, 20, 20, 32))), jnp.asarray(drawn((3, 3, 32, 32)))
    plain = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC}

    def conv(x, w, **options):
        return lax.conv_general_dilated(x, w, **{**plain, **options})

    assert uses(conv, x, w)
    assert not uses(lambda x, w: conv(x, w, padding=[(1, 1)] * 2, lhs_dilation=(2, 1)), x, w)
    assert not uses(lambda x, w: conv(x, w, padding=[(-1, 0), (0, 0)]), x, w)
    assert not uses(lambda x, w: conv(x, w, feature_group_count=2), x, w[:, :, :16])
    assert not uses(lambda x, w: conv(x, w, batch_group_count=2), x, w)
    assert not uses(conv, x.astype("bfloat16"), w.astype("bfloat16"))
    assert not uses(conv, x, w[..., :7])
    assert not uses(conv, x[..., :2], w[:, :, :2])
    assert not uses(conv, x[:, :2, :2], w)
    assert not uses(conv, jnp.ones((1, 7, 7, 256)), jnp.ones((3, 3, 256, 256)))
    with phlox.config.scope(native_kernels=False):
        assert not uses(conv, x, w)
    with pytest.raises(phlox.errors.PhloxError):
        conv(x, w[:, :, :5])
