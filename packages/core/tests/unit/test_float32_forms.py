"""The forms of functions of many float32 numbers on CPUs, beside NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import export

NAMES = ["sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "cbrt"]
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0**50, 2.0**77, 2.0**104, -(2.0**127)], np.float32
)


def _drawn(name):
    """Numbers of all sizes, numbers close to where the sine or the cosine is 0, and those that are special."""
    rng = np.random.default_rng(7)
    if name in ("arcsin", "arccos"):
        drawn = rng.uniform(-1, 1, 200_000).astype(np.float32)
        return np.concatenate([drawn, drawn[:1000] / 1000, SPECIAL])
    with np.errstate(all="ignore"):
        any_bits = rng.integers(0, 2**32, 100_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    any_bits = any_bits[np.abs(any_bits) > 2e-38]
    close = (rng.integers(-(2**24), 2**24, 100_000) * np.pi / 2).astype(np.float32)
    hardest = np.float32(16367173 * 2.0**72)
    return np.concatenate([any_bits, close, rng.normal(size=100_000).astype(np.float32), [hardest, -hardest], SPECIAL])


def _units(got, wanted):
    """The error in units of the last place of the right answer, where that is finite."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got[~finite], wanted[~finite].astype(np.float32))
    wanted = wanted[finite]
    return np.abs(got[finite].astype(np.float64) - wanted) / np.spacing(np.abs(wanted).astype(np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_last_place(name):
    x = _drawn(name)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x.astype(np.float64))
    got = np.asarray(phlox.jit(getattr(jnp, name))(x))
    assert got.dtype == np.float32
    assert _units(got, wanted).max() < 0.51
    zero = wanted == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


def test_last_place_of_log1p():
    rng = np.random.default_rng(7)
    x = _drawn("log1p")
    near = [-np.exp(-rng.uniform(0, 17, 100_000)), rng.uniform(-0.5, 2, 100_000), 10.0 ** rng.uniform(-12, 38, 100_000)]
    x = np.concatenate([x, *near, [-0.25, -1e-30, 2.0**25, 2.0**24, -1.5]]).astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = np.log1p(x.astype(np.float64))
    got = np.asarray(phlox.jit(jnp.log1p)(x))
    normal = ~(np.abs(wanted) < np.finfo(np.float32).tiny) | (wanted == 0)
    assert _units(got[normal], wanted[normal]).max() < 0.95  # XLA's operation has 2.5
    ordinary = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[ordinary]), np.signbit(wanted[ordinary]))


def test_last_place_of_arctan2():
    rng = np.random.default_rng(7)
    drawn = (rng.normal(size=(2, 100_000)) * 10.0 ** rng.uniform(-15, 15, (2, 100_000))).astype(np.float32)
    few = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)
    y, x = np.concatenate([drawn, np.array(np.meshgrid(few, few)).reshape(2, -1)], axis=1)
    wanted = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    normal = ~(np.abs(wanted) < np.finfo(np.float32).tiny) | (wanted == 0)
    got = np.asarray(phlox.jit(jnp.arctan2)(y, x))
    assert _units(got[normal], wanted[normal]).max() < 0.51
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def test_last_place_of_powers():
    rng = np.random.default_rng(7)
    x = 2.0 ** rng.uniform(-20, 20, 100_000)
    y = rng.normal(size=100_000) * rng.choice([0.1, 1, 30, 1e5], 100_000)
    bases = [1 + rng.normal(size=1000) * 1e-6, -(2.0 ** rng.uniform(-3, 3, 1000)), rng.integers(-9, 10, 1000)]
    wholes = [rng.normal(size=1000) * 1e7, rng.integers(-50, 50, 1000), rng.integers(-9, 10, 1000)]
    few = [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, 2**24 - 1, 2**24, -(2.0**31), np.inf, -np.inf, np.nan, 3e38, -3e38]
    pairs = np.array(np.meshgrid(few, few)).reshape(2, -1)
    x, y = np.concatenate([[x, y], [np.concatenate(bases), np.concatenate(wholes)], pairs], axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64))
    wanted[np.abs(wanted) < 2.0**-150] *= 0  # as in float32, with the sign
    normal = ~(np.abs(wanted) < np.finfo(np.float32).tiny) | (wanted == 0)
    got = np.asarray(phlox.jit(jnp.power)(x, y))
    assert _units(got[normal], wanted[normal]).max() < 0.51
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("exponent", [-3.5, -2.5, -1.5, -0.5, 1.5, 2.5, 3.5])
def test_last_place_of_powers_by_a_root(exponent):
    x = 2.0 ** np.random.default_rng(7).uniform(-120, 120, 20_000)
    few = [0, -0.0, 1, -1, -3e38, 3e38, 2.0**-126, np.inf, -np.inf, np.nan]
    x = np.concatenate([x, few]).astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), exponent)
    normal = ~(np.abs(wanted) < np.finfo(np.float32).tiny) | (wanted == 0)
    got = np.asarray(phlox.jit(lambda x: x**exponent)(x))
    assert _units(got[normal], wanted[normal]).max() < 0.501
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), False)


