"""Integer operands whose values another integer dtype may not hold, such as the number in ``uint8_array < 300``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ir import dtypes
from .._ops.elementwise import logic
from .._ops.elementwise.families import literal
from .checks import type_of
from .promotion import common_dtype, to_dtype


def unheld(x: Any, y: Any) -> int | None:
    """The position of the operand, of two, whose values the common dtype does not hold; None if it holds both.

    Operands that are not integers are converted by promotion, and count as held.
    """
    avals = type_of(x), type_of(y)
    if any(dtypes.kind(aval.dtype) not in "iu" for aval in avals):
        return None
    dtype, _ = common_dtype(x, y)
    for i, (operand, aval) in enumerate(zip((x, y), avals, strict=True)):
        limits = dtypes.iinfo(aval.dtype)
        # The values of an array are not known, so all of its dtype have to fit.
        ends = (operand,) if type(operand) is int else (limits.min, limits.max)
        if not all(dtypes.holds(dtype, end) for end in ends):
            return i
    return None


def saturated(x: Any, dtype: Any) -> tuple[Any, Any]:
    """Integers converted to an integer dtype, each to the nearest number that it holds; and where they are equal."""
    limits = dtypes.iinfo(dtype)
    if type(x) is int:
        nearest = min(max(x, limits.min), limits.max)
        return to_dtype(nearest, dtype), np.bool_(nearest == x)
    own = dtypes.iinfo(type_of(x).dtype)
    low, high = literal(x, max(own.min, limits.min)), literal(x, min(own.max, limits.max))
    nearest = logic.clamp(low, x, high)
    return to_dtype(nearest, dtype), logic.eq(nearest, x)
