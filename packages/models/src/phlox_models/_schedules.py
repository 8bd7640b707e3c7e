"""Schedules of denoising diffusion: the amounts of noise of each step, and data with noise added or removed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import phlox.numpy as jnp


class Schedule(NamedTuple):
    """The amounts of noise of denoising diffusion, float32 (T,).

    Attributes:
      betas: the variance of the noise that a step adds.
      kept: the fraction of the data's variance that is left after each step, the product of all ``1 - beta`` so far.
      added: the variance of all noise after each step, ``1 - kept`` without its rounding error.
    """

    betas: Any
    kept: Any
    added: Any


def _schedule(betas: np.ndarray[Any, Any]) -> Schedule:
    logarithms = np.cumsum(np.log1p(-betas))
    return Schedule(*(jnp.asarray(x, jnp.float32) for x in (betas, np.exp(logarithms), -np.expm1(logarithms))))


def linear_schedule(steps: int = 1000, first: float = 1e-4, last: float = 0.02) -> Schedule:
    """The schedule of Ho et al., 2020, whose betas grow linearly.

    >>> linear_schedule(1000).kept[-1] < 1e-4
    Array(True, dtype=bool)
    """
    return _schedule(np.linspace(first, last, steps))


def cosine_schedule(steps: int = 1000, offset: float = 0.008, largest: float = 0.999) -> Schedule:
    """The schedule of Nichol and Dhariwal, 2021, which adds less noise at first.

    >>> cosine_schedule(10).betas.shape
    (10,)
    """
    angles = (np.arange(steps + 1) / steps + offset) / (1 + offset) * (math.pi / 2)
    signal = np.square(np.cos(angles))
    return _schedule(np.clip(1 - signal[1:] / signal[:-1], 0, largest))


def add_noise(schedule: Schedule, data: Any, times: Any, noise: Any) -> Any:
    """The noisy data at these times: ``sqrt(kept) * data + sqrt(added) * noise``.

    Args:
      schedule: the amounts of noise.
      data, noise: of one shape (n, ...).
      times: integers (n,) from 0 to T - 1.

    >>> add_noise(linear_schedule(), jnp.ones((2, 3)), jnp.array([0, 999]), jnp.zeros((2, 3))).shape
    (2, 3)
    """
    kept, added = per_example(schedule.kept[times], data), per_example(schedule.added[times], data)
    return jnp.sqrt(kept) * data + jnp.sqrt(added) * noise


def posterior(schedule: Schedule, data: Any, noisy: Any, times: Any) -> tuple[Any, Any]:
    """The mean and variance of the data at time t - 1, given the noisy data at time t and the data without noise.

    Args:
      schedule: the amounts of noise.
      data, noisy: of one shape (n, ...).
      times: integers (n,) from 0 to T - 1. At time 0 the mean is `data`, and the variance 0.

    Returns:
      The mean, like `data`, and the variance, with an axis of length 1 for each axis of an example.

    >>> mean, variance = posterior(linear_schedule(), jnp.ones((1, 2)), jnp.zeros((1, 2)), jnp.array([0]))
    >>> mean, variance
    (Array([[1., 1.]], dtype=float32), Array([[0.]], dtype=float32))
    """
    later = per_example(times, data) > 0
    beta, added = per_example(schedule.betas[times], data), per_example(schedule.added[times], data)
    before = jnp.maximum(times - 1, 0)
    kept_before, added_before = per_example(schedule.kept[before], data), per_example(schedule.added[before], data)
    mean = (jnp.sqrt(kept_before) * beta * data + jnp.sqrt(1 - beta) * added_before * noisy) / added
    return jnp.where(later, mean, data), jnp.where(later, beta * added_before / added, 0)


def denoised(schedule: Schedule, noisy: Any, times: Any, noise: Any) -> Any:
    """The data without the predicted noise: `add_noise` solved for the data.

    >>> schedule, x, times = linear_schedule(), jnp.ones((2, 3)), jnp.array([5, 50])
    >>> jnp.allclose(denoised(schedule, add_noise(schedule, x, times, x), times, x), x, atol=1e-5)
    Array(True, dtype=bool)
    """
    kept, added = per_example(schedule.kept[times], noisy), per_example(schedule.added[times], noisy)
    return (noisy - jnp.sqrt(added) * noise) / jnp.sqrt(kept)


def per_example(numbers: Any, x: Any) -> Any:
    """One number for each example, with an axis of length 1 for each further axis of `x`."""
    return jnp.reshape(numbers, (-1, *(1,) * (jnp.ndim(x) - 1)))
