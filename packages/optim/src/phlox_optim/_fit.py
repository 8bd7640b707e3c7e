"""`fit`: a training loop over epochs and batches, with metrics, evaluation, checkpoints and ways to end.

Programs that need another loop can write one with the same parts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import inspect
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import phlox
import phlox.numpy as jnp
from phlox.errors import ArgumentError
from phlox.sharding import Mesh

from . import _mesh, metrics
from ._callbacks import Best, ReduceOnPlateau, figure_of
from ._evaluation import Figures
from ._interrupts import remembered
from ._place import Place
from ._progress import Progress, shown
from ._state import TrainState
from ._step import Step
from ._usage import Usage
from .logging import Logger

Ended = Literal["all epochs", "early stopping", "interrupted", "time limit"]


class Epochs(Protocol):
    """A source of the batches of each epoch, such as the loaders of phlox_data."""

    def epoch(self, number: int, /, *, start: int) -> Iterable[Any]:
        """The batches of an epoch without the first `start` ones."""


Batches = Iterable[Any] | Callable[[int], Iterable[Any]] | Epochs


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The result of `fit`.

    Attributes:
      state: the last state.
      history: the figures of each epoch.
      ended: why training ended.
      best: the state with the best value of a figure; None without `Best`.
      evaluations: the figures of evaluations within epochs (``evaluate_every``), each with its step.
    """

    state: TrainState
    history: list[Figures]
    ended: Ended
    best: TrainState | None = None
    evaluations: list[Figures] = dataclasses.field(default_factory=list)


