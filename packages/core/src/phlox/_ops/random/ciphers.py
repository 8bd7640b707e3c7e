"""Counter-based PRNG implementations: Threefry with four words, Philox with two and with four (Salmon et al., 2011).

Each consists of a cipher, which maps the words of a key and of a counter to as many random words, and parameters of
`_generator` that choose the counters: those of JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..elementwise.arithmetic import add, mul
from ..elementwise.logic import mulhi, or_, shift_left, shift_right_logical, xor
from ..structure.numbers import scalar_of
from ..structure.shape import broadcast_in_dim, concatenate, convert, reshape
from ..structure.slicing import along
from .generators import Impl, Shape
from .threefry import _PARITY, counters, high_and_low

Words = Sequence[Any]


def _number(n: int) -> Any:
    return np.uint32(n)


def _threefry(key: Words, x: Words) -> Words:
    schedule = [*key, functools.reduce(xor, key, _PARITY)]
    x = [add(a, k) for a, k in zip(x, key, strict=True)]
    # The rotations for four words of 32 bits, and twenty rounds, as in the paper
    rotations = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
    for turn in range(20):
        # Even and odd rounds mix different pairs of words.
        pairs = ((0, 1), (2, 3)) if turn % 2 == 0 else ((0, 3), (2, 1))
        for (a, b), by in zip(pairs, rotations[turn % 8], strict=True):
            x[a] = add(x[a], x[b])
            up, down = shift_left(x[b], _number(by)), shift_right_logical(x[b], _number(32 - by))
            x[b] = xor(x[a], or_(up, down))
        if turn % 4 == 3:
            block = turn // 4 + 1
            x = [add(a, schedule[(block + i) % 5]) for i, a in enumerate(x)]
            x[3] = add(x[3], _number(block))
    return x


def _rounds(key: Words) -> Any:
    """The round keys of the ten rounds of Philox."""
    # The fractions of the golden ratio and of the root of 3, as in the paper.
    steps = (0x9E3779B9, 0xBB67AE85)
    for _ in range(10):
        yield key
        key = [add(k, _number(step)) for k, step in zip(key, steps, strict=False)]


def _philox_2(key: Words, x: Words) -> Words:
    # The paper's multiplier for two words; below, those for four words
    factor = _number(0xD256D193)
    for (k,) in _rounds(key):
        x = [xor(xor(mulhi(factor, x[0]), x[1]), k), mul(factor, x[0])]
    return x


def _philox_4(key: Words, x: Words) -> Words:
    first, second = _number(0xD2511F53), _number(0xCD9E8D57)
    for k0, k1 in _rounds(key):
        x = [
            xor(xor(mulhi(second, x[2]), x[1]), k0),
            mul(second, x[2]),
            xor(xor(mulhi(first, x[0]), x[3]), k1),
            mul(first, x[0]),
        ]
    return x


def _stacked(words: Words, shape: Shape) -> Any:
    columns = [broadcast_in_dim(w, shape=(*shape, 1), broadcast_dimensions=tuple(range(len(shape)))) for w in words]
    return columns[0] if len(columns) == 1 else concatenate(*columns, dimension=len(shape))


def _generator(
    name: str,
    tag: str,
    size: int,
    block: int,
    cipher: Callable[[Words, Words], Words],
    *,
    seed_is_key: bool = False,
    pairs: bool = False,
) -> Impl:
    """An implementation whose keys have `size` words and whose cipher encrypts blocks of `block` words.

    To make a key, the seed is encrypted; with `seed_is_key`, zeros are encrypted under the seed. For new keys the
    counter is in the last words of the block, for random bits in the first words. 64-bit numbers are made of two words,
    or with `pairs` of four, two of which are mixed into each word.
    """

    def words(key: Any) -> Words:
        return [reshape(along(key, 0, i, i + 1), new_sizes=(), dimensions=None) for i in range(size)]

    def padded(words: Words, length: int, last: bool = False) -> Words:
        zeros = [_number(0)] * (length - len(words))
        return [*zeros, *words] if last else [*words, *zeros]

    def seed(seed: Any) -> Any:
        words = high_and_low(seed)
        key, x = (padded(words, size), padded((), block)) if seed_is_key else (padded((), size), padded(words, block))
        return _stacked(cipher(key, x)[:size], ())

    def split(key: Any, shape: Shape) -> Any:
        return _stacked(cipher(words(key), padded(counters(shape), block, True))[:size], shape)

    def fold_in(key: Any, data: Any) -> Any:
        return _stacked(cipher(words(key), padded([data], block, True))[:size], ())

    def random_bits(key: Any, bit_width: int, shape: Shape) -> Any:
        out = cipher(words(key), padded(counters(shape), block))
        if bit_width == 64:
            if pairs:
                out = [xor(out[0], out[2]), xor(out[1], out[3])]
            high, low = (convert(w, dtypes.uint64) for w in out[:2])
            return or_(shift_left(high, scalar_of(32, dtypes.uint64)), low)
        # All words of a block make one number, as in JAX.
        mixed = functools.reduce(xor, out)
        return mixed if bit_width == 32 else convert(mixed, np.dtype(f"uint{bit_width}"))

    return Impl((size,), seed, split, random_bits, fold_in, name, tag)


IMPLS = (
    _generator("threefry4x32", "fry4", 4, 4, _threefry, seed_is_key=True, pairs=True),
    _generator("philox2x32", "phx2", 1, 2, _philox_2),
    _generator("philox4x32", "phx4", 2, 4, _philox_4),
)
