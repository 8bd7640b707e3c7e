"""Numbers as NumPy scalars of a dtype, with the values to which XLA would convert them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.array import put


def literal_of(x: Any, dtype: Any) -> Any:
    """A number as a NumPy scalar of this dtype, with the value to which XLA would convert it.

    Raises `NumberRangeError` for a Python integer that an integer dtype does not hold.
    """
    value = np.asarray(x)
    if value.dtype.kind == "c" and dtypes.kind(dtype) not in "cb":
        value = value.real
    if isinstance(x, int) and not isinstance(x, bool) and dtypes.kind(dtype) in "iu" and not dtypes.holds(dtype, x):
        raise dtypes.too_large(x, dtype)
    with np.errstate(all="ignore"):
        return value.astype(dtype)[()]


def keep_dtype(number: np.generic | np.ndarray) -> Any:
    """A NumPy scalar or array that keeps its dtype as an operand.

    Outside of 64-bit mode NumPy's values count as values of 32 bits. Arrays of 64 bits, made inside of a block of
    `enable_x64`, may still be operands, and numbers of their dtype are then arrays, too.
    """
    if dtypes.canonical(number.dtype) == number.dtype:
        return number
    return put(np.asarray(number), shaped(number.shape, number.dtype))


def scalar_of(value: Any, dtype: Any) -> Any:
    """A number as an operand of this dtype."""
    return keep_dtype(np.asarray(value, dtype)[()])


def wrapped_integer(x: Any, dtype: Any) -> Any:
    """A Python integer too large for the default integer dtype, as a NumPy scalar of this dtype, wrapped to its range.

    Everything else is returned unchanged.
    """
    if type(x) is not int or dtypes.bits(dtypes.canonical(dtypes.int64)) > x.bit_length():
        return x
    if dtypes.kind(dtype) not in "iu":
        return np.asarray(x).astype(dtype)[()]
    if x.bit_length() > 64:
        raise dtypes.too_large(x, dtype)
    return np.asarray(x % 2**64, np.uint64).astype(dtype)[()]


def large_integer(x: Any, dtype: Any) -> Any:
    """A Python integer too large for the default integer dtype, as a NumPy scalar of this dtype, which must hold it.

    Everything else is returned unchanged.
    """
    if type(x) is not int or dtypes.holds(dtypes.canonical(dtypes.int64), x):
        return x
    return literal_of(x, dtype)
