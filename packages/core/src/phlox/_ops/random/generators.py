"""PRNG implementations: their interface `Impl`, and a table of those that phlox has.

An implementation makes keys from seeds, splits them, folds numbers into them, and makes random bits. All streams agree
with JAX's bit for bit; those of "rbg" and "unsafe_rbg" depend on the platform, because XLA's own generator does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._base.errors import OptionError
from ..._ir import dtypes
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, place_axis, run_batched
from ..elementwise.logic import xor
from ..structure.shape import broadcast_in_dim, concatenate, reshape, transpose
from ..structure.slicing import along
from . import rng, threefry

Shape = tuple[int, ...]


class Impl(NamedTuple):
    """A PRNG implementation. Its keys are arrays of uint32 of shape `key_shape`; its functions take one key (K):

    seed: integer -> K;  split: K, shape -> K[*shape];  random_bits: K, bits of a number, shape -> uint[*shape];
    fold_in: K, uint32 -> K.  If `elementwise` is true, they also take arrays of keys.
    """

    key_shape: Shape
    seed: Callable[[Any], Any]
    split: Callable[[Any, Shape], Any]
    random_bits: Callable[[Any, int, Shape], Any]
    fold_in: Callable[[Any, Any], Any]
    name: str = "<unnamed>"
    tag: str = "?"
    elementwise: bool = False

    def __repr__(self) -> str:
        return self.tag

    def each(self, function: Callable[..., Any], ranks: Sequence[int], *args: Any) -> Any:
        """Applies `function` to each key of arrays of keys.

        `ranks` has the number of batch axes of each argument: 0, or the number of the others. Batch axes of length one
        are broadcast.
        """
        if self.elementwise or not any(ranks):
            return function(*args)
        sizes = {typeof(x).shape[0] for x, rank in zip(args, ranks, strict=True) if rank}
        # The outermost batch axis is mapped, and `each` calls itself for the axes within.
        size = 1 if sizes == {1} else max(sizes - {1})
        values, dims, inner = [], [], []
        for x, rank in zip(args, ranks, strict=True):
            aval = typeof(x)
            mapped = rank > 0 and aval.shape[0] == size
            dims.append(0 if mapped else None)
            # An axis of length one is dropped, so that its only element serves all keys.
            alone = rank > 0 and not mapped
            values.append(reshape(x, new_sizes=aval.shape[1:], dimensions=None) if alone else x)
            inner.append(max(rank - 1, 0))
        (out,), (dim,) = run_batched(lambda *xs: [self.each(function, inner, *xs)], BatchAxis(size), values, dims)
        return place_axis(out, dim, 0, size)


THREEFRY = Impl(
    (2,), threefry.seed, threefry.split, threefry.bits, threefry.fold_in, "threefry2x32", "fry", elementwise=True
)


# --- XLA's own generator --------------------------------------------------------------------------------
#
# Under vmap the bits of all examples are made from the first key.


def _bits(key: Any, bit_width: int, shape: Shape) -> Any:
    dtype = getattr(dtypes, f"uint{bit_width}")
    return rng.rng_bit_generator.bind(key, shape=shape, dtype=dtype, algorithm=rng.RandomAlgorithm.RNG_DEFAULT)[1]


def _halves(key: Any) -> Any:
    return reshape(key, new_sizes=(2, 2), dimensions=None)


def _rbg_seed(seed: Any) -> Any:
    half = threefry.seed(seed)
    return concatenate(half, half, dimension=0)


def _rbg_split(key: Any, shape: Shape) -> Any:
    """Splits both halves of the key as threefry keys."""
    rank = len(shape)
    # A key of "rbg" has four words, two threefry keys side by side.
    pairs = threefry.split(_halves(key), shape)
    pairs = transpose(pairs, permutation=(*range(1, rank + 1), 0, rank + 1))
    return reshape(pairs, new_sizes=(*shape, 4), dimensions=None)


def _rbg_fold_in(key: Any, data: Any) -> Any:
    twice = broadcast_in_dim(data, shape=(2,), broadcast_dimensions=())
    return reshape(threefry.fold_in(_halves(key), twice), new_sizes=(4,), dimensions=None)


def _unsafe_split(key: Any, shape: Shape) -> Any:
    """Uses the first of every ten blocks of random bits made from the key."""
    count = math.prod(shape)
    bits = _bits(key, 32, (10 * count, 4))
    return reshape(along(bits, 0, 0, 10 * count, 10), new_sizes=(*shape, 4), dimensions=None)


def _unsafe_fold_in(key: Any, data: Any) -> Any:
    # As in JAX, ten blocks of bits serve as a hash function, of which the last block is the result.
    bits = _bits(_rbg_seed(data), 32, (10, 4))
    return xor(key, reshape(along(bits, 0, 9, 10), new_sizes=(4,), dimensions=None))


RBG = Impl((4,), _rbg_seed, _rbg_split, _bits, _rbg_fold_in, "rbg", "rbg")
UNSAFE_RBG = Impl((4,), _rbg_seed, _unsafe_split, _bits, _unsafe_fold_in, "unsafe_rbg", "urbg")

# --- by name --------------------------------------------------------------------------------------------

#: implementations by name; `named` adds the rarer ones when they are first used
KNOWN = {impl.name: impl for impl in (THREEFRY, RBG, UNSAFE_RBG)}
NAMES = ("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")


def named(name: str) -> Impl:
    """The PRNG implementation with this name."""
    if name not in NAMES:
        raise OptionError(
            f'unrecognized PRNG implementation "{name}"', instead="one of " + ", ".join(map(repr, NAMES)), value=name
        )
    if name not in KNOWN:
        from . import ciphers

        KNOWN.update({impl.name: impl for impl in ciphers.IMPLS})
    return KNOWN[name]
