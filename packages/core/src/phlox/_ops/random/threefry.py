"""Threefry-2x32, the counter-based generator behind all random numbers (Salmon et al., 2011).

`threefry2x32` encrypts pairs of 32-bit counters under a key of two 32-bit words, in twenty rounds of add, rotate and
xor. The other functions choose the counters: those of JAX, so that streams agree bit for bit. The flag
`threefry_partitionable` has two choices: a counter for each element, or, if it is False, the older one of `_halves`.
Keys are arrays of shape (..., 2) here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base import config
from ..._base.errors import DtypeError, OptionError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, Dim
from ..._transform.padding import pad_elementwise
from ..._xla.text import Function, Value
from ..elementwise.families import batch_elementwise, broadcast_shape, fit
from ..elementwise.logic import or_, shift_left, shift_right_logical, xor
from ..structure.iota import iota
from ..structure.numbers import scalar_of
from ..structure.shape import bitcast_convert_type, broadcast_in_dim, concatenate, convert, reshape
from ..structure.slicing import along

u32 = dtypes.uint32
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)

# --- the block cipher -----------------------------------------------------------------------------------


def _types(*avals: ShapedArray) -> list[ShapedArray]:
    if any(a.dtype != u32 for a in avals):
        raise DtypeError(f"threefry2x32 requires uint32 arguments, got {', '.join(a.short for a in avals)}")
    shape = broadcast_shape("threefry2x32", avals)
    return [shaped(shape, u32)] * 2


def _lower(f: Function, k0: Value, k1: Value, x0: Value, x1: Value) -> list[Value]:
    aval, shape = f.out, f.out.shape
    # Small arrays may ask for JAX's form, so that XLA fuses and rounds what follows as in JAX.
    if aval.size <= config.current().jaxlike_lowering_size and k0.aval is k1.aval:
        return _loop(f, k0, k1, fit(f, x0, shape), fit(f, x1, shape))
    k0, k1, x0, x1 = (fit(f, v, shape) for v in (k0, k1, x0, x1))
    number = functools.cache(lambda n: f.constant(n, aval))

    def op(name: str, a: Value, b: Value) -> Value:
        return f.same(f"stablehlo.{name}", a, b)

    def rotate(v: Value, by: int) -> Value:
        up = op("shift_left", v, number(by))
        return op("or", up, op("shift_right_logical", v, number(32 - by)))

    # The key schedule: the two words and their parity, added in turn after every four rounds, with the number of the
    # block.
    keys = [k0, k1, op("xor", op("xor", k0, k1), number(_PARITY))]
    x0, x1 = op("add", x0, keys[0]), op("add", x1, keys[1])
    for block in range(5):
        for by in _ROTATIONS[block % 2]:
            x0 = op("add", x0, x1)
            x1 = op("xor", rotate(x1, by), x0)
        x0 = op("add", x0, keys[(block + 1) % 3])
        x1 = op("add", x1, op("add", keys[(block + 2) % 3], number(block + 1)))
    return [x0, x1]


def _loop(f: Function, k0: Value, k1: Value, x0: Value, x1: Value) -> list[Value]:
    """The rounds as a loop, which is the form of JAX: two to three times slower, but no operation after it is fused."""
    aval, count, four = f.out, shaped((), dtypes.int32), shaped((4,), u32)
    word = shaped((), u32)

    def op(g: Function, name: str, a: Value, b: Value) -> Value:
        return g.same(f"stablehlo.{name}", a, b)

    def body(g: Function, i: Value, x0: Value, x1: Value, *rest: Value) -> list[Value]:
        k0, k1, k2, rotations, others = rest
        i = op(g, "add", i, g.constant(1, count))
        for j in range(4):
            by = g.unlike("stablehlo.reshape", g.slice_in_dim(rotations, j, j + 1, 0), word)
            x0 = op(g, "add", x0, x1)
            up = op(g, "shift_left", x1, g.broadcast(by, aval.shape))
            back = g.broadcast(op(g, "subtract", g.constant(32, word), by), aval.shape)
            x1 = op(g, "xor", x0, op(g, "or", up, op(g, "shift_right_logical", x1, back)))
        x0, x1 = op(g, "add", x0, fit(g, k1, aval.shape)), op(g, "add", x1, fit(g, k2, aval.shape))
        x1 = op(g, "add", x1, g.broadcast(g.convert(i, u32), aval.shape))
        return [i, x0, x1, k1, k2, k0, others, rotations]

    k2 = op(f, "xor", op(f, "xor", k0, k1), f.constant(_PARITY, k0.aval))
    x0, x1 = op(f, "add", x0, fit(f, k0, aval.shape)), op(f, "add", x1, fit(f, k1, aval.shape))
    lists = [f.constant(np.array(each, np.uint32), four) for each in _ROTATIONS]
    start = [f.constant(0, count), x0, x1, k0, k1, k2, *lists]
    avals = [v.aval for v in start]
    test = f.region(avals, lambda g, i, *_: [g.compare("LT", i, g.constant(5, count))])
    results: list[Value] = f.op("stablehlo.while", start, avals, regions=[test, f.region(avals, body)])
    return results[1:3]


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim]) -> tuple[Any, Any]:
    operands, dim = batch_elementwise(axis, args, dims)
    return threefry2x32.bind(*operands), [dim, dim]


threefry2x32 = Primitive(
    "threefry2x32",
    multiple_results=True,
    types=_types,
    lower=_lower,
    batch=_batch,
    pad=pad_elementwise,
    nan_checked=False,
)

# --- keys and counters ----------------------------------------------------------------------------------


def words(keys: Any) -> tuple[Any, Any]:
    """The two words of each key."""
    last = typeof(keys).ndim - 1
    shape = typeof(keys).shape[:-1]
    first, second = (reshape(along(keys, last, i, i + 1), new_sizes=shape, dimensions=None) for i in (0, 1))
    return first, second


def pair(first: Any, second: Any) -> Any:
    """An array of keys from arrays of their first and second words."""
    shape = typeof(first).shape
    columns = [
        broadcast_in_dim(w, shape=(*shape, 1), broadcast_dimensions=tuple(range(len(shape)))) for w in (first, second)
    ]
    return concatenate(*columns, dimension=len(shape))


def counters(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The counters 0, 1, 2 … as arrays of this shape: high words and low words."""
    high = broadcast_in_dim(np.uint32(0), shape=shape, broadcast_dimensions=()) if shape else np.uint32(0)
    if not shape:
        return high, np.uint32(0)
    size = math.prod(shape)
    if size <= 2**32:
        flat = iota(dtype=u32, shape=(size,), dimension=0)
        return high, reshape(flat, new_sizes=shape, dimensions=None)
    # Without 64-bit mode the words cannot be separated by 64-bit shifts, but a bitcast to two words works.
    pairs = bitcast_convert_type(iota(dtype=dtypes.uint64, shape=(size,), dimension=0), new_dtype=u32)
    low, top = (reshape(along(pairs, 1, i, i + 1), new_sizes=shape, dimensions=None) for i in (0, 1))
    return top, low


