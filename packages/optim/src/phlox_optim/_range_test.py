"""`range_test`: the losses of a short training with a growing learning rate (Smith 2017)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from phlox.errors import ArgumentError

from ._step import make_step
from ._types import Optimizer


@dataclasses.dataclass(frozen=True)
class RangeTest:
    """The result of `range_test`.

    Attributes:
      rates: the learning rate of each step.
      losses: the loss of each step, smoothed.
      suggestion: the rate at which the loss falls fastest; None if it never falls.
    """

    rates: list[float]
    losses: list[float]
    suggestion: float | None


def range_test(
    loss: Callable[..., Any],
    optimizer: Callable[[Any], Optimizer],
    params: Any,
    batches: Iterable[Any],
    *,
    lowest: float = 1e-6,
    highest: float = 10.0,
    steps: int = 100,
    smoothing: float = 0.9,
    state: Any = None,
    key: Any = None,
    **options: Any,
) -> RangeTest:
    """Trains for a few steps with a learning rate that grows by a factor each step, to see which rates are useful.

    It ends early when the loss is not finite, or four times the best one. `params` do not change.

    Args:
      loss: as for `make_step`.
      optimizer: a function of a learning rate, such as ``optim.adam`` or ``lambda rate: optim.sgd(rate, 0.9)``.
      params: the initial parameters.
      batches: batches; they are iterated again if there are fewer than `steps`.
      lowest, highest: the first and the last learning rate.
      steps: the number of steps.
      smoothing: the decay of the moving average of losses.
      state, key: as for ``step.init``.
      options: further arguments of `make_step`.

    Returns:
      A `RangeTest`: `rates`, `losses` and a `suggestion`.

    Raises:
      ArgumentError: `optimizer` is no function of a rate, the rates are not in order, or there are no batches.

    >>> import phlox.numpy as jnp, phlox_optim as optim
    >>> result = range_test(lambda p, b: jnp.mean((p - b) ** 2), optim.sgd, jnp.zeros(2), [jnp.ones(2)])
    >>> 0.01 < result.suggestion < 1
    True
    """
    if hasattr(optimizer, "init") or not callable(optimizer):
        raise ArgumentError(
            "range_test: the optimizer must be a function of the learning rate",
            instead="optim.adam, or lambda rate: optim.adamw(rate, weight_decay=0.1)",
            argument="optimizer",
        )
    if not 0 < lowest < highest or steps < 2 or not 0 <= smoothing < 1:
        raise ArgumentError(
            f"range_test: lowest={lowest}, highest={highest}, steps={steps}, smoothing={smoothing}",
            instead="0 < lowest < highest, two steps or more, and smoothing from 0 to below 1",
        )
    growth = (highest / lowest) ** (1 / (steps - 1))
    step = make_step(loss, optimizer(lambda count: lowest * growth**count), **options)
    train = step.init(params, state=state, key=key)
    rates: list[float] = []
    losses: list[float] = []
    average, best = 0.0, math.inf
    for number, batch in zip(range(steps), _endless(batches), strict=False):
        train, figures = step(train, batch)
        value = float(figures["loss"].value())
        average = smoothing * average + (1 - smoothing) * value
        smooth = average / (1 - smoothing ** (number + 1))
        if not math.isfinite(smooth) or smooth > 4 * best > 0:
            break
        best = min(best, smooth)
        rates.append(lowest * growth**number)
        losses.append(smooth)
    return RangeTest(rates, losses, _steepest(rates, losses))


def _steepest(rates: list[float], losses: list[float]) -> float | None:
    """The rate at which the loss falls fastest over the logarithm of the rate, before its minimum."""
    if len(losses) < 3:
        return None
    slopes = np.gradient(np.array(losses))[: int(np.argmin(losses)) + 1]
    return rates[int(np.argmin(slopes))] if slopes.min() < 0 else None


def _endless(batches: Iterable[Any]) -> Iterable[Any]:
    """The batches, again and again."""
    while True:
        is_empty = True
        for batch in batches:
            is_empty = False
            yield batch
        if is_empty:
            raise ArgumentError("range_test: there are no more batches", instead="batches that can be iterated again")
