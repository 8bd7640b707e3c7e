"""Floats from random bits, uniform and normal ones: what samplers and the primitive `random_gamma` are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir import dtypes
from ..elementwise import arithmetic as e, logic
from ..structure.shape import bitcast_convert_type, convert
from .keys import random_bits


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers spread evenly over [0, 1): random mantissas under the exponent of 1 give numbers in [1, 2)."""
    info = dtypes.finfo(dtype)
    width = int(info.bits)
    drawn = 8 if info.nmant < 8 else width  # as many random bits as JAX draws
    word = np.dtype(f"uint{width}")
    words = convert(random_bits(key, bit_width=drawn, shape=shape), word)
    mantissa = logic.shift_right_logical(words, np.asarray(drawn - info.nmant, word)[()])
    one = np.asarray(1.0, dtype)
    ones = logic.or_(mantissa, one.view(word)[()])
    return e.sub(bitcast_convert_type(ones, new_dtype=dtype), one[()])


def between(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers spread evenly over [low, high); both are of this dtype."""
    scaled = e.add(e.mul(unit(key, shape, dtype), e.sub(high, low)), low)
    return e.max_(low, scaled)


def normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of the standard normal distribution, by its inverse distribution function."""
    low = np.nextafter(np.asarray(-1.0, dtype), np.asarray(0.0, dtype), dtype=dtype)
    u = between(key, low, np.asarray(1.0, dtype)[()], shape, dtype)
    return e.mul(np.asarray(np.sqrt(2), dtype)[()], e.erf_inv(u))
