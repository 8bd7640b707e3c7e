"""Step sizes as functions of the step number, for `phlox_compat.example_libraries.optimizers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phlox import numpy as jnp
from phlox.errors import ArgumentError, OptionError

Schedule = Callable[[Any], Any]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule for a step size.

    Args:
      scalar_or_schedule: a number, or a schedule, which is a function of the step number.

    Returns:
      `scalar_or_schedule` if it is a function; else the constant schedule of this number.

    Raises:
      ArgumentError: `scalar_or_schedule` is neither a number nor a function.

    >>> make_schedule(0.1)(7)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}")


def constant(step_size: Any) -> Schedule:
    """A constant schedule.

    Args:
      step_size: a number.

    Returns:
      A function of the step number that returns `step_size`.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Exponential decay: step_size times decay_rate to the power i / decay_steps.

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps in which the value is multiplied by `decay_rate`.
      decay_rate: the factor.

    Returns:
      A function of the step number i.

    >>> exponential_decay(1.0, 1, 0.5)(2)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Decay with the inverse of time: step_size / (1 + decay_rate i / decay_steps).

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps in which the divisor grows by `decay_rate`.
      decay_rate: the growth of the divisor.
      staircase: round i / decay_steps down.

    Returns:
      A function of the step number i.

    >>> inverse_time_decay(1.0, 1, 1.0)(1)
    0.5
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """Polynomial decay from `step_size` to `final_step_size`.

    The distance from the final value is proportional to a power of 1 - i / decay_steps, and 0 after `decay_steps`.

    Args:
      step_size: the value at step 0.
      decay_steps: the number of steps until the final value.
      final_step_size: the final value.
      power: the exponent; 1 is linear decay.

    Returns:
      A function of the step number i.

    >>> polynomial_decay(1.0, 2, 0.0)(1)
    Array(0.5, dtype=float32, weak_type=True)
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """A piecewise constant schedule: values[k] for steps after boundary k - 1 and up to boundary k.

    Args:
      boundaries: step numbers in ascending order.
      values: the values, one more than boundaries.

    Returns:
      A function of the step number.

    Raises:
      OptionError: `boundaries` is no list, or `values` has not one element more.

    >>> piecewise_constant([2], [1.0, 0.5])(3)
    Array(0.5, dtype=float32)
    """
    edges, levels = jnp.array(boundaries), jnp.array(values)
    if edges.ndim != 1 or levels.shape != (edges.shape[0] + 1,):
        raise OptionError("piecewise_constant needs a list of boundaries and one value more than those")
    return lambda i: levels[jnp.sum(i > edges)]
