"""pmap: one program on eight devices (virtual ones here), and sums over all of them."""

import numpy as np
import pytest

import phlox.numpy as jnp
from phlox import device_count, lax, pmap, random, vmap

keys = random.split(random.PRNGKey(0), 8)


@pytest.fixture(scope="module")
def matrices():
    """A matrix of normal numbers on each device; the book has 5000 by 6000."""
    return pmap(lambda key: random.normal(key, (50, 60)))(keys)


def test_random_numbers_on_each_device(matrices):
    assert device_count() == 8
    assert matrices.shape == (8, 50, 60)
    assert len(matrices.devices()) == 8
    np.testing.assert_array_equal(matrices, vmap(lambda key: random.normal(key, (50, 60)))(keys))


def test_a_product_on_each_device(matrices):
    result = pmap(lambda x: jnp.dot(x, x.T))(matrices)
    assert result.shape == (8, 50, 50)
    np.testing.assert_allclose(result[3], matrices[3] @ matrices[3].T, rtol=1e-4, atol=1e-4)


def test_a_mean_on_each_device(matrices):
    result = pmap(jnp.mean)(matrices)
    assert result.shape == (8,)
    np.testing.assert_allclose(result, np.asarray(matrices).mean((1, 2)), rtol=1e-4, atol=1e-6)


def normalize(x):
    return x / lax.psum(x, "i")


def test_a_sum_over_devices():
    np.testing.assert_allclose(pmap(normalize, axis_name="i")(jnp.arange(4.0)), [0, 1 / 6, 1 / 3, 1 / 2], rtol=1e-6)
    np.testing.assert_allclose(vmap(normalize, axis_name="i")(jnp.arange(4.0)), [0, 1 / 6, 1 / 3, 1 / 2], rtol=1e-6)


def test_other_collectives():
    x = jnp.arange(8.0)
    np.testing.assert_array_equal(pmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(x), np.arange(8.0) - 3.5)
    np.testing.assert_array_equal(pmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x), [7.0] * 8)
    np.testing.assert_array_equal(
        pmap(lambda x: lax.pmin(x, "i") + lax.axis_index("i"), axis_name="i")(x), np.arange(8)
    )


def test_too_few_devices():
    with pytest.raises(ValueError, match="9"):
        pmap(lambda x: x)(jnp.zeros(9))
