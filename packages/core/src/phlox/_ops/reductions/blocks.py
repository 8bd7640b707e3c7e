"""The form of cumulative reductions for CPUs: prefixes within blocks, and the prefixes of what the blocks make.

XLA divides a window that reaches back to the first element into blocks of sixteen, and combines up to sixteen elements
for each result, one after another, along the last axis, to which it transposes. Along other axes blocks of sixteen use
vector instructions where they lie; along the last one blocks of four are a quarter of the combinations. What the blocks
make, a sixteenth or a quarter of the elements, is left to XLA.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..._ir.avals import ShapedArray, shaped
from ..._xla.platforms import cpu_only
from ..._xla.text import Function, Value, i64_array
from .reduce import Combine, combined

#: lengths of blocks along the last axis, and along others with so many elements side by side
_SHORT, _LONG, _BESIDE = 4, 16, 16
#: Along the last axis, so many elements and more are first divided into rows of about this length.
_MANY, _ROW = 1 << 14, 1 << 10
#: the least number of elements, and the least length of the axis
_LEAST, _SHORTEST = 1 << 17, 64

#: Writes prefixes, within windows that reach back to the start of the axis, of a value along an axis.
Prefixes = Callable[[Function, Value, int], Value]


def fits(f: Function, x: Value, axis: int) -> bool:
    """Whether this is for a CPU, and long enough. Over several devices the axis may be divided otherwise."""
    aval = x.aval
    return aval.size >= _LEAST and aval.shape[axis] >= _SHORTEST and f.module.partitions == 1 and cpu_only(f)


def prefixes_by_blocks(
    f: Function, x: Value, axis: int, reverse: bool, op: Combine, start: object, prefixes: Prefixes
) -> Value:
    """Prefixes of `x` along `axis`, or with `reverse` suffixes; ``prefixes`` writes those of shorter axes."""
    shape, dtype = x.aval.shape, x.aval.dtype
    n = shape[axis]
    before, after = shape[:axis], shape[axis + 1 :]
    rows = math.prod(after) < _BESIDE and n >= _MANY
    length = _row(n) if rows else _LONG if math.prod(after) >= _BESIDE else _SHORT
    count = -(-n // length)
    more = count * length - n

    def of(*lengths: int) -> ShapedArray:
        return shaped((*before, *lengths, *after), dtype)

    def padded(v: Value, low: int, high: int, out: ShapedArray) -> Value:
        at = [int(i == axis) for i in range(v.aval.ndim)]
        lows, highs = ([times * i for i in at] for times in (low, high))
        edges = f"edge_padding_low = {i64_array(lows)}, edge_padding_high = {i64_array(highs)}"
        interior = f"interior_padding = {i64_array([0] * len(at))}"
        return f.op("stablehlo.pad", [v, f.constant(start, shaped((), dtype))], out, f"{edges}, {interior}")

    def part(v: Value, at: int, begin: int, end: int, out: ShapedArray) -> Value:
        lows, highs = [0] * v.aval.ndim, list(v.aval.shape)
        lows[at], highs[at] = begin, end
        bounds = f"start_indices = {i64_array(lows)}, limit_indices = {i64_array(highs)}"
        return f.op("stablehlo.slice", [v], out, f"{bounds}, strides = {i64_array([1] * v.aval.ndim)}")

    x = padded(x, 0, more, of(n + more)) if more else x
    blocks = f.unlike("stablehlo.reshape", x, of(count, length))
    if rows:
        blocks = prefixes_by_blocks(f, blocks, axis + 1, reverse, op, start, prefixes)
    else:
        blocks = prefixes(f, blocks, axis + 1)
    last = 0 if reverse else length - 1
    totals = f.unlike("stablehlo.reshape", part(blocks, axis + 1, last, last + 1, of(count, 1)), of(count))
    others = prefixes(f, totals, axis)
    others = padded(others, *((-1, 1) if reverse else (1, -1)), of(count))  # of the blocks before, or behind
    others = f.broadcast(others, of(count, length).shape, [i + (i > axis) for i in range(len(shape))])
    out = f.unlike("stablehlo.reshape", combined(f, op, others, blocks), of(n + more))
    return part(out, axis, 0, n, of(n)) if more else out


def _row(n: int) -> int:
    """The length of rows, which divides `n` if there is one that does."""
    divisors = [d for d in range(_ROW // 2, 2 * _ROW, _SHORT) if n % d == 0]
    return min(divisors, key=lambda d: abs(d - _ROW), default=_ROW)
