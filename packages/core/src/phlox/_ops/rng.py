"""Random bits as the compiler makes them: fast, and others on other platforms. `phlox.random` has its own."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from .._base.errors import DtypeError, ShapeError
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .._ir.primitive import Primitive
from .._xla.text import Function, Value


class RandomAlgorithm(enum.IntEnum):
    """How `rng_bit_generator` makes its bits.

    >>> key, bits = phlox.lax.rng_bit_generator(jnp.zeros(4, "uint32"), (2,), algorithm=RandomAlgorithm.RNG_PHILOX)
    >>> bits.shape
    (2,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def _bits_types(
    key: ShapedArray, *, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm
) -> list[ShapedArray]:
    if (key.shape, key.dtype) not in (((4,), dtypes.uint32), ((2,), dtypes.uint64)):
        raise ShapeError(f"rng_bit_generator: the key must be u32[4] or u64[2], got {key.short}", shapes=[key.shape])
    return [key, shaped(shape, dtype)]


def _bits_text(
    f: Function, key: Value, *, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm
) -> list[Value]:
    # XLA's key is u64[2]; without 64 bits in the language it is written as u32[4].
    narrow = key.aval.dtype == dtypes.uint32
    state, pairs = shaped((2,), dtypes.uint64), shaped((2, 2), dtypes.uint32)
    words = f.outs[0]
    if narrow:
        key = f.unlike("stablehlo.bitcast_convert", f.unlike("stablehlo.reshape", key, pairs), state)
    name = algorithm.name.removeprefix("RNG_")
    out = f.outs[1]
    kind = f"rng_algorithm = #stablehlo<rng_algorithm {name}>"
    state_out, bits = f.op("stablehlo.rng_bit_generator", [key], [state, out], kind)
    if narrow:
        halves = f.unlike("stablehlo.bitcast_convert", state_out, pairs)
        state_out = f.unlike("stablehlo.reshape", halves, words)
    return [state_out, bits]


rng_bit_generator = Primitive("rng_bit_generator", multiple_results=True, types=_bits_types, lower=_bits_text)


def _uniform_types(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.shape or b.shape:
        raise ShapeError(f"rng_uniform: bounds must be numbers, got {a.short} and {b.short}", shapes=[a.shape, b.shape])
    if a.dtype != b.dtype:
        raise DtypeError(f"rng_uniform: bounds of different dtypes, {a.short} and {b.short}")
    return shaped(shape, a.dtype, a.weak_type and b.weak_type)


def _uniform_text(f: Function, a: Value, b: Value, *, shape: Sequence[int]) -> Value:
    lengths = f.constant(list(shape), shaped((len(shape),), dtypes.int64))
    return f.op("stablehlo.rng", [a, b, lengths], f.out, "rng_distribution = #stablehlo<rng_distribution UNIFORM>")


rng_uniform = Primitive("rng_uniform", types=_uniform_types, lower=_uniform_text)
