"""The learning rate of an optimizer, for the figures of a step.

Optimizers of optax are pairs of functions that do not tell it. The functions of phlox_optim that have a parameter
`learning_rate` therefore return a subclass with this attribute, and those that combine optimizers pass it on.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import phlox.numpy as jnp


def with_rate(result: Any, rate: Any) -> Any:
    """The optimizer with an attribute `learning_rate`; anything else unchanged."""
    if rate is None or not (isinstance(result, tuple) and hasattr(result, "init") and hasattr(result, "update")):
        return result
    rated = _rated(type(result))(*result)
    rated.learning_rate = rate
    return rated


@functools.cache
def _rated(kind: type) -> Any:
    # Named tuples have no place for attributes, their subclasses do.
    return (
        kind
        if hasattr(kind, "__dict__") and "learning_rate" in kind.__dict__
        else type(
            kind.__name__, (kind,), {"learning_rate": None, "__module__": kind.__module__, "__doc__": kind.__doc__}
        )
    )


def rate_of_arguments(arguments: Iterator[Any]) -> Any:
    """The rate of the optimizers among the arguments of a function, of the last one that has one."""
    rate = None
    for argument in arguments:
        if isinstance(argument, list | tuple) and not hasattr(argument, "init"):
            inner = rate_of_arguments(iter(argument))
        elif isinstance(argument, Mapping):
            inner = rate_of_arguments(iter(argument.values()))
        else:
            inner = getattr(argument, "learning_rate", None)
        rate = rate if inner is None else inner
    return rate


def rate_at(tx: Any, opt_state: Any, count: Any) -> Any:
    """The learning rate of the step after `count` updates, as a float32; None if the optimizer does not tell it.

    Args:
      tx: the optimizer.
      opt_state: its state after the step, in which `inject_hyperparams` has the rate.
      count: the number of updates before.
    """
    for node in _nodes(opt_state):
        hyperparams = getattr(node, "hyperparams", None)
        if isinstance(hyperparams, Mapping) and "learning_rate" in hyperparams:
            return jnp.asarray(hyperparams["learning_rate"], jnp.float32)
    rate = getattr(tx, "learning_rate", None)
    if callable(rate):
        rate = rate(count)
    return None if rate is None else jnp.asarray(rate, jnp.float32)


def _nodes(state: Any) -> Iterator[Any]:
    yield state
    if isinstance(state, tuple | list):
        for part in state:
            yield from _nodes(part)
    elif isinstance(state, Mapping):
        for part in state.values():
            yield from _nodes(part)
