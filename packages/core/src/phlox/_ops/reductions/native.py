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


def _call(f: Function, name: str, x: Value, out: ShapedArray, **attributes: int) -> Value | None:
    from ..._xla.kernels import has_kernel, kernel  # here, as `import phlox` does not wait for it

    target = f"phlox_kernels_{name}_1"
    return kernel(f, target, x, [out], **attributes)[0] if has_kernel(f, target) else None


def running(f: Function, name: str, x: Value, axis: int, reverse: bool) -> Value | None:
    """The running reduction `name` along the last axis."""
    aval = x.aval
    if name not in _RUNNING or aval.size < _LEAST or axis != aval.ndim - 1 or aval.shape[axis] < _ROW:
        return None
    operation, names = _RUNNING[name]
    if aval.dtype.str[1:] not in names:
        return None
    return _call(f, "scan", x, aval, operation=operation, reverse=int(reverse))


def extremum(f: Function, x: Value, axes: tuple[int, ...], largest: bool, out: ShapedArray) -> Value | None:
    """The largest or smallest elements along `axes`, which are neighbours; nan where an element is nan."""
    shape, first, last = x.aval.shape, min(axes, default=0), max(axes, default=-1)
    inner, length = math.prod(shape[last + 1 :]), math.prod(shape[first : last + 1])
    if last - first + 1 != len(axes) or not (length >= _ROW if inner == 1 else inner >= _BESIDE):
        return None
    if not _EXTREMA <= x.aval.size <= _MOST or x.aval.dtype not in _ORDERED:
        return None
    return _call(f, "max" if largest else "min", x, out, inner=inner)


def position(f: Function, x: Value, axis: int, largest: bool, out: ShapedArray) -> Value | None:
    """The first positions of the largest or smallest elements along the last axis; those of nan, if there are any."""
    aval = x.aval
    if not _LEAST <= aval.size <= _MOST or axis != aval.ndim - 1 or aval.shape[axis] < _ROW:
        return None
    if dtypes.bits(out.dtype) < 32 or aval.dtype not in _ORDERED:
        return None
    return _call(f, "argmax" if largest else "argmin", x, out)
