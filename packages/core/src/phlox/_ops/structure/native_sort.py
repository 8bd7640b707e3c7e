"""The forms of `sort` and `top_k` that call the kernels of phlox-kernels, where that package is installed.

One operand is sorted by a kernel. With several, a kernel gives the positions of the elements in the order of a key, and
all operands are gathered from there; of several keys the last one is first, and the positions are then sorted by the
one before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._xla.kernels import has_kernel, kernel
from ..._xla.text import Function, Value
from .gather import gather_along
from .packed_sort import moved

_SORT, _ARGSORT = "phlox_kernels_sort_1", "phlox_kernels_argsort_1"
_NAMES = ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", dtypes.bfloat16)
_SORTED = frozenset(map(np.dtype, _NAMES))
_TOP_K = "phlox_kernels_top_k_1"


def selects(f: Function, x: Value, k: int) -> bool:
    """Whether `top_k` may call its kernel."""
    dtype = x.aval.dtype
    return dtype in _SORTED and dtypes.bits(dtype) <= 32 and k > 0 and has_kernel(f, _TOP_K)


def native_top_k(f: Function, x: Value, types: Sequence[ShapedArray]) -> list[Value]:
    """The largest elements along the last axis, and their positions."""
    return kernel(f, _TOP_K, x, types)


def fits(f: Function, xs: Sequence[Value], dimension: int, is_stable: bool, num_keys: int) -> bool:
    """Whether kernels may be called, and order elements of these types.

    An unstable sort may order equal elements in any way, and keeps the way that the compiler has.
    """
    first = xs[0].aval
    if first.size == 0 or not 1 < first.shape[dimension] < 2**32:
        return False
    if not is_stable and (len(xs) > 1 or dtypes.kind(first.dtype) in "fc"):
        return False
    if any(_part(x) not in _SORTED for x in xs[:num_keys]):
        return False
    return has_kernel(f, _SORT) and has_kernel(f, _ARGSORT)


def _part(x: Value) -> np.dtype:
    dtype = x.aval.dtype
    return dtypes.real_part(dtype) if dtypes.kind(dtype) == "c" else dtype


def native_sort(f: Function, xs: Sequence[Value], dimension: int, num_keys: int) -> list[Value]:
    """`xs` in the order of the first `num_keys` of them."""
    if len(xs) == 1 and dtypes.kind(xs[0].aval.dtype) != "c":
        return kernel(f, _SORT, xs[0], [xs[0].aval], dimension=dimension)
    positions: Value | None = None
    for key in reversed([part for x in xs[:num_keys] for part in _parts(f, x)]):
        operand = key if positions is None else gather_along(f, key, positions, dimension)
        (order,) = kernel(f, _ARGSORT, operand, [shaped(key.aval.shape, dtypes.uint32)], dimension=dimension)
        positions = order if positions is None else gather_along(f, positions, order, dimension)
    assert positions is not None
    return [moved(f, x, positions, dimension) for x in xs]


def _parts(f: Function, x: Value) -> list[Value]:
    """The keys that order elements as `x` does: itself; the real, then the imaginary parts of complex numbers."""
    if dtypes.kind(x.aval.dtype) != "c":
        return [x]
    part = shaped(x.aval.shape, _part(x))
    return [f.unlike(op, x, part) for op in ("stablehlo.real", "stablehlo.imag")]
