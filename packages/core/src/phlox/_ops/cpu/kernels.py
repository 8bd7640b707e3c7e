"""The forms that call the kernels of phlox-kernels, where that package is installed.

XLA on CPUs sorts by comparisons, loses nan in extrema or looks at each element twice, and takes one element after
another in extrema of integers, positions of extrema and running sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._xla.forms import Form
from ..._xla.kernels import has_kernel, is_argument, kernel
from ..._xla.text import Function, Number, Value
from ..reductions.reduce import Axes, argmax, argmin, reduce_max, reduce_min, reduce_sum
from ..reductions.running import cummax, cummin, cumprod, cumsum
from ..structure.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from ..structure.gather import gather_along
from ..structure.nonzero import first_places
from ..structure.scatter import clamp_indices, scatter_add
from ..structure.sort import sort
from ..structure.top_k import along_last_axis, top_k
from .packed_sort import moved

_SORT, _ARGSORT, _TOP_K, _SCAN, _PLACES, _SCATTER_ADD, _SUM = (
    f"phlox_kernels_{name}"
    for name in ("sort_1", "argsort_1", "top_k_1", "scan_2", "places_1", "scatter_add_1", "sum_2")
)
#: Of fewer elements a call takes as long as XLA's form.
_LEAST = 256
#: Extrema of fewer elements can be part of a larger loop. A kernel reads its operand from memory: larger ones, which
#: XLA may compute on the way, are not written there for extrema.
_LEAST_REDUCED, _MOST_EXTREMA = 4096, 1 << 24
#: With fewer terms each sum takes as long in XLA's form, unless there are many columns.
_MIN_TERMS, _MIN_SHORT_COLUMNS = 16, 4096
#: the least length of rows, and of columns the least number side by side
_MIN_ROW_LENGTH, _MIN_COLUMNS = 48, 16
_ORDERED = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", dtypes.bfloat16)))
_SORTED = _ORDERED | {np.dtype(bool)}
_SUMMED = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4")))
_COMPARED = frozenset(map(np.dtype, ("i4", "i8", "f4", "f8")))
_FLOATS = frozenset(map(np.dtype, ("f4", "f8")))
_INDICES = frozenset(map(np.dtype, ("i4", "i8")))
_ADDED = _COMPARED | frozenset(map(np.dtype, ("u4", "u8")))
#: With fewer updates, or longer rows, XLA's loop takes as long.
_MIN_UPDATES, _MAX_ROW_LENGTH = 4096, 32


# --- sort -----------------------------------------------------------------------------------------------


def _sort_applies(f: Function, *xs: Value, dimension: int, is_stable: bool, num_keys: int) -> bool:
    """An unstable sort may order equal elements in any way, and keeps the way that the compiler has."""
    first = xs[0].aval
    # The kernel numbers positions by uint32.
    if first.size == 0 or not 1 < first.shape[dimension] < 2**32:
        return False
    if not is_stable and (len(xs) > 1 or dtypes.kind(first.dtype) in "fc"):
        return False
    if any(_part(x) not in _SORTED for x in xs[:num_keys]):
        return False
    return has_kernel(f, _SORT) and has_kernel(f, _ARGSORT)


def _sort_write(f: Function, *xs: Value, dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    """One operand is sorted by a kernel. With several, a kernel gives the positions of the elements in the order of a
    key, and all operands are gathered from there. The last key is first, and its positions are then sorted by the key
    before it."""
    # Equal keys have equal values, so that one operand needs no positions. Complex numbers have two keys.
    if len(xs) == 1 and dtypes.kind(xs[0].aval.dtype) != "c":
        return kernel(f, _SORT, [xs[0]], [xs[0].aval], dimension=dimension)
    positions: Value | None = None
    # Each sort is stable: sorting by the last key first and the first key last orders by all of them.
    for key in reversed([part for x in xs[:num_keys] for part in _parts(f, x)]):
        operand = key if positions is None else gather_along(f, key, positions, dimension)
        (order,) = kernel(f, _ARGSORT, [operand], [shaped(key.aval.shape, dtypes.uint32)], dimension=dimension)
        positions = order if positions is None else gather_along(f, positions, order, dimension)
    assert positions is not None
    return [moved(f, x, positions, dimension) for x in xs]


def _part(x: Value) -> np.dtype:
    dtype = x.aval.dtype
    return dtypes.real_part(dtype) if dtypes.kind(dtype) == "c" else dtype


def _parts(f: Function, x: Value) -> list[Value]:
    """The keys that order elements as `x` does: itself; the real, then the imaginary parts of complex numbers."""
    if dtypes.kind(x.aval.dtype) != "c":
        return [x]
    part = shaped(x.aval.shape, _part(x))
    return [f.unlike(op, x, part) for op in ("stablehlo.real", "stablehlo.imag")]


# --- top_k and nonzero ----------------------------------------------------------------------------------


def _top_k_applies(f: Function, x: Value, k: Any, axis: int) -> bool:
    dtype = x.aval.dtype
    # `has_kernel` comes last, here and below: it loads the library.
    return dtype in _SORTED and dtypes.bits(dtype) <= 32 and k > 0 and has_kernel(f, _TOP_K)


def _top_k_write(f: Function, x: Value, k: Any, axis: int) -> list[Value]:
    return along_last_axis(f, x, axis, f.outs, lambda x, outs: kernel(f, _TOP_K, [x], outs))


def _places_applies(f: Function, mask: Value, size: int, index_dtype: Any) -> bool:
    return mask.aval.size >= _LEAST and bool(size) and dtypes.kind(index_dtype) == "i" and has_kernel(f, _PLACES)


def _places_write(f: Function, mask: Value, size: int, index_dtype: Any) -> Value:
    return kernel(f, _PLACES, [mask], [f.out])[0]


# --- running reductions, extrema and their positions ----------------------------------------------------


def _running(operation: int, accepted: frozenset[np.dtype], gain: str) -> Form:
    """The form of a running reduction; `operation` is the kernel's number of it."""

    def applies(f: Function, x: Value, axis: int, reverse: bool) -> bool:
        columns, length = _columns(x.aval, (axis,)), x.aval.shape[axis]
        if x.aval.size < _LEAST or not (length >= _MIN_ROW_LENGTH if columns == 1 else columns >= _MIN_COLUMNS):
            return False
        return x.aval.dtype in accepted and has_kernel(f, _SCAN)

    def write(f: Function, x: Value, axis: int, reverse: bool) -> Value:
        return kernel(f, _SCAN, [x], [x.aval], axis=axis, operation=operation, reverse=int(reverse))[0]

    return Form(applies, write, gain)


