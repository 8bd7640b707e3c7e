"""What special functions share: arguments in at least single precision, and Chebyshev series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._ir import dtypes
from ..._operands.checks import type_of
from ...typing import Array
from ._elementary import real_inexact


def at_least_single(function: str, *args: Any) -> tuple[list[Array], Any]:
    """Promoted real operands of a function without weak types, narrow floats as float32; the result's dtype."""
    operands = real_inexact(function, *args)
    dtype = type_of(operands[0]).dtype
    wide = np.dtype("float32") if dtypes.kind(dtype) == "f" and dtype.itemsize < 4 else dtype
    return [jnp.asarray(x, wide) for x in operands], dtype


def chebyshev(coefficients: Sequence[float], t: Any) -> Any:
    """The sum of c[k] T_k(t) for t in [-1, 1], by Clenshaw's recurrence; float32 needs the larger terms alone."""
    if type_of(t).dtype == np.float32:
        # float32 rounds at 6e-8 of the result, so that terms below 1e-9 of the largest do not count; without them the
        # loop below is half as long.
        size = max(map(abs, coefficients))
        coefficients = coefficients[: max(k for k, c in enumerate(coefficients) if abs(c) > 1e-9 * size) + 1]
    here = before = jnp.zeros_like(t)
    for c in coefficients[:0:-1]:
        here, before = 2 * t * here - before + c, here
    return t * here - before + coefficients[0]
