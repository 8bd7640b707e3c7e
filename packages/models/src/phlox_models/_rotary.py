"""Rotary positions (RoPE) and the ways in which models extend them to longer texts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import phlox.numpy as jnp
from phlox.errors import ArgumentError

from ._config import Config


@dataclasses.dataclass(frozen=True)
class Rotary:
    """Rotates pairs of features by angles proportional to the position. Source: Su et al., 2021.

    Args:
      frequencies: the angle for one position, for each pair; further features are unchanged.
      interleaved: whether pairs are neighbours (0, 1), (2, 3), …, as in GPT-J, or (i, i + n/2), as in Llama.
      factor: a factor of the rotated features.
    """

    frequencies: tuple[float, ...]
    interleaved: bool = False
    factor: float = 1.0

    def __call__(self, x: Any, positions: Any) -> Any:
        """Rotates `x` (batch, length, heads, size) for `positions` (batch or 1, length)."""
        pairs = len(self.frequencies)
        angles = positions[..., None, None].astype(jnp.float32) * jnp.asarray(self.frequencies, jnp.float32)
        cos, sin = jnp.cos(angles) * self.factor, jnp.sin(angles) * self.factor
        turned, rest = x[..., : 2 * pairs].astype(jnp.float32), x[..., 2 * pairs :]
        if self.interleaved:
            first, second = turned[..., ::2], turned[..., 1::2]
        else:
            first, second = turned[..., :pairs], turned[..., pairs:]
        halves = first * cos - second * sin, second * cos + first * sin
        if self.interleaved:
            turned = jnp.stack(halves, axis=-1).reshape(turned.shape)
        else:
            turned = jnp.concatenate(halves, axis=-1)
        return jnp.concatenate([turned.astype(x.dtype), rest], axis=-1)


def frequencies(size: int, base: float) -> np.ndarray[Any, Any]:
    """The angles for one position: ``base ** (-2 i / size)`` for each of ``size / 2`` pairs."""
    return np.float32(1) / np.float32(base) ** (np.arange(0, size, 2, dtype=np.float32) / np.float32(size))


def rotary(config: Config, size: int, base: float = 10000.0) -> Rotary:
    """The rotation that a configuration of the Llama family describes, for heads of this size.

    Older files have `rope_theta` and `rope_scaling`, newer ones `rope_parameters`.
    """
    entries: Mapping[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
    scaling = Config({"model_type": config.model_type, **entries})
    base = scaling.number("rope_theta", config.number("rope_theta", base))
    size = int(size * scaling.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0)))
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    if kind not in _SCALINGS:
        raise ArgumentError(
            f"config.json: rotary positions have the scaling {kind!r}, which phlox_models does not have",
            instead=f"one of {', '.join(_SCALINGS)}",
            scaling=kind,
        )
    scaled, factor = _SCALINGS[kind](frequencies(size, base), scaling, config, base)
    return Rotary(tuple(map(float, scaled)), factor=factor)


def _unscaled(speeds: Any, scaling: Config, config: Config, base: float) -> tuple[Any, float]:
    return speeds, 1.0


def _linear(speeds: Any, scaling: Config, config: Config, base: float) -> tuple[Any, float]:
    """Positions are divided by a factor. Source: Chen et al., 2023."""
    return speeds / np.float32(scaling.number("factor")), 1.0


def _llama3(speeds: Any, scaling: Config, config: Config, base: float) -> tuple[Any, float]:
    """Low frequencies are divided by a factor, high ones unchanged, those between interpolated (Llama 3.1)."""
    factor, length = scaling.number("factor"), scaling.integer("original_max_position_embeddings")
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    wavelength = 2 * math.pi / speeds
    smooth = np.clip((length / wavelength - low) / (high - low), 0, 1)
    return ((1 - smooth) / factor + smooth) * speeds, 1.0


def _yarn(speeds: Any, scaling: Config, config: Config, base: float) -> tuple[Any, float]:
    """Frequencies are interpolated by wavelength, and features scaled. Source: Peng et al., 2023."""
    factor = scaling.number("factor")
    length = scaling.integer("original_max_position_embeddings", config.integer("max_position_embeddings"))
    size = 2 * len(speeds)

    def pair(rotations: float) -> float:
        """The index of the pair that makes so many rotations over the original length."""
        return size * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair(scaling.number("beta_fast", 32.0)), pair(scaling.number("beta_slow", 1.0))
    if scaling.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    ramp = np.clip((np.arange(len(speeds)) - low) / max(high - low, 0.001), 0, 1)
    return speeds / factor * ramp + speeds * (1 - ramp), scaling.number(
        "attention_factor", _yarn_factor(factor, scaling)
    )


def _yarn_factor(factor: float, scaling: Config) -> float:
    def magnitude(scale: float, weight: float = 1.0) -> float:
        return 0.1 * weight * math.log(scale) + 1.0 if scale > 1 else 1.0

    weight, all_weight = scaling.number("mscale", 0.0), scaling.number("mscale_all_dim", 0.0)
    if weight and all_weight:
        return magnitude(factor, weight) / magnitude(factor, all_weight)
    return magnitude(factor)


_SCALINGS = {"default": _unscaled, "linear": _linear, "llama3": _llama3, "yarn": _yarn}
