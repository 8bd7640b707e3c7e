"""The form of products of matrices of int8, summed in int32, that calls a kernel of phlox-kernels.

The kernel multiplies pairs of 64 bytes in one instruction, on processors with AVX-512 and VNNI. Fewer than 8 rows or 16
columns would leave most of its sums unused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir.avals import shaped
from ..._xla.forms import Form
from ..._xla.kernels import has_kernel, kernel
from ..._xla.platforms import processor
from ..._xla.text import Function, Value
from ..linalg.dot import DotDimensionNumbers, dot_general

_KERNEL = "phlox_kernels_byte_products_1"
_BYTES, _SUMS = np.dtype("int8"), np.dtype("int32")
#: Of fewer products the kernel takes as long as XLA.
_LEAST_PRODUCTS, _LEAST_ROWS, _LEAST_COLUMNS = 1 << 20, 8, 16


def _applies(f: Function, lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers, **options: Any) -> bool:
    """Whether it is a product of rows of int8, which are in memory as such, with a matrix."""
    (lc, rc), (lb, _) = dimension_numbers
    if {lhs.aval.dtype, rhs.aval.dtype} != {_BYTES} or f.out.dtype != _SUMS or lb:
        return False
    if tuple(lc) != (lhs.aval.ndim - 1,) or len(rc) != 1 or rhs.aval.ndim != 2:
        return False
    depth, columns = lhs.aval.shape[-1], rhs.aval.shape[1 - rc[0]]
    if f.out.size * depth < _LEAST_PRODUCTS or columns < _LEAST_COLUMNS or f.out.size // columns < _LEAST_ROWS:
        return False
    return "avx512_vnni" in processor().split() and has_kernel(f, _KERNEL)


def _write(f: Function, lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers, **options: Any) -> Value:
    contracted = dimension_numbers[0][1][0]
    depth, columns = rhs.aval.shape[contracted], rhs.aval.shape[1 - contracted]
    rows = f.out.size // columns
    flat = f.unlike("stablehlo.reshape", lhs, shaped((rows, depth), _BYTES))
    (out,) = kernel(f, _KERNEL, [flat, rhs], [shaped((rows, columns), _SUMS)], turned=contracted)
    return f.unlike("stablehlo.reshape", out, f.out)


FORMS = {dot_general: [Form(_applies, _write, "512 x 512 x 512: 0.45 of XLA's time")]}
