"""Flow matching: a network predicts the velocity on straight lines from noise to data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import phlox.numpy as jnp
from phlox import lax, random
from phlox.errors import ArgumentError

from ._schedules import per_example

Predictor = Callable[[Any, Any], Any]


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
    t = per_example(times, data)
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