def _are_neighbours(x: ShapedArray, axes: Axes) -> bool:
    """Whether a kernel sees an array as rows by reduced elements by columns, and fills the lanes of vectors."""
    first, last = min(axes, default=0), max(axes, default=-1)
    columns, length = _columns(x, axes), math.prod(x.shape[first : last + 1])
    if last - first + 1 != len(axes) or x.size < _LEAST_REDUCED:
        return False
    # Short rows, and few columns, leave the lanes of vectors empty.
    return length >= _MIN_ROW_LENGTH if columns == 1 else columns >= _MIN_COLUMNS


def _columns(x: ShapedArray, axes: Axes) -> int:
    """The number of elements side by side behind the reduced axes."""
    return math.prod(x.shape[max(axes, default=-1) + 1 :])


def _extremum(name: str) -> Form:
    """The form of the extrema along neighbouring axes; nan where an element is nan."""
    target = f"phlox_kernels_{name}_1"

    def applies(f: Function, x: Value, axes: Axes) -> bool:
        if x.aval.size > _MOST_EXTREMA or x.aval.dtype not in _ORDERED:
            return False
        return _are_neighbours(x.aval, axes) and has_kernel(f, target)

    def write(f: Function, x: Value, axes: Axes) -> Value:
        return kernel(f, target, [x], [f.out], inner=_columns(x.aval, axes))[0]

    return Form(applies, write, "1e6 float32: 0.5 to 0.6 of the time of XLA's form, which loses nan")


def _sum_applies(f: Function, x: Value, axes: Axes) -> bool:
    if x.aval.dtype not in _FLOATS or not _are_neighbours(x.aval, axes):
        return False
    if x.aval.size < _MIN_TERMS * f.out.size and _columns(x.aval, axes) < _MIN_SHORT_COLUMNS:
        return False
    return has_kernel(f, _SUM) and _summed(f, x, axes) is not None


def _sum_write(f: Function, x: Value, axes: Axes) -> Value:
    summed = _summed(f, x, axes)
    assert summed is not None
    argument, term = summed
    return kernel(f, _SUM, [argument], [f.out], inner=_columns(x.aval, axes), term=term)[0]


def _summed(f: Function, x: Value, axes: Axes) -> tuple[Value, int] | None:
    """The argument of the program of which `x` has the elements, their squares, or their squared distances from the
    mean over `axes`, and the kernel's number of these terms. XLA's sum is part of the loop that computes any other
    operand."""
    if is_argument(f, x):
        return x, 0
    root = _root(f, x)
    if root is None or is_argument(f, root):
        return None if root is None else (root, 1)
    difference = f.definitions.of(root)
    if difference is None or difference.name != "sub":
        return None
    elements, middle = difference.operands
    return (elements, 2) if is_argument(f, elements) and _is_mean(f, middle, elements, axes) else None


def _root(f: Function, x: Value) -> Value | None:
    """The array of which `x` is the square."""
    square = f.definitions.of(x)
    if square is None:
        return None
    first, *others = square.operands
    is_square = square.name == "square" or (square.name == "integer_pow" and square.params["y"] == 2)
    return first if is_square or (square.name == "mul" and others[0] is first) else None


