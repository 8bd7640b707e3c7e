"""``phlox.random``: random numbers from explicit keys, the same streams as ``jax.random``.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

Functions take new-style keys (`key`) and old-style ones (`PRNGKey`, arrays of two uint32).
"""

from ._keys import PRNGKey, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from ._samplers import bernoulli, bits, normal, permutation, randint, truncated_normal, uniform

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_impl",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
