"""`fit`: a training loop over epochs and batches, with metrics, evaluation, checkpoints and early stopping.

It is one short function; programs that need another loop can write one with the same parts.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

import phlox
from phlox.errors import ArgumentError

from . import _average, metrics
from ._interrupts import remembered
from ._progress import shown
from ._state import TrainState
from ._step import Step

Figures = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
    """Ends training if a metric has not improved for `patience` epochs. A function of the history.

    Args:
      figure: its name in the history: ``"eval_loss"`` is the loss of the parameters, ``"eval_ema_loss"`` that of their
        moving average (see `make_evaluation`).
      patience: how many epochs without a better value are borne.
      min_delta: by how much a value must be better to count.
      mode: which values are better, lower ("min") or higher ones ("max").

    >>> stops = EarlyStopping("eval_loss", patience=2)
    >>> (
    ...     stops([{"eval_loss": 1.0}, {"eval_loss": 1.2}]),
    ...     stops([{"eval_loss": 1.0}, {"eval_loss": 1.2}, {"eval_loss": 1.1}]),
    ... )
    (False, True)
    """

    figure: str
    patience: int = 5
    min_delta: float = 0.0
    mode: Literal["min", "max"] = "min"

    def __call__(self, history: Sequence[Mapping[str, Any]]) -> bool:
        best, waited = math.inf, 0
        for row in history:
            if self.figure not in row:
                raise ArgumentError(
                    f"EarlyStopping watches {self.figure!r}, which is not among the figures of an epoch",
                    instead="one of " + ", ".join(row),
                    argument=self.figure,
                )
            value = row[self.figure] if self.mode == "min" else -row[self.figure]
            # nan is no improvement
            best, waited = (
                (value, 0) if value < best - self.min_delta or best == math.inf > value else (best, waited + 1)
            )
        return waited >= self.patience


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The result of `fit`: the last state, the metrics of each epoch, and why training ended."""

    state: TrainState
    history: list[Figures]
    ended: Literal["all epochs", "early stopping", "interrupted"]


