"""Users' positions along an axis: integers of any dtype, of which negative ones count from the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import IndexTypeError
from .._ir import dtypes
from .._ir.dimensions import is_symbolic
from .._ops.elementwise import arithmetic as e, logic
from .._ops.structure.iota import iota
from .checks import type_of
from .promotion import to_dtype


def positions(n: Any) -> Any:
    """0, 1, … n - 1 as int32: an array of NumPy, a constant of programs; computed if the length is symbolic."""
    if is_symbolic(n):
        return iota.bind(dtype=np.dtype(np.int32), shape=(n,), dimension=0)
    return np.arange(n, dtype=np.int32)


def from_front(i: Any, n: int | None) -> Any:
    """`i` counted from the front: `n` is added to negative values, unless `n` is None. Small dtypes become int32."""
    dtype = type_of(i).dtype
    if type(i) is int:
        if is_symbolic(n):
            return np.int32(i) if i >= 0 else (i + n).as_value()
        return np.int32(min(max(i + (n or 0) if i < 0 else i, -(2**31)), 2**31 - 1))
    if dtypes.kind(dtype) not in "iu":
        raise IndexTypeError(f"positions must be integers, got {type_of(i).short}", index=i)
    if dtypes.kind(dtype) == "u":
        return to_dtype(i, dtypes.int32) if dtypes.bits(dtype) < 32 else i
    if dtypes.bits(dtype) < 32:
        i, dtype = to_dtype(i, dtypes.int32), dtypes.int32
    if n is None:
        return i
    below = logic.lt(i, to_dtype(0, dtype))
    return logic.select(below, e.add(to_dtype(i, dtype), to_dtype(n, dtype)), i)