def _is_mean(f: Function, x: Value, elements: Value, axes: Axes) -> bool:
    """Whether `x` is the mean of the elements over `axes`, which it has with length one."""
    shape, count = elements.aval.shape, math.prod(elements.aval.shape[axis] for axis in axes)
    if x.aval.shape != tuple(1 if axis in axes else n for axis, n in enumerate(shape)):
        return False
    quotient = f.definitions.of(x)
    if quotient is None or quotient.name != "div" or not isinstance(quotient.operands[1], Number):
        return False
    spread = f.definitions.of(quotient.operands[0])
    if quotient.operands[1].value != count or spread is None or spread.name != "broadcast_in_dim":
        return False
    if spread.params["broadcast_dimensions"] != tuple(axis for axis in range(len(shape)) if axis not in axes):
        return False
    total = f.definitions.of(spread.operands[0])
    if total is None or total.name != "reduce_sum":
        return False
    return total.operands[0] is elements and total.params["axes"] == axes


def _position(name: str) -> Form:
    """The form of the first positions of extrema along the last axis; those of nan, if there are any."""
    target = f"phlox_kernels_{name}_1"

    def applies(f: Function, x: Value, axes: Axes, index_dtype: Any) -> bool:
        aval, axis = x.aval, axes[0]
        if not _LEAST <= aval.size <= _MOST_EXTREMA or axis != aval.ndim - 1 or aval.shape[axis] < _MIN_ROW_LENGTH:
            return False
        return dtypes.bits(f.out.dtype) >= 32 and aval.dtype in _ORDERED and has_kernel(f, target)

    def write(f: Function, x: Value, axes: Axes, index_dtype: Any) -> Value:
        return kernel(f, target, [x], [f.out])[0]

    return Form(applies, write, "rows of 1,000 float32: 0.04 of the time of XLA's pairs")


# --- sums at indices ------------------------------------------------------------------------------------


def _scatter_add_applies(
    f: Function, x: Value, indices: Value, updates: Value, *, dimension_numbers: ScatterDimensionNumbers, **_: Any
) -> bool:
    """Whether each index names a whole row of the operand."""
    numbers, rank = dimension_numbers, updates.aval.ndim
    # Cheap tests come first: most scatters of a program are none of this form.
    if updates.aval.size < _MIN_UPDATES or x.aval.ndim == 0 or x.aval.dtype not in _ADDED:
        return False
    if math.prod(x.aval.shape[1:]) > _MAX_ROW_LENGTH:
        return False
    if (
        numbers.operand_batching_dims
        or not (0,) == numbers.scatter_dims_to_operand_dims == numbers.inserted_window_dims
    ):
        return False
    if numbers.update_window_dims != tuple(range(rank - x.aval.ndim + 1, rank)):
        return False
    whole = updates.aval.shape[rank - x.aval.ndim + 1 :] == x.aval.shape[1:]
    return whole and indices.aval.dtype in _INDICES and has_kernel(f, _SCATTER_ADD)


def _scatter_add_write(
    f: Function,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    mode: GatherScatterMode,
    **_: Any,
) -> Value:
    if mode is GatherScatterMode.CLIP:
        indices = clamp_indices(f, x.aval, indices, updates.aval, dimension_numbers)
    if type(updates) is Number and x.aval.ndim == 1:  # not written to memory for each index
        updates = f.number(updates.value, shaped((1,), x.aval.dtype))
    # The result takes the buffer of the operand. XLA copies it first if the operand is used elsewhere.
    return kernel(f, _SCATTER_ADD, [x, indices, updates], [f.out], aliases={0: 0})[0]


FORMS: dict[Primitive, list[Form]] = {
    sort: [Form(_sort_applies, _sort_write, "1e6 float32: 2.2 ms, 210 by XLA; rows of 1,000: 0.03 of its time")],
    top_k: [Form(_top_k_applies, _top_k_write, "by groups: 0.11 of XLA's time")],
    first_places: [Form(_places_applies, _places_write, "nonzero of 1e6: 0.06 of counting by prefix sums")],
    cumsum: [_running(0, _SUMMED, "rows of 1,000 float32: 0.08 of XLA's time, 0.501 ulp")],
    cumprod: [_running(1, _SUMMED, "rows of 1,000 float32: 0.08 of XLA's time, 0.501 ulp")],
    cummax: [_running(2, _COMPARED, "rows of 1,000 float32: 0.11 of XLA's time")],
    cummin: [_running(3, _COMPARED, "rows of 1,000 float32: 0.11 of XLA's time")],
    reduce_sum: [
        Form(_sum_applies, _sum_write, "1e6 float32: rows and columns in 0.4 of XLA's time; half of its error")
    ],
    reduce_max: [_extremum("max")],
    reduce_min: [_extremum("min")],
    argmax: [_position("argmax")],
    argmin: [_position("argmin")],
    scatter_add: [
        Form(
            _scatter_add_applies,
            _scatter_add_write,
            "sums of segments of 2e5 float32: 0.7 of XLA's time, 0.4 if sorted; equal bits",
        )
    ],
}
