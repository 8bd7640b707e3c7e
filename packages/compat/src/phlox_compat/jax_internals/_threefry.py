"""``jax._src.random.threefry2x32``: the functions of the generator threefry, on words of keys."""

from __future__ import annotations

from phlox.extend.random import threefry_prng_impl

threefry_seed = threefry_prng_impl.seed
threefry_split = threefry_prng_impl.split
threefry_fold_in = threefry_prng_impl.fold_in
threefry_random_bits = threefry_prng_impl.random_bits
