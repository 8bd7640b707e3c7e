"""Diffusion and flow matching: losses and samplers for a network that turns noise into data, step by step.

A *predictor* is a function ``predict(x, times)`` of noisy data (n, ...) and one number for each example. Its result is
like x: ``lambda x, times: model.apply(params, x, times)`` with a `phlox_models.unet.UNet`.

- Denoising diffusion (Ho et al., 2020): noise is added in T steps, and the network predicts it. Times are 0 to T - 1.
- Flow matching (Lipman et al., 2022; Liu et al., 2022): data and noise are joined by straight lines, and the network
  predicts the velocity. Times go from 0 (noise) to 1 (data).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import phlox.numpy as jnp
from phlox import lax, random
from phlox.errors import ArgumentError

Predictor = Callable[[Any, Any], Any]


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
    return jnp.sqrt(_like(schedule.kept[times], data)) * data + jnp.sqrt(_like(schedule.added[times], data)) * noise


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
    later = _like(times, data) > 0
    beta, added = _like(schedule.betas[times], data), _like(schedule.added[times], data)
    kept_before, added_before = (_like(x[jnp.maximum(times - 1, 0)], data) for x in (schedule.kept, schedule.added))
    mean = (jnp.sqrt(kept_before) * beta * data + jnp.sqrt(1 - beta) * added_before * noisy) / added
    return jnp.where(later, mean, data), jnp.where(later, beta * added_before / added, 0)


def diffusion_loss(predict: Predictor, schedule: Schedule, data: Any, key: Any) -> Any:
    """The mean squared error of the predicted noise, at random times.

    Args:
      predict: the predictor of the noise.
      schedule: the amounts of noise.
      data: (n, ...).
      key: a PRNG key.

    >>> diffusion_loss(lambda x, times: x, linear_schedule(), jnp.zeros((4, 2)), random.key(0)) < 1
    Array(True, dtype=bool)
    """
    for_times, for_noise = random.split(key)
    times = random.randint(for_times, (len(data),), 0, len(schedule.betas))
    noise = random.normal(for_noise, data.shape, data.dtype)
    return jnp.mean(jnp.square(predict(add_noise(schedule, data, times, noise), times) - noise))


def denoised(schedule: Schedule, noisy: Any, times: Any, noise: Any) -> Any:
    """The data without the predicted noise: `add_noise` solved for the data.

    >>> schedule, x, times = linear_schedule(), jnp.ones((2, 3)), jnp.array([5, 50])
    >>> jnp.allclose(denoised(schedule, add_noise(schedule, x, times, x), times, x), x, atol=1e-5)
    Array(True, dtype=bool)
    """
    kept, added = _like(schedule.kept[times], noisy), _like(schedule.added[times], noisy)
    return (noisy - jnp.sqrt(added) * noise) / jnp.sqrt(kept)


def sample_ddpm(
    predict: Predictor, schedule: Schedule, key: Any, shape: tuple[int, ...], *, limit: float | None = None
) -> Any:
    """Samples by all T steps of denoising diffusion, each with new noise.

    Args:
      predict: the predictor of the noise.
      schedule: the amounts of noise.
      key: a PRNG key.
      shape: of the samples, (n, ...).
      limit: the data are cut off at this absolute value in each step: 1 for images in [-1, 1].

    Returns:
      Float32 samples.

    >>> sample_ddpm(lambda x, times: x, linear_schedule(10), random.key(0), (4, 2)).shape
    (4, 2)
    """
    first, rest = random.split(key)

    def step(x: Any, at: tuple[Any, Any]) -> tuple[Any, None]:
        time, key = at
        times = jnp.full(shape[:1], time)
        data = denoised(schedule, x, times, predict(x, times))
        mean, variance = posterior(schedule, data if limit is None else jnp.clip(data, -limit, limit), x, times)
        return mean + jnp.sqrt(variance) * random.normal(key, shape), None

    steps = len(schedule.betas)
    return lax.scan(step, random.normal(first, shape), (jnp.arange(steps)[::-1], random.split(rest, steps)))[0]


def sample_ddim(
    predict: Predictor,
    schedule: Schedule,
    key: Any,
    shape: tuple[int, ...],
    steps: int = 50,
    *,
    limit: float | None = None,
) -> Any:
    """Samples by fewer steps without new noise. Source: Song, Meng and Ermon, 2020.

    Args:
      predict, schedule, key, shape, limit: as for `sample_ddpm`.
      steps: the number of steps, from 1 to T.

    Returns:
      Float32 samples.

    >>> sample_ddim(lambda x, times: x, linear_schedule(), random.key(0), (4, 2), steps=5).shape
    (4, 2)
    """
    total = len(schedule.betas)
    if not 1 <= steps <= total:
        raise ArgumentError(f"sample_ddim: steps must be from 1 to {total}, got {steps}", steps=steps)
    times = jnp.round(jnp.linspace(total - 1, 0, steps) if steps > 1 else jnp.full(1, total - 1)).astype(jnp.int32)

    def step(x: Any, at: tuple[Any, Any]) -> tuple[Any, None]:
        time, after = at
        times = jnp.full(shape[:1], time)
        data = denoised(schedule, x, times, predict(x, times))
        data = data if limit is None else jnp.clip(data, -limit, limit)
        noise = (x - jnp.sqrt(schedule.kept[time]) * data) / jnp.sqrt(schedule.added[time])
        return jnp.where(after < 0, data, add_noise(schedule, data, jnp.full(shape[:1], after), noise)), None

    return lax.scan(step, random.normal(key, shape), (times, jnp.append(times[1:], -1)))[0]


def flow_loss(predict: Predictor, data: Any, key: Any) -> Any:
    """The mean squared error of the predicted velocity, at random times on the lines from noise to data.

    Args:
      predict: the predictor of the velocity, ``data - noise``.
      data: (n, ...).
      key: a PRNG key.

    >>> flow_loss(lambda x, times: x, jnp.zeros((4, 2)), random.key(0)).shape
    ()
    """
    for_times, for_noise = random.split(key)
    times = random.uniform(for_times, (len(data),), data.dtype)
    noise = random.normal(for_noise, data.shape, data.dtype)
    t = _like(times, data)
    return jnp.mean(jnp.square(predict((1 - t) * noise + t * data, times) - (data - noise)))


def sample_flow(predict: Predictor, noise: Any, steps: int = 50, *, method: str = "midpoint") -> Any:
    """The data that noise flows to: solves ``dx/dt = predict(x, t)`` from time 0 to 1.

    Args:
      predict: the predictor of the velocity.
      noise: normal numbers (n, ...).
      steps: the number of steps.
      method: "euler", with one prediction a step, or "midpoint", with two and an error of second order.

    Returns:
      Samples like `noise`.

    >>> sample_flow(lambda x, times: jnp.ones_like(x), jnp.zeros((4, 2)), steps=8)[0]
    Array([1., 1.], dtype=float32)
    """
    if method not in ("euler", "midpoint") or steps < 1:
        raise ArgumentError(
            f"sample_flow: got {method=} and {steps=}", instead="method='euler' or 'midpoint', and one step at least"
        )

    def step(x: Any, time: Any) -> tuple[Any, None]:
        velocity = predict(x, jnp.full(len(x), time))
        if method == "midpoint":
            velocity = predict(x + velocity / (2 * steps), jnp.full(len(x), time + 1 / (2 * steps)))
        return x + velocity / steps, None

    return lax.scan(step, noise, jnp.arange(steps, dtype=jnp.result_type(noise)) / steps)[0]


def _like(numbers: Any, x: Any) -> Any:
    """One number for each example, with an axis of length 1 for each further axis of `x`."""
    return jnp.reshape(numbers, (-1, *(1,) * (jnp.ndim(x) - 1)))
