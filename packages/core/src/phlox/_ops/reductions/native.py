"""The forms of reductions that call the kernels of phlox-kernels: running ones, extrema and their positions.

Extrema of XLA on CPUs lose nan, or look at each element twice; those of integers and all positions take one element
after another, and so do running sums. Each function returns None where the kernel is not there, or not for such an
operand.
"""

from __future__ import annotations

import math

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._xla.kernels import has_kernel, kernel
from ..._xla.text import Function, Value

#: Of fewer elements a call takes as long as XLA's form.
_LEAST = 256
#: Extrema of fewer elements can be part of a larger loop. A kernel reads its operand from memory: larger ones, which
#: XLA may compute on the way, are not written there for extrema.
_EXTREMA, _MOST = 4096, 1 << 24
#: the least length of rows, and of columns the least number beside each other
_ROW, _BESIDE = 48, 16
#: the kernel's number of a running operation, and the dtypes that it takes
_RUNNING = {
    "cumsum": (0, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4")),
    "cumprod": (1, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4")),
    "cummax": (2, ("i4", "i8", "f4", "f8")),
    "cummin": (3, ("i4", "i8", "f4", "f8")),
}
_ORDERED = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", dtypes.bfloat16)))


def running(f: Function, name: str, x: Value, axis: int, reverse: bool) -> Value | None:
    """The running reduction `name` along the last axis."""
    aval = x.aval
    if name not in _RUNNING or aval.size < _LEAST or axis != aval.ndim - 1 or aval.shape[axis] < _ROW:
        return None
    operation, names = _RUNNING[name]
    if aval.dtype.str[1:] not in names or not has_kernel(f, "phlox_kernels_scan_1"):
        return None
    return kernel(f, "phlox_kernels_scan_1", x, [aval], operation=operation, reverse=int(reverse))[0]


def extremum(f: Function, x: Value, axes: tuple[int, ...], largest: bool, out: ShapedArray) -> Value | None:
    """The largest or smallest elements along `axes`, which are neighbours; nan where an element is nan."""
    target = "phlox_kernels_max_1" if largest else "phlox_kernels_min_1"
    shape, first, last = x.aval.shape, min(axes, default=0), max(axes, default=-1)
    inner, length = math.prod(shape[last + 1 :]), math.prod(shape[first : last + 1])
    if last - first + 1 != len(axes) or not (length >= _ROW if inner == 1 else inner >= _BESIDE):
        return None
    if not _EXTREMA <= x.aval.size <= _MOST or x.aval.dtype not in _ORDERED or not has_kernel(f, target):
        return None
    return kernel(f, target, x, [out], inner=inner)[0]


def position(f: Function, x: Value, axis: int, largest: bool, out: ShapedArray) -> Value | None:
    """The first positions of the largest or smallest elements along the last axis; those of nan, if there are any."""
    target = "phlox_kernels_argmax_1" if largest else "phlox_kernels_argmin_1"
    aval = x.aval
    if not _LEAST <= aval.size <= _MOST or axis != aval.ndim - 1 or aval.shape[axis] < _ROW:
        return None
    if dtypes.bits(out.dtype) < 32 or aval.dtype not in _ORDERED or not has_kernel(f, target):
        return None
    return kernel(f, target, x, [out])[0]