def _encrypt(keys: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """The two output words for each key and counter; their shape is that of the keys, followed by the counters'."""
    k0, k1 = words(keys)
    outer, shape = typeof(k0).shape, typeof(low).shape
    if outer:
        full = (*outer, *shape)
        front, back = tuple(range(len(outer))), tuple(range(len(outer), len(full)))
        k0, k1 = (broadcast_in_dim(k, shape=full, broadcast_dimensions=front) for k in (k0, k1))
        high, low = (broadcast_in_dim(c, shape=full, broadcast_dimensions=back) for c in (high, low))
    first, second = threefry2x32.bind(k0, k1, high, low)
    return first, second


def _halves(keys: Any, count: int) -> Any:
    """The first `count` words for each key without `threefry_partitionable`, along a new last axis.

    Counters are encrypted in pairs of one of the first half with one of the second half, which zero makes even.
    """
    if count >= 2**32:
        raise OptionError(f"{count} random words of one key need threefry_partitionable, which is False")
    counter = iota(dtype=u32, shape=(count,), dimension=0)
    middle = (count + 1) // 2
    second = along(counter, 0, middle, count)
    if count % 2:
        second = concatenate(second, np.zeros(1, np.uint32), dimension=0)
    halves = _encrypt(keys, along(counter, 0, 0, middle), second)
    last = typeof(keys).ndim - 1
    return along(concatenate(*halves, dimension=last), last, 0, count)


def high_and_low(seeds: Any) -> tuple[Any, Any]:
    """The high and the low 32 bits of integers."""
    aval = typeof(seeds)
    if dtypes.bits(aval.dtype) > 32:
        high = convert(shift_right_logical(seeds, scalar_of(32, aval.dtype)), u32)
    else:
        high = broadcast_in_dim(np.uint32(0), shape=aval.shape, broadcast_dimensions=()) if aval.shape else np.uint32(0)
    return high, convert(seeds, u32)


def seed(seeds: Any) -> Any:
    """Keys from integer seeds; the words of a key are the high and the low 32 bits of its seed."""
    return pair(*high_and_low(seeds))


def split(keys: Any, shape: tuple[int, ...]) -> Any:
    """New keys: an array of this shape for each key."""
    if config.current().threefry_partitionable:
        # One counter for each new key: the keys do not depend on how many are made, and each device can make its own
        # part.
        return pair(*_encrypt(keys, *counters(shape)))
    outer = typeof(keys).shape[:-1]
    return reshape(_halves(keys, 2 * math.prod(shape)), new_sizes=(*outer, *shape, 2), dimensions=None)


def fold_in(keys: Any, data: Any) -> Any:
    """Keys mixed with `data`, an array of one word for each key."""
    message = seed(data)
    # The data is encrypted as a counter, so that keys folded with different numbers are independent.
    first, second = threefry2x32.bind(*words(keys), *words(message))
    return pair(first, second)


def bits(keys: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Random words of 8, 16, 32 or 64 bits: an array of this shape for each key."""
    if not config.current().threefry_partitionable:
        return _bits_of_halves(keys, bit_width, shape)
    first, second = _encrypt(keys, *counters(shape))
    if bit_width == 64:
        return _joined(first, second)
    mixed = xor(first, second)
    # Each small word takes a counter of its own and keeps the low bits, as in JAX, so that it depends on its position
    # alone.
    return mixed if bit_width == 32 else convert(mixed, np.dtype(f"uint{bit_width}"))


def _joined(high: Any, low: Any) -> Any:
    """64-bit words from their high and low 32 bits."""
    return or_(shift_left(convert(high, dtypes.uint64), scalar_of(32, dtypes.uint64)), convert(low, dtypes.uint64))


def _bits_of_halves(keys: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
    """`bits` without `threefry_partitionable`: a word of 32 bits makes several smaller ones, the lowest bits first."""
    outer, size = typeof(keys).shape[:-1], math.prod(shape)
    last, count = len(outer), -(-bit_width * size // 32)
    flat = _halves(keys, count)
    if bit_width == 64:
        flat = _joined(along(flat, last, 0, size), along(flat, last, size, count))
    elif bit_width < 32:
        parts = bitcast_convert_type(flat, new_dtype=np.dtype(f"uint{bit_width}"))
        every = reshape(parts, new_sizes=(*outer, count * 32 // bit_width), dimensions=None)
        flat = along(every, last, 0, size)
    return reshape(flat, new_sizes=(*outer, *shape), dimensions=None)
