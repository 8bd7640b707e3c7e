"""The form of products of many small matrices of float32 in pairs that calls a kernel of phlox-kernels.

XLA hands them to a library (YNN), which takes as long for each product as for hundreds of multiplications, and several
times as long where a length is not a power of two.
"""

from __future__ import annotations

from typing import Any

from ..._ir import dtypes
from ..._xla.forms import Form
from ..._xla.kernels import has_kernel, kernel
from ..._xla.text import Function, Value
from ..linalg.dot import DotDimensionNumbers, dot_general

_KERNEL = "phlox_kernels_small_products_1"
#: the greatest length of an axis, and the least size of the right matrices and of the products
_MOST = 16


def _applies(
    f: Function, lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers, precision: Any, **options: Any
) -> bool:
    """Whether both operands are arrays of matrices of one shape, as of ``lhs @ rhs``."""
    (lc, rc), (lb, rb) = dimension_numbers
    batch = tuple(range(len(lb)))
    if not batch or not lhs.aval.ndim == rhs.aval.ndim == len(batch) + 2:
        return False
    if tuple(lb) != batch or tuple(rb) != batch or tuple(lc) != (len(batch) + 1,) or tuple(rc) != (len(batch),):
        return False
    if not lhs.aval.dtype == rhs.aval.dtype == f.out.dtype == dtypes.float32:
        return False
    (rows, depth), columns = lhs.aval.shape[-2:], rhs.aval.shape[-1]
    if max(rows, depth, columns) > _MOST or min(rows, depth) * columns < _MOST:
        return False
    return (precision is None or type(precision) is tuple) and has_kernel(f, _KERNEL)


def _write(f: Function, lhs: Value, rhs: Value, **options: Any) -> Value:
    return kernel(f, _KERNEL, [lhs, rhs], [f.out])[0]


FORMS = {dot_general: [Form(_applies, _write, "1,000 of 8 x 8: 0.25 of XLA's time; of 6 x 6: 0.03")]}