def make_evaluation(
    measure: Callable[..., Mapping[str, Any]], batches: Any, *, prefix: str = "eval_", sizes: Any = None
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
            total = figures if total is None else _merge(total, figures)
        if total is None:
            raise ArgumentError("there were no batches to evaluate", instead="batches that can be iterated again")
        values = metrics.values(total)
        return {prefix + name: values[name] for name in sorted(values, key=lambda name: name.startswith("ema_"))}

    return evaluate


def fit(
    state: TrainState,
    step: Callable[[TrainState, Any], tuple[TrainState, Figures]],
    batches: Any,
    *,
    epochs: int,
    evaluate: Callable[[TrainState], Mapping[str, Any]] | None = None,
    early_stopping: Callable[[Sequence[Figures]], bool] | None = None,
    checkpoints: Any = None,
    save_every: int | None = None,
    log: Iterable[Callable[[int, Figures], Any]] = (),
    progress: bool = True,
    sizes: Any = None,
) -> Fitted:
    """Trains for `epochs` epochs, or continues a training that was stopped.

    Args:
      state: the initial state, from ``step.init(...)``. It is donated; `Fitted` has the last one.
      step: from `make_step`, or any function of this form.
      batches: the batches of an epoch: an iterable; or a function of the epoch's number that returns one; or an object
        with ``epoch(number, start=batches to skip)``, such as the loaders of phlox_data.
      evaluate: called after each epoch; its metrics are added to those of the epoch. See `make_evaluation`.
      early_stopping: called with the history before each epoch but the first; see `EarlyStopping`, which watches the
        figure that it is given: the parameters' (``eval_loss``) or their average's (``eval_ema_loss``).
      checkpoints: a `CheckpointManager`. If it has a step, training continues from the latest one, with bitwise equal
        results if `batches` are the same again. `epochs` counts from the very beginning, and may be higher than before.
        Saved after each epoch, and when training ends.
      save_every: the number of steps after which to save too.
      log: functions of a step's number and metrics, called after each epoch; see `phlox_optim.logging`.
      progress: whether metrics are printed, and a bar is shown in a terminal.
      sizes: names of the axes of a batch that vary in length, as of `make_step`: for a short last batch ``"n"``, for
        texts ``{"text": "n, time", "label": "n"}``. One program serves all lengths up to a bucket.

    After Ctrl-C the running step is finished and saved, and `fit` returns; a second Ctrl-C interrupts at once.

    Raises:
      ArgumentError: an epoch without batches.
      SkippedStepsError: many steps in a row were skipped; see `make_step`.

    >>> import phlox.numpy as jnp, phlox_optim as optim
    >>> step = optim.make_step(lambda params, batch: jnp.mean((params - batch) ** 2), optim.sgd(0.5))
    >>> done = optim.fit(step.init(jnp.zeros(2)), step, [jnp.ones(2)] * 4, epochs=2, progress=False)
    >>> done.ended, len(done.history), round(done.history[-1]["loss"], 3)
    ('all epochs', 2, 0.001)
    """
    if sizes is not None:
        step = _with_sizes(step, sizes)
    place = _Place()
    if checkpoints is not None and checkpoints.latest_step() is not None:
        saved = checkpoints.restore(like={"train": state, "fit": ""})
        state, place = saved["train"], _Place.read(saved["fit"])

    def save() -> None:
        if checkpoints is not None and int(state.step) not in checkpoints.all_steps():
            checkpoints.save(int(state.step), {"train": state, "fit": place.text()})

    with remembered() as interrupted, shown(progress) as display:
        while place.epoch < epochs:
            if early_stopping is not None and place.history and not place.batch and early_stopping(place.history):
                return Fitted(state, place.history, "early stopping")
            title = f"epoch {place.epoch + 1} of {epochs}"
            for batch in display.counted(_epoch(batches, place), title, place.batch, _length(batches)):
                state, figures = step(state, batch)
                place.add(figures, batch)
                if interrupted():
                    save()
                    return Fitted(state, place.history, "interrupted")
                if save_every and place.batch % save_every == 0:
                    save()
            row = place.end_epoch(int(state.step), evaluate(state) if evaluate is not None else {})
            display.row(row)
            for write in log:
                write(row["step"], row)
            save()
    return Fitted(state, place.history, "all epochs")


@dataclasses.dataclass
class _Place:
    """The progress of training, stored in checkpoints beside the state; includes exact sums of an unfinished epoch."""

    epoch: int = 0
    #: the number of batches of this epoch that are done
    batch: int = 0
    history: list[Figures] = dataclasses.field(default_factory=list)
    #: the merged metrics of those batches; after `read`, a list of their leaves
    total: Any = None
    #: their values when `text` was called
    figures: Figures = dataclasses.field(default_factory=dict)

    def add(self, figures: Figures, batch: Any) -> None:
        self.batch += 1
        examples = metrics.examples_in(batch)
        figures = {name: metrics.as_metric(name, figure, examples) for name, figure in figures.items()}
        if isinstance(self.total, list):
            leaves, structure = phlox.tree.flatten(figures)
            self.total = structure.unflatten([np.asarray(x, y.dtype) for x, y in zip(self.total, leaves, strict=True)])
        if self.total is None:
            self.total = figures
        else:
            phlox.block_until_ready(self.total)  # at most two steps are enqueued, because their batches need memory
            self.total = _merge(self.total, figures)

    def end_epoch(self, step: int, more: Mapping[str, Any]) -> Figures:
        """Ends the epoch, and adds its metrics to the history. Returns them."""
        if self.total is None:
            raise ArgumentError(
                f"epoch {self.epoch + 1} had no batches",
                instead="batches that can be iterated again, or a function of the epoch",
            )
        # Still a list if no batch was left after `read`.
        figures = self.figures if isinstance(self.total, list) else metrics.values(self.total)
        in_order = sorted(figures, key=lambda name: name != "loss")
        row = {"epoch": self.epoch + 1, "step": step, **{name: figures[name] for name in in_order}, **more}
        self.history.append(row)
        self.epoch, self.batch, self.total = self.epoch + 1, 0, None
        return row

    def text(self) -> str:
        fields = dict(vars(self))
        if self.total is not None and not isinstance(self.total, list):
            fields["figures"] = metrics.values(self.total)
            fields["total"] = [np.asarray(leaf).tolist() for leaf in phlox.tree.leaves(self.total)]
        return json.dumps(fields, default=lambda array: np.asarray(array).tolist())

    @classmethod
    def read(cls, text: str) -> _Place:
        place = cls(**json.loads(text))
        for row in (*place.history, place.figures):
            row.update({name: np.asarray(figure) for name, figure in row.items() if isinstance(figure, list)})
        return place


def _with_sizes(step: Callable[..., Any], sizes: Any) -> Callable[..., Any]:
    """The step, with a program for each bucket of sizes."""
    if isinstance(step, Step):
        return dataclasses.replace(step, sizes=sizes)
    batch = list(inspect.signature(step).parameters)[1]
    sized: Callable[..., Any] = phlox.jit(step, donate_argnums=0, sizes={batch: sizes})
    return sized


_merge = phlox.jit(metrics.merge)


def _epoch(batches: Any, place: _Place) -> Iterable[Any]:
    """The remaining batches of the epoch."""
    if hasattr(batches, "epoch"):
        return batches.epoch(place.epoch, start=place.batch)
    return itertools.islice(iter(batches(place.epoch) if callable(batches) else batches), place.batch, None)


def _length(batches: Any) -> int | None:
    try:
        return len(batches)
    except TypeError:
        return None
