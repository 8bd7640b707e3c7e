"""Random numbers and values of special functions are computed once, and have the values that they have alone."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax, random
from phlox._xla.costly_values import costly_values

KEY = random.key(0)

#: functions of a key, and how many of their values are stored
PROGRAMS = {
    "one reader": (lambda key: jnp.exp(random.uniform(key, (3000,))), 0),
    "small": (lambda key: random.normal(key, (3,)).sum(), 0),
    "several readers": (lambda key: (x := random.uniform(key, (3000,)), x + 1, x[::-1]), 1),
    "sums": (lambda key: random.uniform(key, (1000, 3)).sum(1), 1),
    "parts": (lambda key: jnp.concatenate([random.bits(key, (3000,)), jnp.arange(2000, dtype="uint32")]), 1),
    "keys": (lambda key: phlox.vmap(random.bits)(random.split(key, 3000)), 1),
    "cheap": (lambda key: (x := jnp.sin(jnp.arange(3000.0)), x + 1, x[::-1]), 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_stored_values(name):
    f, count = PROGRAMS[name]
    assert len(costly_values(phlox.make_jaxpr(f)(KEY).jaxpr)) == count
    for actual, expected in zip(
        phlox.tree.leaves(phlox.jit(f)(random.key(0))), phlox.tree.leaves(f(random.key(0))), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_operands_of_costly_functions_are_stored():
    (stored,) = costly_values(phlox.make_jaxpr(lambda x: lax.erf_inv(lax.erf_inv(x)))(jnp.zeros(3000)).jaxpr)
    assert stored.aval.shape == (3000,)
    # A loop without turns stores the uniform samples, from which the normal ones are computed.
    assert phlox.jit(lambda key: random.normal(key, (1000, 3))).lower(KEY).as_text().count("stablehlo.while") == 1


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "float32", "float64", "complex64", "bfloat16"])
def test_values_of_each_dtype(dtype):
    x = np.arange(3000).astype(dtype) if dtype != "bfloat16" else jnp.arange(3000.0, dtype=dtype)

    def f(x):
        bits = random.bits(KEY, x.shape, "uint32")
        y = (bits * 0).astype(x.dtype) + x
        return y, y + y[::-1]

    with phlox.enable_x64(True):
        for actual, expected in zip(phlox.jit(f)(x), f(jnp.asarray(x)), strict=True):
            np.testing.assert_array_equal(actual, expected)
