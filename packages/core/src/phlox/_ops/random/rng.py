"""XLA's own random bits: fast, but different on each platform. (`phlox.random` uses them for "rbg" keys only.)"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import whole
from ..._trace.trace import typeof
from ..._transform.array_operations import insert_axis
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._xla.text import Function, Value
from ..structure.shape import broadcast_in_dim, concatenate, reshape
from ..structure.slicing import along


class RandomAlgorithm(enum.IntEnum):
    """Algorithms of `rng_bit_generator`.

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


def _bits_lower(
    f: Function, key: Value, *, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm
) -> list[Value]:
    # XLA's key is u64[2]; without 64-bit mode it is passed as u32[4].
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


def _bits_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], *, shape: tuple[int, ...], **params: Any
) -> tuple[list[Any], list[Dim]]:
    """The bits of all examples are made from the first key, and only that key advances, as in JAX: XLA's generator
    takes one key."""
    keys = place_axis(args[0], dims[0], 0, axis.size)
    if not axis.size:  # no first key
        bits = broadcast_in_dim(np.zeros((), params["dtype"]), shape=(0, *shape), broadcast_dimensions=())
        return [keys, bits], [0, 0]
    first = reshape(along(keys, 0, 0, 1), new_sizes=typeof(keys).shape[1:], dimensions=None)
    state, bits = rng_bit_generator.bind(first, shape=(axis.size, *shape), **params)
    # The other keys are returned unchanged.
    return [concatenate(insert_axis(state, 1, 0), along(keys, 0, 1, axis.size), dimension=0), bits], [0, 0]


rng_bit_generator = Primitive(
    "rng_bit_generator",
    multiple_results=True,
    types=_bits_types,
    sharding=whole,
    lower=_bits_lower,
    batch=_bits_batch,
    nan_checked=False,
)


def _uniform_types(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.shape or b.shape:
        raise ShapeError(f"rng_uniform: bounds must be numbers, got {a.short} and {b.short}", shapes=[a.shape, b.shape])
    if a.dtype != b.dtype:
        raise DtypeError(f"rng_uniform: bounds of different dtypes, {a.short} and {b.short}")
    return shaped(shape, a.dtype, a.weak_type and b.weak_type)


def _uniform_lower(f: Function, a: Value, b: Value, *, shape: Sequence[int]) -> Value:
    lengths = f.constant(list(shape), shaped((len(shape),), dtypes.int64))
    return f.op("stablehlo.rng", [a, b, lengths], f.out, "rng_distribution = #stablehlo<rng_distribution UNIFORM>")


rng_uniform = Primitive("rng_uniform", types=_uniform_types, lower=_uniform_lower, nan_checked=True)
