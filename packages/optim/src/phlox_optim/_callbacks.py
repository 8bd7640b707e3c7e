"""What `fit` asks after each epoch: functions of the history, so that a continued training has the same answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from phlox.errors import ArgumentError


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

    def __post_init__(self) -> None:
        check_mode("EarlyStopping", self.mode)

    def __call__(self, history: Sequence[Mapping[str, Any]]) -> bool:
        waits = list(_waits("EarlyStopping", history, self.figure, self.mode, self.min_delta))
        return bool(waits) and waits[-1] >= self.patience


@dataclasses.dataclass(frozen=True)
class ReduceOnPlateau:
    """Lowers the learning rate when a metric has not improved for `patience` epochs. A function of the history.

    ``fit(..., plateau=ReduceOnPlateau("eval_loss"))`` multiplies all updates by its value, whatever the optimizer and
    its schedule are.

    Args:
      figure: the name of the metric in the history.
      factor: the rate is multiplied by it, a number from 0 to 1.
      patience: how many epochs without a better value are borne (PyTorch's counts one less).
      min_delta: by how much a value must be better to count.
      mode: which values are better, lower ("min") or higher ones ("max").
      minimum: the product of factors does not become less.

    >>> plateau = ReduceOnPlateau("eval_loss", factor=0.1, patience=1)
    >>> plateau([{"eval_loss": 1.0}, {"eval_loss": 0.9}]), plateau([{"eval_loss": 1.0}, {"eval_loss": 1.0}])
    (1.0, 0.1)
    """

    figure: str
    factor: float = 0.5
    patience: int = 3
    min_delta: float = 0.0
    mode: Literal["min", "max"] = "min"
    minimum: float = 0.0

    def __post_init__(self) -> None:
        check_mode("ReduceOnPlateau", self.mode)
        if not 0 < self.factor < 1:
            raise ArgumentError(
                f"ReduceOnPlateau: factor is {self.factor!r}", instead="a number between 0 and 1, such as 0.5"
            )
        if self.patience < 1:
            raise ArgumentError(f"ReduceOnPlateau: patience is {self.patience!r}", instead="1 epoch or more")

    def __call__(self, history: Sequence[Mapping[str, Any]]) -> float:
        scale, since = 1.0, 0
        for waited in _waits("ReduceOnPlateau", history, self.figure, self.mode, self.min_delta):
            since = since + 1 if waited else 0
            if since == self.patience:
                scale, since = max(scale * self.factor, self.minimum), 0
        return scale


@dataclasses.dataclass(frozen=True)
class Best:
    """Keeps the state with the best value of a metric: ``fit(..., best=Best("eval_loss")).best``.

    Args:
      figure: the name of the metric, among those of an epoch or of an evaluation (``evaluate_every``).
      mode: which values are better, lower ("min") or higher ones ("max").
      checkpoints: a `CheckpointManager` that the best states are saved with. By default that of `fit`'s checkpoints
        is followed by one in a folder of its own, whose name ends in "-best"; without checkpoints the state is kept in
        memory.

    >>> Best("eval_accuracy", mode="max").is_better(0.9, 0.8)
    True
    """

    figure: str
    mode: Literal["min", "max"] = "min"
    checkpoints: Any = None

    def __post_init__(self) -> None:
        check_mode("Best", self.mode)

    def is_better(self, value: float, other: float | None) -> bool:
        """Whether a value is better than the best so far. nan is not."""
        if math.isnan(value):
            return False
        return other is None or (value < other if self.mode == "min" else value > other)


def check_mode(what: str, mode: Any) -> None:
    """Raises `ArgumentError` unless `mode` is "min" or "max"."""
    if mode not in ("min", "max"):
        raise ArgumentError(f'{what}: mode is {mode!r}, not "min" or "max"', instead='mode="max" for an accuracy')


def figure_of(what: str, row: Mapping[str, Any], figure: str) -> float:
    """The figure of an epoch. Raises `ArgumentError` if it is not there, or no scalar."""
    if figure not in row:
        raise ArgumentError(
            f"{what} watches {figure!r}, which is not among the figures of an epoch",
            instead="one of " + ", ".join(row),
            argument=figure,
        )
    try:
        return float(row[figure])
    except TypeError:
        raise ArgumentError(
            f"{what} watches {figure!r}, which is no scalar", instead="one of " + ", ".join(row), argument=figure
        ) from None


def _waits(what: str, history: Sequence[Mapping[str, Any]], figure: str, mode: str, min_delta: float) -> Iterator[int]:
    """For each epoch the number of epochs since the figure was better than ever before. nan is no improvement."""
    best, waited = math.inf, 0
    for row in history:
        value = figure_of(what, row, figure) * (1 if mode == "min" else -1)
        is_better = value < best - min_delta or best == math.inf > value
        best, waited = (value, 0) if is_better else (best, waited + 1)
        yield waited
