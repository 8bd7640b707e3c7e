"""Promotion and checks of the operands of special functions, polynomials and Chebyshev series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._base.errors import DtypeError
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_inexact, promoted_inexact
from ...numpy._creation.from_data import listed
from ...typing import Array


def real_inexact(function: str, *args: Any) -> list[Array]:
    """The operands promoted to one float dtype and rank. Raises `DtypeError` for complex numbers."""
    operands = list(promoted_inexact(function, *args)) if len(args) > 1 else promote_inexact(*check(function, *args))
    if dtypes.kind(type_of(operands[0]).dtype) == "c":
        raise DtypeError(f"{function} does not accept {type_of(operands[0]).short}", instead="x.real or x.imag")
    return operands


def at_least_single(function: str, *args: Any) -> tuple[list[Array], Any]:
    """Promoted real operands of a function without weak types, narrow floats as float32; the result's dtype."""
    operands = real_inexact(function, *args)
    dtype = type_of(operands[0]).dtype
    wide = np.dtype("float32") if dtypes.kind(dtype) == "f" and dtype.itemsize < 4 else dtype
    return [jnp.asarray(x, wide) for x in operands], dtype


def single_or_double(function: str, x: Any) -> Array:
    """The operand as an array without weak type. Raises `DtypeError` unless it is float32 or float64."""
    x = jnp.asarray(listed(function, x)[0])
    if x.dtype not in (np.float32, np.float64):
        raise DtypeError(f"{function} takes float32 or float64, got {type_of(x).short}")
    return x


def polynomial(x: Any, coefficients: Sequence[float]) -> Array:
    """The polynomial with these coefficients, highest power first, by Horner's rule without a loop."""
    return lax.polynomial(x, coefficients[::-1], unroll=len(coefficients))


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