def fit(
    state: TrainState,
    step: Callable[[TrainState, Any], tuple[TrainState, Figures]],
    batches: Batches,
    *,
    epochs: int,
    evaluate: Callable[[TrainState], Mapping[str, Any]] | None = None,
    evaluate_every: int | None = None,
    early_stopping: Callable[[Sequence[Figures]], bool] | None = None,
    plateau: ReduceOnPlateau | Callable[[Sequence[Figures]], float] | None = None,
    best: Best | None = None,
    checkpoints: Any = None,
    save_every: int | None = None,
    max_time: float | datetime.timedelta | None = None,
    log: Iterable[Logger] = (),
    log_every: int | None = None,
    figures: Sequence[Literal["throughput", "memory"]] = (),
    mesh: Mesh | None = None,
    rules: Mapping[Any, Any] | Literal["fsdp"] | None = None,
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
      evaluate_every: the number of steps after which to evaluate too. These figures are in `Fitted.evaluations`.
      early_stopping: called with the history before each epoch but the first; see `EarlyStopping`, which watches the
        figure that it is given: the parameters' (``eval_loss``) or their average's (``eval_ema_loss``).
      plateau: called with the history after each epoch: a factor of all updates, see `ReduceOnPlateau`.
      best: keeps the state with the best value of a figure, see `Best`.
      checkpoints: a `CheckpointManager`, or a folder, which keeps the latest step only. If it has a step, training
        continues from the latest one, with bitwise equal results if `batches` are the same again. `epochs` counts from
        the very beginning, and may be higher than before. Saved after each epoch, and when training ends.
      save_every: the number of steps after which to save too.
      max_time: seconds, or a timedelta, after which training ends and is saved.
      log: functions of a step's number and metrics, called after each epoch; see `phlox_optim.logging`.
      log_every: the number of steps after which `log` is called too, with the metrics of this step. Their names begin
        with ``step_``.
      figures: what to add to the figures of an epoch: "throughput" (``steps_per_second`` and
        ``examples_per_second``, without evaluations and the first step, which compiles), "memory" (``memory_bytes``,
        the peak of the device, on CPUs of the process).
      mesh: devices over which batches are split along their first axis: along the mesh axes named "data", "batch" or
        "fsdp", or else along the first one. The results are those of one device.
      rules: how parameters are split over `mesh`: `PartitionSpec` by pattern of paths, such as
        ``{"*/query/weight": P("data", "model")}``, others are on all devices whole; or "fsdp", which splits each along
        its longest axis. The optimizer's state is split as the parameters.
      progress: whether metrics are printed, and a bar is shown in a terminal; in logs there is a line each half minute.
      sizes: names of the axes of a batch that vary in length, as of `make_step`: for a short last batch ``"n"``, for
        texts ``{"text": "n, time", "label": "n"}``. One program serves all lengths up to a bucket.

    After Ctrl-C or SIGTERM the running step is finished and saved, and `fit` returns; a second one interrupts at once.

    Returns:
      A `Fitted`.

    Raises:
      ArgumentError: an epoch without batches, or arguments that do not fit each other.
      SkippedStepsError: many steps in a row were skipped; see `make_step`.

    >>> import phlox.numpy as jnp, phlox_optim as optim
    >>> step = optim.make_step(lambda params, batch: jnp.mean((params - batch) ** 2), optim.sgd(0.5))
    >>> done = optim.fit(step.init(jnp.zeros(2)), step, [jnp.ones(2)] * 4, epochs=2, progress=False)
    >>> done.ended, len(done.history), round(done.history[-1]["loss"], 3)
    ('all epochs', 2, 0.001)
    """
    _check_counts(epochs=epochs, evaluate_every=evaluate_every, save_every=save_every, log_every=log_every)
    if sizes is not None:
        step = _with_sizes(step, sizes)
    _mesh.check_mesh(mesh, rules, step)
    _mesh.check_not_mapped(state)
    if evaluate_every is not None and evaluate is None:
        raise ArgumentError("fit: evaluate_every needs evaluate", instead="evaluate=optim.make_evaluation(...)")
    if log_every is not None and not log:
        raise ArgumentError("fit: log_every needs log", instead='log=[logging.JsonLines("figures.jsonl")]')
    limit = max_time.total_seconds() if isinstance(max_time, datetime.timedelta) else max_time
    run = _Run(
        state, step, evaluate, evaluate_every, plateau, best, checkpoints, save_every, tuple(log), log_every,
        Usage(figures), None if mesh is None else _mesh.automatic(mesh),
        None if limit is None else time.monotonic() + limit,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        run.start(rules, stack)
        interrupted = stack.enter_context(remembered())
        display = stack.enter_context(shown(progress))
        ended = run.train(batches, epochs, early_stopping, interrupted, display)
        return Fitted(run.state, run.place.history, ended, run.best_state(), run.place.evaluations)


@dataclasses.dataclass
class _Run:
    """A running training: the arguments of `fit`, the state, and the progress."""

    state: TrainState
    step: Any
    evaluate: Any
    evaluate_every: int | None
    plateau: Any
    best: Best | None
    checkpoints: Any
    save_every: int | None
    log: tuple[Any, ...]
    log_every: int | None
    usage: Usage
    mesh: Any
    deadline: float | None
    place: Place = dataclasses.field(default_factory=Place)
    #: the number of steps so far
    number: int = 0
    #: where best states are saved, if they are
    best_checkpoints: Any = None
    #: the best state, if it is not saved
    kept: Any = None

    def start(self, rules: Any, stack: contextlib.ExitStack) -> None:
        """Distributes the state over the mesh, opens the checkpoints, and goes on from the latest one."""
        if isinstance(self.checkpoints, str | os.PathLike):
            self.checkpoints = _latest(self.checkpoints, stack)
        if self.plateau is not None:
            if not isinstance(self.step, Step):
                raise ArgumentError("fit: plateau needs a step of make_step", instead="optim.make_step(loss, tx)")
            self.state = self.state.replace(rate_scale=jnp.float32(1))
        if self.mesh is not None:
            shardings = _mesh.state_shardings(self.state, self.mesh, rules)
            self.state = phlox.device_put(self.state, shardings)
            if isinstance(self.step, Step):
                self.step = dataclasses.replace(self.step, shardings=shardings)
        latest = None if self.checkpoints is None else self.checkpoints.latest_step()
        if latest is not None:
            rate_scale = getattr(self.state, "rate_scale", None)
            saved = self.checkpoints.restore(like={"train": self._stored(), "fit": ""})
            self.state, self.place = saved["train"], Place.read(saved["fit"])
            if self.plateau is not None:
                self.state = self.state.replace(rate_scale=rate_scale)
                self._scale_rate()
        if self.best is not None:
            self.best_checkpoints = self.best.checkpoints
            if self.best_checkpoints is None and self.checkpoints is not None:
                self.best_checkpoints = _latest(f"{self.checkpoints.directory}-best", stack)
        self.number = int(getattr(self.state, "step", latest or 0))

    def train(
        self, batches: Any, epochs: int, early_stopping: Any, interrupted: Callable[[], bool], display: Progress
    ) -> Ended:
        """Runs the remaining epochs. Returns why training ended."""
        place = self.place
        while place.epoch < epochs:
            if early_stopping is not None and place.history and not place.batch and early_stopping(place.history):
                return "early stopping"
            self.usage.start_epoch()
            display.start_epoch(place.epoch, epochs, place.batch, _length(batches))
            for batch in display.counted(_epoch(batches, place)):
                self._one(batch)
                display.update(place.current)
                if interrupted() or (self.deadline is not None and time.monotonic() >= self.deadline):
                    self.save()
                    return "interrupted" if interrupted() else "time limit"
                if self.save_every and place.batch % self.save_every == 0:
                    self.save()
            self._end_epoch(display)
            self.save()
        return "all epochs"

    def _one(self, batch: Any) -> None:
        """A step, with what is due after it."""
        if self.mesh is not None:
            batch = _mesh.spread_batch(batch, self.mesh)
        self.state, figures = self.step(self.state, batch)
        self.number += 1
        self.place.add(figures, batch)
        self.usage.count(batch, self.place)
        if self.log_every and self.number % self.log_every == 0:
            examples = metrics.examples_in(batch)
            values = metrics.values({name: metrics.as_metric(name, x, examples) for name, x in figures.items()})
            self._write({"step": self.number, **{f"step_{name}": value for name, value in values.items()}})
        if self.evaluate_every and self.number % self.evaluate_every == 0:
            with self.usage.paused():
                row = {"step": self.number, **self.evaluate(self.state)}
            self.place.evaluations.append(row)
            self._write(row)
            if self.best is not None and self.best.figure in row:
                self._keep_if_best(row)

    def _end_epoch(self, display: Progress) -> None:
        usage = self.usage.figures()
        evaluation: Figures = {}
        if self.evaluate is not None:
            last = self.place.evaluations[-1] if self.place.evaluations else {}
            is_fresh = last.get("step") == self.number
            evaluation = {k: v for k, v in last.items() if k != "step"} if is_fresh else dict(self.evaluate(self.state))
        row = self.place.end_epoch(int(getattr(self.state, "step", self.number)), {**usage, **evaluation})
        display.row(row)
        self._write(row)
        if self.best is not None:
            self._keep_if_best(row)
        if self.plateau is not None:
            self._scale_rate()

    def _scale_rate(self) -> None:
        """Sets the factor of updates, which is a function of the history."""
        scale = jnp.float32(self.plateau(self.place.history)) if self.place.history else jnp.float32(1)
        self.state = self.state.replace(rate_scale=phlox.device_put(scale, self.state.rate_scale.sharding))

    def _stored(self) -> Any:
        """The state as it is saved: with a plateau without its factor, so that one can be added or left out later."""
        return self.state if self.plateau is None else self.state.replace(rate_scale=None)

    def _write(self, row: Figures) -> None:
        for write in self.log:
            write(row["step"], row)

    def _keep_if_best(self, row: Figures) -> None:
        assert self.best is not None
        value = figure_of("Best", row, self.best.figure)
        if not self.best.is_better(value, self.place.best_value):
            return
        self.place.best_value, self.place.best_step = value, self.number
        if self.best_checkpoints is None:
            self.kept = phlox.tree.map(jnp.copy, self.state)
        elif self.number not in self.best_checkpoints.all_steps():
            self.best_checkpoints.save(self.number, {"train": self._stored()})

    def best_state(self) -> TrainState | None:
        """The best state so far."""
        if self.best is None or self.best_checkpoints is None:
            return self.kept
        steps = self.best_checkpoints.all_steps()
        if not steps:
            return None
        step = self.place.best_step if self.place.best_step in steps else max(steps)
        state: TrainState = self.best_checkpoints.restore(step, like={"train": self._stored()})["train"]
        return state

    def save(self) -> None:
        """Saves the state and the progress, if there are checkpoints."""
        number = int(getattr(self.state, "step", self.number))
        if self.checkpoints is not None and number not in self.checkpoints.all_steps():
            self.checkpoints.save(number, {"train": self._stored(), "fit": self.place.text()})


def _latest(folder: str | os.PathLike[str], stack: contextlib.ExitStack) -> Any:
    """A manager of checkpoints that keeps the latest one, until the stack is closed."""
    from .checkpoint import CheckpointManager  # imports orbax

    return stack.enter_context(CheckpointManager(folder, max_to_keep=1))


def _check_counts(**counts: Any) -> None:
    for name, count in counts.items():
        least = 0 if name == "epochs" else 1
        if count is not None and (isinstance(count, bool) or int(count) != count or count < least):
            raise ArgumentError(f"fit: {name} is {count!r}", instead=f"an integer from {least} on", argument=name)


def _with_sizes(step: Callable[..., Any], sizes: Any) -> Callable[..., Any]:
    """The step, with a program for each bucket of sizes."""
    if isinstance(step, Step):
        return dataclasses.replace(step, sizes=sizes)
    batch = list(inspect.signature(step).parameters)[1]
    sized: Callable[..., Any] = phlox.jit(step, donate_argnums=0, sizes={batch: sizes})
    return sized


def _epoch(batches: Any, place: Place) -> Iterable[Any]:
    """The remaining batches of the epoch."""
    if hasattr(batches, "epoch"):
        return batches.epoch(place.epoch, start=place.batch)
    return itertools.islice(iter(batches(place.epoch) if callable(batches) else batches), place.batch, None)


def _length(batches: Any) -> int | None:
    try:
        return len(batches)
    except TypeError:
        return None