def test_powers_that_are_products_keep_the_operation():
    for exponent, kept in [(2.0, True), (0.5, True), (-1.0, True), (1.5, False)]:
        power = phlox.jit(lambda x, y=exponent: phlox.lax.pow(x, jnp.full_like(x, y)))
        assert ("stablehlo.power" in power.lower(np.ones(5000, np.float32)).as_text()) == kept


def test_remainders_are_exact():
    rng = np.random.default_rng(7)
    any_bits = rng.integers(0, 2**32, (2, 20_000), dtype=np.uint64).astype(np.uint32).view(np.float32)
    any_bits = np.where(np.abs(any_bits) < 2e-38, np.float32(1), any_bits)
    few = np.array([0, -0.0, 1, -1, 3, 2**-126, 3e38, np.inf, -np.inf, np.nan], np.float32)
    for x, y in [
        (rng.normal(size=20_000) * 100, rng.normal(size=20_000)),
        (rng.integers(-(2**28), 2**28, 20_000), rng.integers(1, 50, 20_000) * np.pi / 7),
        (np.float32(0.1) * rng.integers(1, 99, 20_000).astype(np.float32), np.full(20_000, 0.1)),
        (np.linspace(-9, 9, 20_000), np.ones(20_000)),
        (2.0 ** rng.uniform(-99, 99, 20_000), 2.0 ** rng.uniform(-99, 99, 20_000)),
        any_bits,
        np.tile(np.array(np.meshgrid(few, few)).reshape(2, -1), 20),
    ]:
        x, y = np.asarray(x, np.float32), np.asarray(y, np.float32)
        with np.errstate(all="ignore"):
            wanted = np.fmod(x, y)
        got = np.asarray(phlox.jit(phlox.lax.rem)(x, y))
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))
    slopes = phlox.grad(lambda x, y: (x % y).sum(), (0, 1))(jnp.full(2000, 7.5), jnp.full(2000, 2.0))
    assert [float(s[5]) for s in slopes] == [1, -3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    x = jnp.linspace(-3, 3, 4096).astype(dtype)
    wanted = np.sin(np.asarray(x.astype("float32")))
    np.testing.assert_array_equal(phlox.jit(jnp.sin)(x), jnp.asarray(wanted).astype(dtype))


def test_few_numbers_and_portable_programs_keep_the_operation():
    def text(f, size, platforms=None):
        x = phlox.ShapeDtypeStruct((size,), "float32")
        if platforms is None:
            return phlox.jit(f).lower(x).as_text()
        return export.export(phlox.jit(f), platforms=platforms)(x).mlir_module()

    operations = {"sin": "stablehlo.sine", "tan": "stablehlo.tan", "cbrt": "stablehlo.cbrt", "sinh": "chlo.sinh"}
    for name, operation in operations.items():
        f = getattr(jnp, name)
        assert operation in text(f, 10)
        assert operation not in text(f, 10_000)
        assert operation in text(f, 10_000, ["cpu", "cuda"])


def test_one_function_for_all_calls():
    text = phlox.jit(lambda x: jnp.sin(jnp.sin(x) + 1)).lower(np.ones(5000, np.float32)).as_text()
    assert text.count("func.func private @sine") == 1
    assert text.count("call @sine") == 2


def test_derivatives_and_batches():
    x = np.linspace(-4, 4, 2000, dtype=np.float32)
    slopes = phlox.grad(lambda x: jnp.sin(x).sum())(x)
    np.testing.assert_allclose(slopes, np.cos(x.astype(np.float64)), atol=1e-7)
    rows = phlox.vmap(jnp.tan)(x.reshape(40, 50))
    np.testing.assert_array_equal(rows.ravel(), phlox.jit(jnp.tan)(x))
    # The body of a loop has functions of the module as well.
    looped = phlox.lax.fori_loop(0, 3, lambda i, x: jnp.cos(x), x)
    np.testing.assert_allclose(looped, np.cos(np.cos(np.cos(x.astype(np.float64)))), atol=2e-7)
