"""The form of cumulative reductions for CPUs: prefixes within blocks of four, and the prefixes of what the blocks make.

XLA divides a window that reaches back to the first element into blocks of sixteen, and combines up to sixteen elements
for each result. With blocks of four these are a quarter of the combinations; prefixes of the blocks, which are a
quarter of the elements, are left to XLA. No result is a longer chain of combinations than before.
"""

from __future__ import annotations

from collections.abc import Callable

from ..._ir.avals import ShapedArray, shaped
from ..._xla.platforms import cpu_only
from ..._xla.text import Function, Value, i64_array
from .reduce import Combine, combined

_BLOCK = 4
#: the least number of elements, and the least length of the axis
_LEAST, _SHORTEST = 1 << 15, 64

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
    count = -(-n // _BLOCK)
    more = count * _BLOCK - n
    before, after = shape[:axis], shape[axis + 1 :]

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
    blocks = prefixes(f, f.unlike("stablehlo.reshape", x, of(count, _BLOCK)), axis + 1)
    last = 0 if reverse else _BLOCK - 1
    totals = f.unlike("stablehlo.reshape", part(blocks, axis + 1, last, last + 1, of(count, 1)), of(count))
    others = prefixes(f, totals, axis)
    others = padded(others, *((-1, 1) if reverse else (1, -1)), of(count))  # of the blocks before, or behind
    others = f.broadcast(others, of(count, _BLOCK).shape, [i + (i > axis) for i in range(len(shape))])
    out = f.unlike("stablehlo.reshape", combined(f, op, others, blocks), of(n + more))
    return part(out, axis, 0, n, of(n)) if more else out
