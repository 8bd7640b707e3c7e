"""Diffusion and flow matching: losses and samplers for a network that turns noise into data, step by step.

A *predictor* is a function ``predict(x, times)`` of noisy data (n, ...) and one number for each example. Its result is
like x: ``lambda x, times: model.apply(params, x, times)`` with a `phlox_models.unet.UNet`.

- Denoising diffusion (Ho et al., 2020): noise is added in T steps, and the network predicts it. Times are 0 to T - 1.
- Flow matching (Lipman et al., 2022; Liu et al., 2022): data and noise are joined by straight lines, and the network
  predicts the velocity. Times go from 0 (noise) to 1 (data).
"""

from __future__ import annotations

from typing import Any

import phlox.numpy as jnp
from phlox import lax, random
from phlox.errors import ArgumentError

from ._flow import Predictor as Predictor, flow_loss as flow_loss, sample_flow as sample_flow
from ._schedules import (
    Schedule as Schedule,
    add_noise as add_noise,
    cosine_schedule as cosine_schedule,
    denoised as denoised,
    linear_schedule as linear_schedule,
    posterior as posterior,
)


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
