"""One line of each kind: if this fails, look here first."""

import numpy as np

import phlox
import phlox.numpy as jnp


def test_the_five_transformations():
    x = jnp.arange(3.0)
    f = lambda x: (jnp.sin(x) * x).sum()
    expected = np.sin(np.arange(3)) + np.arange(3) * np.cos(np.arange(3))
    np.testing.assert_allclose(phlox.jit(phlox.grad(f))(x), expected, rtol=1e-5)
    np.testing.assert_allclose(phlox.vmap(phlox.grad(lambda x: jnp.sin(x) * x))(x), expected, rtol=1e-5)
    np.testing.assert_array_equal(phlox.pmap(lambda x: x + 1)(x), np.arange(3) + 1)
