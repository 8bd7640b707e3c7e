"""Uniform and normal floats from random bits, for the samplers of `phlox.random` and the primitive `random_gamma`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir import dtypes
from ..._trace.trace import typeof
from ..elementwise import arithmetic as e, logic
from ..elementwise.error_functions import erf_inv
from ..structure.numbers import exact
from ..structure.shape import bitcast_convert_type, convert
from .keys import random_bits


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in [0, 1)."""
    info = dtypes.finfo(dtype)
    width = int(info.bits)
    drawn = 8 if info.nmant < 8 else width  # the number of random bits that JAX draws
    return unit_of(random_bits(key, bit_width=drawn, shape=shape), drawn, dtype)


def unit_of(bits: Any, drawn: int, dtype: Any) -> Any:
    """Uniform samples in [0, 1) of `drawn` random bits: random mantissas with the exponent of 1 give floats in [1, 2),
    minus 1."""
    info = dtypes.finfo(dtype)
    word = np.dtype(f"uint{int(info.bits)}")
    mantissa = logic.shift_right_logical(convert(bits, word), exact(np.asarray(drawn - info.nmant, word)[()]))
    one = np.asarray(1.0, dtype)
    ones = logic.or_(mantissa, exact(one.view(word)[()]))
    return e.sub(bitcast_convert_type(ones, new_dtype=dtype), exact(one[()]))


def between(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in [low, high); both bounds have this dtype."""
    return _scaled(unit(key, shape, dtype), low, high)


def _scaled(units: Any, low: Any, high: Any) -> Any:
    # Never below `low`, also where `high` is less than `low`, as in JAX.
    return e.max_(low, e.add(e.mul(units, e.sub(high, low)), low))


def normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal samples."""
    return normal_of(unit(key, shape, dtype))


def normal_of(units: Any) -> Any:
    """Standard normal samples of uniform ones in [0, 1), by the inverse of the distribution function."""
    dtype = typeof(units).dtype
    # The interval starts right above -1, where erf_inv is -inf.
    low = np.nextafter(np.asarray(-1.0, dtype), np.asarray(0.0, dtype), dtype=dtype)
    u = _scaled(units, exact(low), exact(np.asarray(1.0, dtype)[()]))
    return e.mul(exact(np.asarray(np.sqrt(2), dtype)[()]), erf_inv(u))
