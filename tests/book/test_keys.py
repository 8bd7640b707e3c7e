"""Random numbers come from keys: the same key gives the same numbers, new numbers need a new key."""

import numpy as np

import phlox.numpy as jnp
from phlox import jit, random, vmap


def test_a_key_is_two_numbers():
    key = random.PRNGKey(42)
    assert key.tolist() == [0, 42]
    assert key.dtype == jnp.uint32


def test_the_same_key_gives_the_same_numbers():
    key = random.PRNGKey(0)
    assert random.uniform(key) == random.uniform(key) == np.float32(0.947667)
    assert random.uniform(key, (3,)).shape == (3,)


def test_split_for_new_numbers():
    key = random.PRNGKey(0)
    key, subkey = random.split(key)
    assert key.tolist() == [1797259609, 2579123966]
    assert subkey.tolist() == [928981903, 3453687069]
    first = random.uniform(subkey)
    assert first == np.float32(0.0072938204)
    key, subkey = random.split(key)
    assert random.uniform(subkey) != first


def test_several_keys_at_once():
    keys = random.split(random.PRNGKey(1), 4)
    assert keys.shape == (4, 2)
    numbers = vmap(random.normal)(keys)
    assert len(set(numbers.tolist())) == 4
    np.testing.assert_array_equal(numbers, [random.normal(k) for k in keys])


def test_keys_of_the_new_kind():
    key = random.key(0)
    key, subkey = random.split(key)
    assert random.uniform(subkey) == np.float32(0.0072938204)
    assert random.key_data(key).tolist() == [1797259609, 2579123966]
    assert key.shape == () and str(key.dtype) == "key<fry>"


def test_keys_go_through_jit():
    @jit
    def noisy(key, x):
        key, subkey = random.split(key)
        return key, x + random.normal(subkey, x.shape)

    key, first = noisy(random.PRNGKey(0), jnp.zeros(3))
    key, second = noisy(key, jnp.zeros(3))
    assert not np.array_equal(first, second)
