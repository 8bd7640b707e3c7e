"""Forms of sums, extrema and products over a short axis for CPUs: a few operations on whole arrays.

XLA hands large reductions and products to a library (YNN), together with elementwise operations around them. Over an
axis of a few elements, as of coordinates, the library's calls for each row take most of the time, and what is fused
into them takes longer than in XLA's own loops.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.primitive import Primitive
from ..._xla.compared_values import in_memory
from ..._xla.forms import Form
from ..._xla.text import Function, Value, ints
from ..elementwise.arithmetic import max_, min_
from ..linalg.dot import DotDimensionNumbers, dot_general
from ..reductions.reduce import Axes, reduce_max, reduce_min, reduce_sum
from .extrema import or_nan

#: 4,000 points in space. The library has arrays of 4,096 elements and more; this code takes some 30 ms more to compile,
#: which 1,000 calls with fewer elements would not make up for.
_LEAST = 12_000
#: Over longer axes the library takes less time.
_MAX_LENGTH, _MAX_LEADING_LENGTH = 8, 16
#: the longest contracted axis of products of matrices, and the most elements of the smaller one if there is no batch:
#: a layer of a network takes as long in the library.
_MAX_CONTRACTED, _MAX_MATRIX = 4, 16
#: the most elements of one of many products over longer axes, and of how many elements in all the length may be eight:
#: the library takes less time for it than for five to seven.
_MAX_PRODUCT, _MANY_PRODUCTS = 256, 1 << 17
_DTYPES = (dtypes.float32, dtypes.float64)

#: Writes the sum or an extremum of two arrays.
Combination = Callable[[Function, Value, Value], Value]


class Sums(Value):
    """Sums over a short axis. A sum of them is one of all elements, which the library computes at once.

    Attributes:
      operand: the array that is summed.
      axis: its short axis.
    """

    __slots__ = ("axis", "operand")

    def __init__(self, value: Value, operand: Value, axis: int):
        super().__init__(value.name, value.aval)
        self.operand, self.axis = operand, axis


def _combined(f: Function, parts: list[Value], combine: Combination) -> Value:
    """The parts, combined one after the other, in memory: XLA would compute them again for each of their readers, and
    would not give the library a reduction that reads them. On the way to results each element is read once."""
    combined = functools.reduce(functools.partial(combine, f), parts)
    return combined if f.definitions.is_read_for_results_alone(f.module.main) else in_memory(f, combined)


def _added(f: Function, x: Value, y: Value) -> Value:
    return f.same("stablehlo.add", x, y)


def _part(f: Function, x: Value, axis: int, i: int) -> Value:
    """``x[i]`` along `axis`."""
    part = f.slice_in_dim(x, i, i + 1, axis)
    shape = x.aval.shape
    return f.unlike("stablehlo.reshape", part, shaped(shape[:axis] + shape[axis + 1 :], x.aval.dtype))


def _reduction_applies(f: Function, x: Value, axes: Axes) -> bool:
    if x.aval.size < _LEAST or len(axes) != 1 or x.aval.ndim == 1 or f.module.partitions > 1:
        return False
    longest = _MAX_LENGTH if axes[0] else _MAX_LEADING_LENGTH
    return 2 <= x.aval.shape[axes[0]] <= longest and x.aval.dtype in _DTYPES


def _reduced(f: Function, x: Value, axes: Axes, combine: Combination) -> Value:
    return _combined(f, [_part(f, x, axes[0], i) for i in range(x.aval.shape[axes[0]])], combine)


def _sums_write(f: Function, x: Value, axes: Axes) -> Value:
    return Sums(_reduced(f, x, axes, _added), x, axes[0])


def _of_sums_applies(f: Function, x: Value, axes: Axes) -> bool:
    return type(x) is Sums


def _of_sums_write(f: Function, x: Any, axes: Axes) -> Value:
    both = (x.axis, *(axis + (axis >= x.axis) for axis in axes))
    out: Value = reduce_sum.lower(f, x.operand, tuple(sorted(both)))
    return out


def _extrema(primitive: Primitive) -> Form:
    """The form of extrema; nan where an element is nan."""
    write = functools.partial(_reduced, combine=or_nan(primitive))
    return Form(_reduction_applies, write, "50,000 rows of 3: 0.1 of the library's time; three rows of 50,000: 0.02")


def _product_applies(
    f: Function, lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers, precision: Any, **_: Any
) -> bool:
    """Whether it is a product over a single, short axis, of one dtype."""
    contracted, batch = dimension_numbers[0][0], dimension_numbers[1][0]
    if max(f.out.size, lhs.aval.size, rhs.aval.size) < _LEAST or len(contracted) != 1 or f.module.partitions > 1:
        return False
    if not lhs.aval.dtype == rhs.aval.dtype == f.out.dtype or f.out.dtype not in _DTYPES:
        return False
    if not batch and min(lhs.aval.size, rhs.aval.size) > _MAX_MATRIX:
        return False
    if not 2 <= lhs.aval.shape[contracted[0]] <= _max_contracted(f.out, len(batch)):
        return False
    return precision is None or type(precision) is tuple


def _max_contracted(out: ShapedArray, batch: int) -> int:
    """The longest contracted axis of products that have `batch` axes of a batch in front."""
    if out.ndim == batch:  # inner products
        return _MAX_LENGTH
    if batch and math.prod(out.shape[batch:]) <= _MAX_PRODUCT:
        return _MAX_LENGTH if out.size >= _MANY_PRODUCTS else _MAX_LENGTH - 1
    return _MAX_CONTRACTED


def _product_write(f: Function, lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers, **_: Any) -> Value:
    ((lhs_axis,), (rhs_axis,)), (lhs_batch, rhs_batch) = dimension_numbers
    # The other axes of the result are those of the left factor, then those of the right one.
    start = lhs.aval.ndim - 1
    parts = []
    for i in range(lhs.aval.shape[lhs_axis]):
        left = _factor(f, lhs, lhs_axis, i, lhs_batch, len(lhs_batch))
        right = _factor(f, rhs, rhs_axis, i, rhs_batch, start)
        parts.append(f.same("stablehlo.multiply", left, right))
    return _combined(f, parts, _added)


def _factor(f: Function, x: Value, axis: int, i: int, batch: tuple[int, ...], start: int) -> Value:
    """``x[i]`` along `axis` in the shape of the result, where its axes that are not of the batch begin at `start`."""
    part = _part(f, x, axis, i)
    order = [*batch, *(k for k in range(x.aval.ndim) if k != axis and k not in batch)]
    if order != sorted(order):
        transposed = shaped(tuple(x.aval.shape[k] for k in order), x.aval.dtype)
        part = f.unlike("stablehlo.transpose", part, transposed, f", dims = {ints([k - (k > axis) for k in order])}")
    dims = [*range(len(batch)), *range(start, start + len(order) - len(batch))]
    return f.broadcast(part, f.out.shape, dims)


_OF_SUMS = "a mean of squared distances: 0.35 of the time of two sums"
_SUMS = "100,000 rows of 3: 0.13 of the library's time, 0.05 in loops; of 8: 0.4; three rows of 100,000: 0.03"
_PRODUCTS = (
    "50,000 rows of 3 by a matrix: 0.06 of the library's time; inner products: 0.1; 3,000 products of 6 x 6: 0.08"
)

FORMS = {
    reduce_sum: [Form(_of_sums_applies, _of_sums_write, _OF_SUMS), Form(_reduction_applies, _sums_write, _SUMS)],
    reduce_max: [_extrema(max_)],
    reduce_min: [_extrema(min_)],
    dot_general: [Form(_product_applies, _product_write, _PRODUCTS)],
}
