"""Buffers of arguments that results of a program take over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._ir import dtypes
from .._ir.avals import ShapedArray
from .sharding import Sharding


def reused(
    donated: Iterable[int],
    arguments: Sequence[tuple[ShapedArray, Sharding]],
    results: Sequence[tuple[ShapedArray, Sharding]],
) -> frozenset[int]:
    """The `donated` arguments whose buffers XLA gives to results: each to one of as many bytes on a device."""
    free = Counter(_bits_of_part(*result) for result in results)
    matched = set()
    for i in sorted(donated):
        size = _bits_of_part(*arguments[i])
        if free[size]:
            free[size] -= 1
            matched.add(i)
    return frozenset(matched)


def _bits_of_part(aval: ShapedArray, sharding: Sharding) -> int:
    physical = aval.physical
    # Rounded up, as XLA pads axes that it cannot split evenly.
    part = [-(-n // count) for n, count in zip(physical.shape, sharding.tiles(physical.ndim), strict=True)]
    return math.prod(part) * dtypes.bits(physical.dtype)


def deleting(execute: Callable[[Sequence[Any]], Any], indices: frozenset[int]) -> Callable[[Sequence[Any]], Any]:
    """`execute`, after which the buffers of the arguments `indices` are deleted.

    The runtime has taken their memory, but the Python objects do not know it. A call with one of them would reach XLA,
    which prints a line to stderr before it raises; a deleted one is refused before that.
    """
    if not indices:
        return execute
    order = sorted(indices)

    def run(buffers: Sequence[Any]) -> Any:
        results = execute(buffers)
        for i in order:
            buffers[i].delete()
        return results

    return run
