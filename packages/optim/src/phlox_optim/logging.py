"""Logs of the metrics of training: ``from phlox_optim import logging``, ``fit(..., log=[...])``.

A log is any function of a step's number and a dict of metrics, see `Logger`. Here are those that write to files
(`CSV`, `JsonLines`, `TensorBoard`) and to the services `WandB` and `MLflow`, if they are installed.
"""

from __future__ import annotations

import csv
import importlib
import json
import os
from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np

from .errors import MissingExtraError

__all__ = ["CSV", "JsonLines", "Logger", "MLflow", "TensorBoard", "WandB"]


class Logger(Protocol):
    """A function that gets the figures of an epoch, and with ``log_every`` those of a step.

    >>> def log(step, figures):
    ...     print(step, figures["loss"])
    >>> log(1, {"loss": 0.5})  # fit(..., log=[log])
    1 0.5
    """

    def __call__(self, step: int, figures: Mapping[str, Any], /) -> Any:
        """Writes the figures of the training after so many steps."""


class CSV:
    """Appends a row of comma-separated values to a file for each call, with a column for each scalar figure.

    Each row is in the file when the call returns. For a new figure the file is written again with one column more.
    Figures that a row does not have are empty.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = CSV(folder + "/figures.csv")
    ...     log(1, {"loss": 0.5})
    ...     log(2, {"loss": 0.25, "eval_loss": 1.0})
    ...     print(open(folder + "/figures.csv").read(), end="")
    step,loss,eval_loss
    1,0.5,
    2,0.25,1.0
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = _path(path)

    def __call__(self, step: int, figures: Mapping[str, Any], /) -> None:
        row = {"step": int(step), **_scalars(figures)}
        columns: list[str] = []
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8", newline="") as file:
                columns = next(csv.reader(file), [])
        new = [name for name in row if name not in columns]
        if new:
            rows = []
            if columns:
                with open(self.path, encoding="utf-8", newline="") as file:
                    rows = list(csv.DictReader(file))
            columns += new
            # Replaced as a whole, so that an interruption loses no rows.
            with open(self.path + ".new", "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            os.replace(self.path + ".new", self.path)
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, columns, lineterminator="\n").writerow(row)


class JsonLines:
    """Appends a line of JSON to a file for each call: ``{"step": 20, "loss": 0.31, ...}``.

    Each line is in the file when the call returns. nan and inf, which JSON does not have, are written as null.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = JsonLines(folder + "/figures.jsonl")
    ...     log(1, {"loss": 0.5})
    ...     log(2, {"loss": float("nan")})
    ...     print(open(folder + "/figures.jsonl").read(), end="")
    {"step": 1, "loss": 0.5}
    {"step": 2, "loss": null}
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = _path(path)

    def __call__(self, step: int, figures: Mapping[str, Any], /) -> None:
        line = json.dumps({"step": int(step), **{name: _finite(figure) for name, figure in figures.items()}})
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def _finite(figure: Any) -> Any:
    if isinstance(figure, str | bool | int) or figure is None:
        return figure
    array = np.asarray(figure)
    if array.ndim:
        return [_finite(part) for part in array]
    number = array.item()
    return number if np.isfinite(number) else None


def _path(path: str | os.PathLike[str]) -> str:
    """The absolute path of a file, whose folder is created."""
    path = os.path.abspath(os.path.expanduser(path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def _scalars(figures: Mapping[str, Any]) -> dict[str, int | float]:
    """The figures that are numbers."""
    numbers = {name: np.asarray(x) for name, x in figures.items() if x is not None and not isinstance(x, str)}
    return {name: array.item() for name, array in numbers.items() if array.ndim == 0}


class _Service:
    """The base of loggers that are closed: in a ``with`` block, or by `close`."""

    def close(self) -> None:
        """Ends the log."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _imported(name: str, what: str, command: str) -> Any:
    """A module of a package that need not be installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"{what} need {name}, which is not installed", instead=command, command=command, name=name
        ) from None


class TensorBoard(_Service):
    """Writes scalars to event files in a folder, for TensorBoard. Metrics that are not scalars are omitted.

    Needs tensorboardX: ``pip install "phlox-optim[tensorboard]"``. Use it in a ``with`` block, or call `close`.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        module = _imported("tensorboardX", "event files", 'pip install "phlox-optim[tensorboard]"')
        self._writer = module.SummaryWriter(os.fspath(folder))

    def __call__(self, step: int, figures: Mapping[str, Any], /) -> None:
        for name, figure in _scalars(figures).items():
            self._writer.add_scalar(name, float(figure), int(step))
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()


class WandB(_Service):
    """Writes scalars to a run of Weights & Biases. Needs wandb: ``pip install wandb``.

    Use it in a ``with`` block, or call `close`.

    Args:
      project: the name of the project.
      settings: further arguments of ``wandb.init``, such as ``name=`` and ``config=``.
    """

    def __init__(self, project: str, **settings: Any):
        module = _imported("wandb", "runs of Weights & Biases", "pip install wandb")
        self._run = module.init(project=project, **settings)

    def __call__(self, step: int, figures: Mapping[str, Any], /) -> None:
        self._run.log(_scalars(figures), step=int(step))

    def close(self) -> None:
        """Ends the run."""
        self._run.finish()


class MLflow(_Service):
    """Writes scalars to a run of MLflow. Needs mlflow: ``pip install mlflow``.

    Use it in a ``with`` block, or call `close`.

    Args:
      experiment: the name of the experiment; None: the one that is set.
      settings: further arguments of ``mlflow.start_run``, such as ``run_name=``.
    """

    def __init__(self, experiment: str | None = None, **settings: Any):
        self._mlflow = _imported("mlflow", "runs of MLflow", "pip install mlflow")
        if experiment is not None:
            self._mlflow.set_experiment(experiment)
        self._mlflow.start_run(**settings)

    def __call__(self, step: int, figures: Mapping[str, Any], /) -> None:
        self._mlflow.log_metrics({name: float(x) for name, x in _scalars(figures).items()}, step=int(step))

    def close(self) -> None:
        """Ends the run."""
        self._mlflow.end_run()
