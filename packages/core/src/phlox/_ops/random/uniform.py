"""Uniform and normal floats from random bits, for the samplers of `phlox.random` and the primitive `random_gamma`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._ir import dtypes
from ..elementwise import arithmetic as e, logic
from ..elementwise.error_functions import erf_inv
from ..structure.numbers import keep_dtype, scalar_of
from ..structure.shape import bitcast_convert_type, convert
from .keys import random_bits


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in [0, 1): random mantissas with the exponent of 1 give floats in [1, 2), minus 1."""
    info = dtypes.finfo(dtype)
    width = int(info.bits)
    drawn = 8 if info.nmant < 8 else width  # the number of random bits that JAX draws
    word = np.dtype(f"uint{width}")
    words = convert(random_bits(key, bit_width=drawn, shape=shape), word)
    mantissa = logic.shift_right_logical(words, scalar_of(drawn - info.nmant, word))
    one = np.asarray(1.0, dtype)
    ones = logic.or_(mantissa, keep_dtype(one.view(word)[()]))
    return e.sub(bitcast_convert_type(ones, new_dtype=dtype), keep_dtype(one[()]))


def between(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform samples in [low, high); both bounds have this dtype."""
    scaled = e.add(e.mul(unit(key, shape, dtype), e.sub(high, low)), low)
    # Never below `low`, also where `high` is less than `low`, as in JAX.
    return e.max_(low, scaled)


def normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal samples, by the inverse of the distribution function."""
    # The interval starts right above -1, where erf_inv is -inf.
    low = np.nextafter(np.asarray(-1.0, dtype), np.asarray(0.0, dtype), dtype=dtype)
    u = between(key, keep_dtype(low), scalar_of(1.0, dtype), shape, dtype)
    return e.mul(scalar_of(np.sqrt(2), dtype), erf_inv(u))
