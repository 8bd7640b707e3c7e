"""Sines and cosines of positions and times, whose wavelengths form a geometric series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import phlox.numpy as jnp


def time_features(
    times: Any, features: int, longest: float = 10000.0, *, cosines_first: bool = True, shift: float = 0
) -> Any:
    """Cosines and sines of times (n,), with `features` / 2 wavelengths from 2 pi to 2 pi `longest`: (n, features).

    Args:
      times: numbers (n,).
      features: an even number.
      longest: the bound of the wavelengths, divided by 2 pi.
      cosines_first: whether the cosines come before the sines.
      shift: 1 if the last wavelength is the bound, 0 if the one behind the last would be.

    >>> time_features(jnp.array([0, 5]), 8).shape
    (2, 8)
    """
    half = features // 2
    speeds = jnp.exp(-math.log(longest) * jnp.arange(half) / (half - shift))
    angles = jnp.asarray(times, jnp.float32)[:, None] * speeds
    halves = [jnp.cos(angles), jnp.sin(angles)]
    return jnp.concatenate(halves if cosines_first else halves[::-1], axis=-1)


def sinusoids(key: Any, shape: Sequence[int], dtype: Any = jnp.float32) -> Any:
    """An initializer of positions (length, features): sines and cosines of wavelengths from 2 pi to 20000 pi."""
    length, features = shape
    speeds = np.exp(-np.log(10000) / (features // 2 - 1) * np.arange(features // 2))
    angles = np.arange(length)[:, None] * speeds
    return jnp.asarray(np.concatenate([np.sin(angles), np.cos(angles)], axis=1), dtype)
