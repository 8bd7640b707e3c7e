"""Windows and segments, which the spectra and the inverse transform share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ..._base.errors import OptionError, ShapeError, UnsupportedError
from ..._base.source import warn
from ..._operands.checks import integer, type_of


def named_window(function: str, window: Any, length: int) -> Any:
    """The periodic window of this name. Only that of Hann is made without SciPy."""
    if window == "hann":
        # Computed by NumPy in float64, as SciPy does. For one point the formula would give 0.
        return np.ones(1) if length == 1 else np.sin(np.pi * np.arange(length) / length) ** 2
    try:
        from scipy.signal import get_window
    except ImportError:
        raise UnsupportedError(
            f"{function}: window={window!r} needs SciPy", instead="window='hann', or an array"
        ) from None
    return get_window(window, length)


def windowed(function: str, window: Any, nperseg: int | None, length: int, dtype: Any) -> tuple[Any, int]:
    """(window, length of segments) for a signal of `length`; an array as window decides about the segments."""
    if nperseg is not None:
        nperseg = integer(function, "nperseg", nperseg)
        if nperseg < 1:
            raise OptionError(f"{function}: nperseg={nperseg}", instead="at least 1")
    if isinstance(window, str | tuple):
        size = length if nperseg is None else nperseg
        if size > length:
            warn(
                f"nperseg={size} is greater than the length of the signal, {length}, which is used for it", UserWarning
            )
            size = length
        return jnp.asarray(named_window(function, window, size), dtype), size
    array = jnp.asarray(window, dtype)
    if type_of(array).ndim != 1:
        raise ShapeError(f"{function}: window must be a vector, got {type_of(array).short}")
    size = type_of(array).size
    if size > length:
        raise ShapeError(f"{function}: a window of {size} points is longer than the signal of {length}")
    if nperseg not in (None, size):
        raise OptionError(f"{function}: nperseg={nperseg} for a window of {size} points", instead="nperseg=None")
    return array, size


def overlap(function: str, noverlap: int | None, nperseg: int) -> int:
    """The number of points that neighbouring segments share."""
    shared = nperseg // 2 if noverlap is None else integer(function, "noverlap", noverlap)
    if shared >= nperseg:
        raise OptionError(f"{function}: noverlap={shared}", instead=f"less than nperseg={nperseg}")
    return shared


def segment_positions(count: int, length: int, step: int) -> Any:
    """The positions in a signal of all points of the segments, [count, length]."""
    return jnp.arange(count)[:, None] * step + jnp.arange(length)[None, :]
