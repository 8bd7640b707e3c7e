"""Floats shorter than float32: their squares and sums are computed in float32, and rounded to them at the end."""

from __future__ import annotations

from typing import Any

from .._ir import dtypes
from .checks import type_of
from .promotion import to_dtype


def round_to(x: Any, dtype: Any) -> Any:
    """`x` in another floating dtype. One that has this dtype stays as it is, with its weak type."""
    return x if type_of(x).dtype == dtype else to_dtype(x, dtype)


def summing_dtype(dtype: Any) -> Any:
    """The dtype in which to sum: float32 for shorter floats, to keep precision. Some of these do not even hold 0."""
    return dtypes.float32 if dtypes.kind(dtype) == "f" and dtypes.bits(dtype) < 32 else dtype


def widen(x: Any) -> Any:
    """`x` in the dtype of its sums. Squares and sums of shorter floats may be beyond their range."""
    return round_to(x, summing_dtype(type_of(x).dtype))
