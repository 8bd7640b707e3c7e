"""The rows of an array, which iterating over it gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._api.jit.jit import jit
from ..._base.errors import ShapeError
from ..._ir.primitive import current_trace
from ..._operands.checks import type_of
from .plan import SlicedAxis
from .reading import getitem, read_basic


def _row(x: Any, i: int) -> Any:
    return read_basic(x, [i], ("int", *[SlicedAxis(0, n, 1, n) for n in type_of(x).shape[1:]]))


@jit
def _unstack(x: Any) -> list[Any]:
    return [_row(x, i) for i in range(type_of(x).shape[0])]


# XLA compiles 20 ms for each row of `_unstack`. The program of ``x[i]`` serves all rows, and takes 10 us a row more
# than `_unstack` does (jaxlib 0.12, one of two cores).
_MAX_UNSTACKED_ROWS = 16


def unstack_rows(x: Any) -> Iterator[Any]:
    """The subarrays along the first axis: what iterating over an array gives. Computes them when they are read."""
    if not type_of(x).shape:
        raise ShapeError("iteration over an array without axes", instead="x itself, or x[None]", shapes=[()])
    return _generate_rows(x, range(type_of(x).shape[0]))


def _generate_rows(x: Any, indices: range) -> Iterator[Any]:
    """The rows of `x`. A generator, since ``np.iterable(x)`` calls ``iter(x)`` and reads no row."""
    if current_trace.get() is not None:
        yield from (_row(x, i) for i in indices)
    elif len(indices) <= _MAX_UNSTACKED_ROWS:
        yield from _unstack(x)
    else:
        yield from (getitem(x, i) for i in indices)
