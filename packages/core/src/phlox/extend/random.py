"""``phlox.extend.random``: random number generators, and a function to define one.

double = define_prng_impl(key_shape=(2, 2), seed=..., split=..., random_bits=..., fold_in=..., name="double", tag="2x")
key = phlox.random.key(0, impl=double)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import numpy as jnp
from .._base.errors import DtypeError
from .._base.public_names import publish
from .._operands.checks import type_of
from .._ops.random.generators import (
    RBG as rbg_prng_impl,
    THREEFRY as threefry_prng_impl,
    UNSAFE_RBG as unsafe_rbg_prng_impl,
    Impl,
)
from .._ops.random.keys import random_seed as _random_seed
from .._ops.random.threefry import threefry2x32 as threefry2x32_p
from ..typing import Array, ArrayLike

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Any:
    """Defines a random number generator, for `phlox.random.key` and other functions with an option `impl`.

    A key is an array of uint32 of shape `key_shape`. The functions take one key; they are mapped over arrays of keys.

    Args:
      key_shape: shape of one key, an array of uint32.
      seed: ``seed(integer)`` returns a key.
      split: ``split(key, shape)`` returns an array of keys, of type uint32[*shape, *key_shape].
      random_bits: ``random_bits(key, width, shape)`` returns unsigned integers of `width` bits (8, 16, 32 or 64).
      fold_in: ``fold_in(key, data)`` returns a key; `data` is a uint32.
      name: name of the generator in messages.
      tag: name in printed types: keys have dtype ``key<tag>``.

    Returns:
      A hashable object that represents the generator.

    >>> double = define_prng_impl(
    ...     key_shape=(2, 2),
    ...     seed=lambda seed: jnp.tile(threefry_prng_impl.seed(seed), (2, 1)),
    ...     split=lambda key, shape: jnp.moveaxis(threefry_prng_impl.split(key, shape), 0, -2),
    ...     random_bits=lambda key, width, shape: threefry_prng_impl.random_bits(key[0], width, shape),
    ...     fold_in=lambda key, data: threefry_prng_impl.fold_in(key, jnp.full(2, data)),
    ...     name="double",
    ...     tag="2x",
    ... )
    >>> phlox.random.key(0, impl=double).dtype
    key<2x>
    """
    return Impl(tuple(key_shape), seed, split, random_bits, fold_in, name, tag)


def random_seed(seeds: ArrayLike, impl: Any) -> Array:
    """Keys of a generator from an integer seed or an array of seeds.

    Args:
      seeds: an integer, or an array of integers of any shape.
      impl: the generator, such as `threefry_prng_impl`.

    Returns:
      An array of keys, of the shape of `seeds`.

    >>> random_seed(np.arange(2), threefry_prng_impl).shape
    (2,)
    """
    # Outside of 64-bit mode a large Python int, such as a hash, would be refused. An int64 is cut, as in JAX.
    seeds = jnp.asarray(np.int64(seeds)) if isinstance(seeds, int) else jnp.asarray(seeds)
    return _random_seed(seeds, impl=impl)


def seed_with_impl(impl: Any, seed: ArrayLike) -> Array:
    """`random_seed` with the generator first.

    Args:
      impl: the generator, such as `threefry_prng_impl`.
      seed: an integer, or an array of integers of any shape.

    Returns:
      An array of keys, of the shape of `seed`.

    >>> seed_with_impl(rbg_prng_impl, 0).dtype
    key<rbg>
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: tuple[ArrayLike, ArrayLike], count: ArrayLike) -> Array:
    """An array of counters encrypted with Threefry-2x32 (Salmon et al., 2011).

    Args:
      keypair: the two words of the key, uint32 without axes.
      count: counters, uint32 of any shape. Their first half and their second are the two words of the blocks.

    Returns:
      A uint32 array of the shape of `count`.

    Raises:
      DtypeError: an argument is not uint32.

    >>> threefry_2x32((np.uint32(0), np.uint32(0)), np.zeros(2, np.uint32))
    Array([1797259609, 2579123966], dtype=uint32)
    """
    key_1, key_2 = keypair
    avals = [type_of(x) for x in (key_1, key_2, count)]
    if any(a.dtype != np.uint32 for a in avals):
        raise DtypeError(f"threefry_2x32 requires uint32 arguments, got {', '.join(a.short for a in avals)}")
    flat = jnp.ravel(jnp.asarray(count))
    odd = flat.size % 2
    padded = jnp.concatenate([flat, jnp.zeros(odd, np.uint32)])
    first, second = threefry2x32_p.bind(key_1, key_2, *jnp.split(padded, 2))
    return jnp.concatenate([first, second])[: flat.size].reshape(avals[2].shape)


publish(__name__)
