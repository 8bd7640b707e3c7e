"""Logs of the metrics of training: ``from phlox_optim import logging``, ``fit(..., log=[...])``.

A log is any function of a step's number and a dict of metrics.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import MissingExtraError

__all__ = ["JsonLines", "TensorBoard"]


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
        self.path = os.path.abspath(os.path.expanduser(path))
        os.makedirs(os.path.dirname(self.path), exist_ok=True)

    def __call__(self, step: int, figures: Mapping[str, Any]) -> None:
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


class TensorBoard:
    """Writes scalars to event files in a folder, for TensorBoard. Metrics that are not scalars are omitted.

    Needs tensorboardX: ``pip install "phlox-optim[tensorboard]"``. Use it in a ``with`` block, or call `close`.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            command = 'pip install "phlox-optim[tensorboard]"'
            raise MissingExtraError(
                "event files need tensorboardX, which is not installed",
                instead=command,
                command=command,
                name="tensorboardX",
            ) from None
        self._writer = SummaryWriter(os.fspath(folder))

    def __call__(self, step: int, figures: Mapping[str, Any]) -> None:
        for name, figure in figures.items():
            if not isinstance(figure, str) and np.ndim(figure) == 0:
                self._writer.add_scalar(name, float(figure), int(step))
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
