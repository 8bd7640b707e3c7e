"""Forms of products of a few rows with a large matrix, as in models that generate one token after another.

XLA multiplies in float32 on CPUs. Matrices of narrower numbers are converted as a whole before: a step of GPT-2 small
with bfloat16 weights writes 494 MB to memory that is allocated for it. The portable forms here convert in registers
where one row is multiplied, and for more rows a part of the matrix at a time, to memory that stays in the caches. The
kernel of phlox-kernels converts in registers for more rows, too, and multiplies one row with a matrix of float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.forms import Form
from ..._xla.kernels import has_kernel, kernel
from ..._xla.text import Derived, Function, Value, i64_array, ints
from ..linalg.dot import DotDimensionNumbers, dot_general

_KERNEL = "phlox_kernels_rows_times_matrix_1"
_FACTORS = frozenset(map(np.dtype, ("f2", "f4", dtypes.bfloat16)))
_INTEGERS = frozenset(map(np.dtype, ("i1", "u1")))
_NARROW = _INTEGERS | {dtypes.float16, np.dtype(dtypes.bfloat16)}
_KERNEL_DTYPES = frozenset(map(np.dtype, ("i1", "f4", dtypes.bfloat16)))
#: The rows, or the results, are as large as narrower matrices.
_MIN_LENGTH = 64
#: Elements of a part: 1 MB in float32, which is written and read in the caches. Smaller matrices are left to XLA.
_PART = 1 << 18
#: More rows take more time than the conversion of the matrix.
_MOST_ROWS = 16
#: Rows of the matrix that are multiplied by elements of one row and added in one pass. XLA does not fuse more into one.
_SIDE = 8
#: Elements of the matrix whose sums of so many products, in float32, stay in the caches: 2 MB.
_SIDE_PART = 1 << 22
#: XLA computes a product with one shorter row inside of a loop over the rows of the matrix, which converts as it reads.
_FUSED_LENGTH = 4096
#: Of fewer elements, the kernel takes as long as XLA. More rows are left to XLA's product of matrices.
_KERNEL_LEAST, _KERNEL_MOST_ROWS = 1 << 16, 8


class _Product(NamedTuple):
    """A product of rows with a matrix.

    Attributes:
      rows: the smaller operand, and `axis`, its contracted axis.
      matrix: the larger operand as it is in memory, and `contracted`, its contracted axis, 0 or 1.
      matrix_first: whether the matrix is the left operand, so that its axis is the first of the result.
    """

    rows: Value
    axis: int
    matrix: Value
    contracted: int
    matrix_first: bool

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.rows.aval.size // self.length

    @property
    def length(self) -> int:
        """The length of the contracted axis."""
        return self.matrix.aval.shape[self.contracted]

    @property
    def width(self) -> int:
        """The length of the other axis of the matrix."""
        return self.matrix.aval.shape[1 - self.contracted]


def _product(
    f: Function,
    lhs: Value,
    rhs: Value,
    dimension_numbers: DotDimensionNumbers,
    precision: Any,
) -> _Product | None:
    """The product of floats as one of rows with a matrix; None for other products."""
    (lc, rc), (lb, _) = dimension_numbers
    if lb or len(lc) != 1 or not {lhs.aval.dtype, rhs.aval.dtype, f.out.dtype} <= _FACTORS:
        return None
    if not (precision is None or type(precision) is tuple) or 0 in (lhs.aval.size, rhs.aval.size):
        return None
    first = lhs.aval.size > rhs.aval.size
    (matrix, axis), (rows, row_axis) = ((lhs, lc[0]), (rhs, rc[0])) if first else ((rhs, rc[0]), (lhs, lc[0]))
    if matrix.aval.ndim != 2 or min(matrix.aval.shape) < _MIN_LENGTH:
        return None
    while type(matrix) is Derived and _is_exact(matrix.operand.aval.dtype, matrix.aval.dtype):
        axis, matrix = matrix.permutation[axis], matrix.operand
    return _Product(rows, row_axis, matrix, axis, first)


def _is_exact(source: np.dtype, target: np.dtype) -> bool:
    """Whether each number of the dtype `source` is one of `target`, and a matrix of it is no larger."""
    if source == target or source in _INTEGERS:
        return True
    return source in _NARROW and target == dtypes.float32


def _rows(f: Function, product: _Product) -> Value:
    """The rows as float32 (count, length)."""
    rows, axis = product.rows, product.axis
    shape = rows.aval.shape
    if axis != len(shape) - 1 and product.row_count > 1:
        order = [*(i for i in range(len(shape)) if i != axis), axis]
        moved = shaped(tuple(shape[i] for i in order), rows.aval.dtype)
        rows = f.unlike("stablehlo.transpose", rows, moved, f", dims = {ints(order)}")
    flat = shaped((product.row_count, product.length), rows.aval.dtype)
    return f.convert(f.unlike("stablehlo.reshape", rows, flat), dtypes.float32)


def _finished(f: Function, product: _Product, out: Value) -> Value:
    """The result of the operation, from the products of all rows, float32 (count, width)."""
    out = f.convert(out, f.out.dtype)
    if product.matrix_first and product.row_count > 1:
        transposed = shaped((product.width, product.row_count), f.out.dtype)
        out = f.unlike("stablehlo.transpose", out, transposed, ", dims = [1, 0]")
    return f.unlike("stablehlo.reshape", out, f.out)


def _dot(f: Function, lhs: Value, rhs: Value, contracted: int) -> Value:
    """The product of float32 over the last axis of `lhs` and the axis `contracted` of the matrix `rhs`."""
    axis = lhs.aval.ndim - 1
    out = shaped((*lhs.aval.shape[:-1], rhs.aval.shape[1 - contracted]), dtypes.float32)
    end = f", contracting_dims = [{axis}] x [{contracted}] : ({lhs.aval.text}, {rhs.aval.text}) -> {out.text}"
    return f.ending("stablehlo.dot_general", f"{lhs.name}, {rhs.name}", end, out)


def _narrow(f: Function, lhs: Value, rhs: Value, params: dict[str, Any]) -> _Product | None:
    """The product of rows with a large matrix of narrow numbers; None for other products."""
    if max(lhs.aval.size, rhs.aval.size) < _PART or f.module.partitions > 1:
        return None
    product = _product(f, lhs, rhs, params["dimension_numbers"], params["precision"])
    return product if product is not None and product.matrix.aval.dtype in _NARROW else None


# --- by XLA, in registers -------------------------------------------------------------------------------


def _fused_applies(f: Function, lhs: Value, rhs: Value, **params: Any) -> bool:
    product = _narrow(f, lhs, rhs, params)
    if product is None or product.row_count > 1:
        return False
    return product.length < _FUSED_LENGTH if product.contracted else _side_by_side_size(product) is not None


def _fused_write(f: Function, lhs: Value, rhs: Value, **params: Any) -> Value:
    product = _product(f, lhs, rhs, params["dimension_numbers"], params["precision"])
    assert product is not None
    row = _rows(f, product)
    if product.contracted:
        return _finished(f, product, _of_transpose(f, product, row))
    size = _side_by_side_size(product)
    assert size is not None

    def turn(g: Function, start: Value, out: Value) -> Value:
        return g.same("stablehlo.add", out, _side_by_side(g, product, row, start, size))

    return _finished(f, product, _loop(f, turn, product, size, product.length))


def _of_transpose(f: Function, product: _Product, row: Value) -> Value:
    """The product with one row. XLA makes the conversion part of a product with a transpose, and of no other one."""
    row = f.unlike("stablehlo.reshape", row, shaped((product.length,), dtypes.float32))
    matrix = f.convert(product.matrix, dtypes.float32)
    transposed = shaped((product.length, product.width), dtypes.float32)
    return _dot(f, row, f.unlike("stablehlo.transpose", matrix, transposed, ", dims = [1, 0]"), 0)


def _side_by_side(f: Function, product: _Product, row: Value, start: Value, size: int) -> Value:
    """The product of `size` elements of one row, which begin at `start`, with a part of the matrix.

    ``sum(row[i + n * k] * matrix[i + n * k] for k in range(8))`` for all ``i < n`` is one loop that reads the matrix
    once, converts in registers, and writes an eighth of its elements; a product with ones adds these. A reduction
    would take the multiplications out of the loop.
    """
    n = size // _SIDE
    column = f.unlike("stablehlo.reshape", row, shaped((product.length, 1), dtypes.float32))
    out = shaped((n, product.width), dtypes.float32)
    total: Value | None = None
    for k in range(_SIDE):
        begin = f.same("stablehlo.add", start, f.constant(n * k, start.aval))
        factors = f.unlike("stablehlo.broadcast_in_dim", _cut(f, column, begin, 0, n), out, ", dims = [0, 1]")
        term = f.same("stablehlo.multiply", factors, _part(f, product, begin, 0, n))
        total = term if total is None else f.same("stablehlo.add", total, term)
    assert total is not None
    return _dot(f, f.constant(1, shaped((1, n), dtypes.float32)), total, 0)


def _side_by_side_size(product: _Product) -> int | None:
    """The elements of the row in a part of `_side_by_side`."""
    return _divisor(product.length, _SIDE_PART // product.width, _SIDE)


def _divisor(length: int, most: int, step: int) -> int | None:
    """The largest divisor of `length` that is a multiple of `step`, at most `most`, and no less than half of what it
    may be."""
    most = max(min(most, length), 1)
    return next((n for n in range(most, most // 2, -1) if length % n == 0 and n % step == 0), None)


# --- by XLA, part by part -------------------------------------------------------------------------------


def _parts_apply(f: Function, lhs: Value, rhs: Value, **params: Any) -> bool:
    product = _narrow(f, lhs, rhs, params)
    return product is not None and product.row_count <= _MOST_ROWS


def _parts_write(f: Function, lhs: Value, rhs: Value, **params: Any) -> Value:
    product = _product(f, lhs, rhs, params["dimension_numbers"], params["precision"])
    assert product is not None
    rows = _rows(f, product)
    return _finished(f, product, _by_lengths(f, product, rows) or _by_widths(f, product, rows))


def _by_lengths(f: Function, product: _Product, rows: Value) -> Value | None:
    """The sum of the products of parts of the contracted axis, whose rows in memory are whole; None if no length of
    parts divides the axis."""
    size = None if product.contracted == 1 else _divisor(product.length, _PART // product.width, 1)
    if size is None:
        return None

    def turn(g: Function, start: Value, out: Value) -> Value:
        some = _cut(g, rows, start, 1, size)
        return g.same("stablehlo.add", out, _dot(g, some, _part(g, product, start, 0, size), 0))

    return _loop(f, turn, product, size, product.length)


def _by_widths(f: Function, product: _Product, rows: Value) -> Value:
    """The products with parts of the other axis of the matrix. The last part begins earlier if it would be shorter:
    both slices, of the matrix and of the result, are moved inside of their arrays."""
    size = min(max(_PART // product.length, 1), product.width)

    def turn(g: Function, start: Value, out: Value) -> Value:
        part = _dot(g, rows, _part(g, product, start, 1 - product.contracted, size), product.contracted)
        return g.op("stablehlo.dynamic_update_slice", [out, part, *_starts(g, start, 1)], out.aval)

    return _loop(f, turn, product, size, product.width)


def _loop(f: Function, turn: Any, product: _Product, step: int, end: int) -> Value:
    """The result of ``out = turn(g, start, out)`` for each ``start in range(0, end, step)``, from zeros on."""
    place, out = shaped((), dtypes.int32), shaped((product.row_count, product.width), dtypes.float32)
    if step == end:
        return turn(f, f.constant(0, place), f.constant(0, out))

    def body(g: Function, start: Value, out: Value) -> list[Value]:
        return [g.same("stablehlo.add", start, g.constant(step, place)), turn(g, start, out)]

    going = f.region([place, out], lambda g, start, _: [g.compare("LT", start, g.constant(end, place))])
    start = [f.constant(0, place), f.constant(0, out)]
    results: list[Value] = f.op("stablehlo.while", start, [place, out], "", [going, f.region([place, out], body)])
    return results[1]


def _part(f: Function, product: _Product, start: Value, axis: int, size: int) -> Value:
    """A part of the matrix along `axis` as float32."""
    matrix = product.matrix
    if matrix.aval.dtype != dtypes.bfloat16:
        return f.convert(_cut(f, matrix, start, axis, size), dtypes.float32)
    # XLA would convert a matrix of bfloat16 before the slice, and move the conversion out of the loop. The barrier
    # keeps the matrix of bits in the loop, where it is no copy but a part of the conversion.
    start, matrix = f.barrier([start, matrix])
    bits = f.unlike("stablehlo.bitcast_convert", matrix, shaped(matrix.aval.shape, dtypes.uint16))
    # A bfloat16 is the upper half of the float32 with the same value.
    part = f.convert(_cut(f, bits, start, axis, size), dtypes.uint32)
    shifted = f.same("stablehlo.shift_left", part, f.constant(16, part.aval))
    return f.unlike("stablehlo.bitcast_convert", shifted, shaped(part.aval.shape, dtypes.float32))


def _cut(f: Function, x: Value, start: Value, axis: int, size: int) -> Value:
    sizes = [size if i == axis else n for i, n in enumerate(x.aval.shape)]
    out = shaped(tuple(sizes), x.aval.dtype)
    value: Value = f.op(
        "stablehlo.dynamic_slice", [x, *_starts(f, start, axis)], out, f"slice_sizes = {i64_array(sizes)}"
    )
    return value


def _starts(f: Function, start: Value, axis: int) -> list[Value]:
    """The indices at which a slice of a matrix along `axis` begins."""
    zero = f.constant(0, start.aval)
    return [zero, start] if axis else [start, zero]


# --- by phlox-kernels -----------------------------------------------------------------------------------


def _kernel_applies(f: Function, lhs: Value, rhs: Value, **params: Any) -> bool:
    if max(lhs.aval.size, rhs.aval.size) < _KERNEL_LEAST:
        return False
    product = _product(f, lhs, rhs, params["dimension_numbers"], params["precision"])
    if product is None or product.matrix.aval.dtype not in _KERNEL_DTYPES:
        return False
    most = 1 if product.matrix.aval.dtype == dtypes.float32 else _KERNEL_MOST_ROWS
    return product.row_count <= most and has_kernel(f, _KERNEL)


def _kernel_write(f: Function, lhs: Value, rhs: Value, **params: Any) -> Value:
    product = _product(f, lhs, rhs, params["dimension_numbers"], params["precision"])
    assert product is not None
    out = shaped((product.row_count, product.width), dtypes.float32)
    operands = [_rows(f, product), product.matrix]
    return _finished(f, product, kernel(f, _KERNEL, operands, [out], contracted=product.contracted)[0])


FORMS = {
    dot_general: [
        Form(_fused_applies, _fused_write, "768 bfloat16 times 768 x 3072: 0.1 of XLA's time, 0.8 of the kernel's"),
        Form(_kernel_applies, _kernel_write, "2 to 8 rows of bfloat16: 0.6 of the time in parts; 1 of float32: 0.6"),
        Form(_parts_apply, _parts_write, "2 to 8 rows of bfloat16: 0.3 of XLA's time, 1 MB for the whole matrix"),
    ]
}
