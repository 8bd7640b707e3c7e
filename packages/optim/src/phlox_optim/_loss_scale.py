"""`LossScale`: dynamic scaling of the loss, for gradients in float16."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import phlox.numpy as jnp
from phlox.errors import ArgumentError


@dataclasses.dataclass(frozen=True)
class LossScale:
    """Dynamic scaling of the loss, so that gradients in float16 do not underflow (Micikevicius et al. 2018).

    Args:
      initial: the first scale.
      factor: the scale is divided by it after a step whose loss is finite and whose gradients are not, and multiplied
        by it after `period` steps in a row with finite gradients. A loss that is not finite leaves the scale as it is,
        because the scale does not change it.
      period: see `factor`.
      minimum: the scale does not become less; 1 by default, or `initial` if that is less.
      maximum: the scale does not become greater; 2**24 by default, or `initial` if that is greater.

    Raises:
      ArgumentError: the scales are not positive, finite and in order; `factor` is below 1, or `period` is no positive
        integer.

    >>> LossScale(initial=2.0**10, minimum=2.0**-4).maximum
    16777216.0
    """

    initial: float = 2.0**15
    factor: float = 2.0
    period: int = 2000
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if self.minimum is None:
            object.__setattr__(self, "minimum", min(1.0, self.initial))
        if self.maximum is None:
            object.__setattr__(self, "maximum", max(2.0**24, self.initial))
        assert self.minimum is not None and self.maximum is not None
        if not 0 < self.minimum <= self.initial <= self.maximum < math.inf:
            raise ArgumentError(
                f"LossScale: minimum={self.minimum}, initial={self.initial}, maximum={self.maximum}",
                instead="positive, finite numbers in ascending order",
            )
        if not 1 <= self.factor < math.inf:
            raise ArgumentError(f"LossScale: factor={self.factor}", instead="a number from 1 on, such as 2.0")
        if int(self.period) != self.period or self.period < 1:
            raise ArgumentError(f"LossScale: period={self.period}", instead="a number of steps, 1 or more")

    def start(self) -> tuple[Any, Any]:
        """The first scale, and the number of steps since it changed."""
        return jnp.float32(self.initial), jnp.zeros((), jnp.int32)

    def after(self, scale: tuple[Any, Any], finite: Any, overflow: Any) -> tuple[Any, Any]:
        """The scale after a step.

        Args:
          scale: the scale of the step, and the number of steps since it changed.
          finite: whether loss and gradients of the step are finite.
          overflow: whether its loss is finite and its gradients are not.
        """
        value, good = scale
        due = finite & (good + 1 >= self.period)
        value = jnp.where(due, value * self.factor, jnp.where(overflow, value / self.factor, value))
        return jnp.clip(value, self.minimum, self.maximum), jnp.where(finite & ~due, good + 1, 0)
