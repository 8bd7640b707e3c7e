"""Programs of functions of elements of large arrays are compiled for wide vectors, where the processor suits."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox._xla import vector_width

WIDE = ("xla_cpu_prefer_vector_width", 512)


def options(f, *args):
    return phlox.jit(f).lower(*args)._lowering.default_options


@pytest.mark.parametrize("has_wide_vectors", [False, True])
def test_large_programs(monkeypatch, has_wide_vectors):
    monkeypatch.setattr(vector_width, "_has_wide_vectors", lambda: has_wide_vectors)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    large, small = np.ones(5000, np.float32), np.ones(50, np.float32)
    inside = lambda x: phlox.lax.scan(lambda c, _: (jnp.tile(c, 100)[:50], None), x, None, length=3)[0]
    sums = lambda x: phlox.lax.cond(x[0] > 0, jnp.sum, jnp.max, jnp.exp(x))
    cases = [(jnp.exp, large, True), (jnp.exp, small, False), (inside, small, True), (sums, large, False)]
    for f, x, suits in cases:
        assert (WIDE in options(f, x)) == (suits and has_wide_vectors)


def test_the_user_decides(monkeypatch):
    monkeypatch.setattr(vector_width, "_has_wide_vectors", lambda: True)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=256")
    assert WIDE not in options(jnp.exp, np.ones(5000, np.float32))


def test_bits():
    """The width changes no element-wise result."""
    x = np.random.default_rng(0).uniform(-5, 5, 5003).astype(np.float32)
    for f in (jnp.exp, jnp.log1p, phlox.nn.gelu, lambda x: jnp.sin(x) * x + 1):
        narrow, wide = (
            phlox.jit(f, compiler_options={"xla_cpu_prefer_vector_width": width})(x) for width in (256, 512)
        )
        np.testing.assert_array_equal(narrow, wide)
