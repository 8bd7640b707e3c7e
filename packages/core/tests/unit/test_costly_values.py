"""Random numbers and values of special functions are computed once, and have the values that they have alone."""

import jax
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax, random
from phlox._xla import lower

KEY = random.key(0)
ROWS = np.random.default_rng(0).uniform(0.1, 0.9, (1000, 3)).astype(np.float32)

#: functions, an operand, and how many of their values are stored
PROGRAMS = {
    "bits": (lambda key: random.bits(key, (3000,)), KEY, 0),
    "uniform": (lambda key: jnp.exp(random.uniform(key, (3000,))), KEY, 1),
    "small": (lambda key: random.normal(key, (30, 3)).sum(1), KEY, 0),
    "keys": (lambda key: phlox.vmap(random.bits)(random.split(key, 3000)), KEY, 1),
    "sums of samples": (lambda key: random.normal(key, (1000, 3)).max(1), KEY, 2),
    "parts": (lambda key: jnp.concatenate([random.normal(key, (3000,)), jnp.zeros(2)]), KEY, 2),
    "function": (lambda x: lax.lgamma(x) + 1, ROWS, 0),
    "function of a function": (lambda x: jnp.sqrt(lax.erf_inv(x)) + lax.erf_inv(x), ROWS, 0),
    "largest in rows": (lambda x: (2 * lax.erf_inv(x)).max(1), ROWS, 1),
    "broadcast in a sum": (lambda x: (ROWS / x[:, :1, None] ** 1.5).sum(1), ROWS, 1),
    "cheap": (lambda x: jnp.concatenate([jnp.exp(x), x]), ROWS, 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_stored_values(name, monkeypatch):
    f, x, count = PROGRAMS[name]
    results = phlox.jit(f)(x)
    with_loops = phlox.jit(f).lower(x).as_text().count("stablehlo.while")
    monkeypatch.setattr(lower, "costly_values", lambda jaxpr: frozenset())
    phlox.clear_caches()
    again = phlox.jit(lambda x: f(x))
    # A value is stored by a loop without turns. Some forms of reductions store their results by one too.
    assert with_loops - again.lower(x).as_text().count("stablehlo.while") == count
    np.testing.assert_allclose(results, again(x), rtol=1e-6)


def test_samples_have_the_bits_of_jax():
    draws = (
        lambda m, key: m.random.normal(key, (3000, 3)) * 0.1 + 1,
        lambda m, key: m.random.truncated_normal(key, -1, 2, (5000,)),
        lambda m, key: m.vmap(lambda k: m.random.uniform(k, (3,), minval=-1.0))(m.random.split(key, 2000)),
        lambda m, key: m.numpy.where(m.random.bernoulli(key, 0.8, (64, 64)), 3.0, 0.0) / 0.8,
    )
    for draw in draws:
        mine, theirs = (m.jit(lambda key, m=m, draw=draw: draw(m, key))(m.random.key(3)) for m in (phlox, jax))
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_stored_bits_of_each_dtype(dtype):
    with phlox.enable_x64(True), jax.enable_x64(True):
        draw = phlox.jit(lambda key: random.randint(key, (3000,), 0, 99, dtype))
        assert draw.lower(KEY).as_text().count("stablehlo.while") == 2
        np.testing.assert_array_equal(draw(random.key(1)), jax.random.randint(jax.random.key(1), (3000,), 0, 99, dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_stored_functions_of_each_dtype(dtype):
    with phlox.enable_x64(True):
        x = jnp.asarray(ROWS, dtype)
        stored = phlox.jit(lambda x: jnp.concatenate([lax.erf_inv(x), x]))(x)
        np.testing.assert_array_equal(stored, jnp.concatenate([lax.erf_inv(x), x]))
