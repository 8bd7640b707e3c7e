"""`make_evaluation`: metrics of a model over all batches of a set; sums of metrics over batches."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import phlox
from phlox.errors import ArgumentError

from . import _average, metrics
from ._state import TrainState

Figures = dict[str, Any]


def make_evaluation(
    measure: Callable[..., Mapping[str, Any]], batches: Iterable[Any], *, prefix: str = "eval_", sizes: Any = None
) -> Callable[[TrainState], Figures]:
    """An evaluation: a function from a `TrainState` to metrics over all of `batches`, as Python numbers.

    Args:
      measure: ``measure(params, batch)``, and ``state`` if it has a parameter of this name. It is jitted. It returns a
        dict of metrics of `phlox_optim.metrics`, or of scalars. Scalars are weighted by the number of examples of a
        batch, if all arrays in it have an equally long first axis; for a mask, return ``metrics.mean(values, mask)``.
      batches: an iterable that can be iterated again for each evaluation.
      prefix: stands before the names of the figures.
      sizes: as of `make_step`, for batches whose lengths vary.

    If the step averages parameters (``ema``), both are measured: the figures of the parameters have the names that
    `measure` gives them, such as ``eval_loss``, and those of the average have ``ema_`` in front, ``eval_ema_loss``.

    >>> import phlox.numpy as jnp, phlox_optim as optim
    >>> step = optim.make_step(lambda params, batch: jnp.mean((params - batch) ** 2), optim.sgd(0.1))
    >>> evaluate = optim.make_evaluation(lambda params, batch: {"error": jnp.abs(params - batch).mean()}, [jnp.ones(4)])
    >>> evaluate(step.init(jnp.zeros(4)))
    {'eval_error': 1.0}
    """
    takes_state = "state" in inspect.signature(measure).parameters

    @functools.partial(phlox.jit, sizes=None if sizes is None else {"batch": sizes})
    def part(params: Any, state: Any, batch: Any) -> Figures:
        figures = measure(params, batch, state=state) if takes_state else measure(params, batch)
        examples = metrics.examples_in(batch)
        return {name: metrics.as_metric(name, figure, examples) for name, figure in figures.items()}

    def evaluate(train: TrainState) -> Figures:
        variants = {"": (train.params, train.state)}
        if train.ema is not None:
            average = _average.in_dtypes_of(train.params, train.ema)
            variants["ema_"] = average, _average.in_dtypes_of(train.state, train.ema_state)
        total = None
        for batch in batches:
            figures = {
                start + name: figure
                for start, (params, state) in variants.items()
                for name, figure in part(params, state, batch).items()
            }
            total = figures if total is None else merged(total, figures)
        if total is None:
            raise ArgumentError("there were no batches to evaluate", instead="batches that can be iterated again")
        values = metrics.values(total)
        return {prefix + name: values[name] for name in sorted(values, key=lambda name: name.startswith("ema_"))}

    return evaluate


def merged(total: Figures, figures: Figures) -> Figures:
    """The metrics of both by name. Those that keep their examples grow, and are merged outside of compiled programs."""
    growing = {name for name, figure in figures.items() if isinstance(figure, metrics.Ranking)}
    sums = _merge(*({name: x for name, x in tree.items() if name not in growing} for tree in (total, figures)))
    for name in growing:
        sums[name] = metrics.merge(*(phlox.tree.map(np.asarray, tree[name]) for tree in (total, figures)))
    return {name: sums[name] for name in total}


_merge = phlox.jit(metrics.merge)
