"""The progress of a training: what `fit` saves beside the state."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

import phlox
from phlox.errors import ArgumentError

from . import metrics
from ._evaluation import Figures, merged


@dataclasses.dataclass
class Place:
    """The progress of training, stored in checkpoints beside the state; includes exact sums of an unfinished epoch."""

    epoch: int = 0
    #: the number of batches of this epoch that are done
    batch: int = 0
    history: list[Figures] = dataclasses.field(default_factory=list)
    #: the merged metrics of those batches; after `read`, a list of their leaves
    total: Any = None
    #: their values when `text` was called
    figures: Figures = dataclasses.field(default_factory=dict)
    #: the figures of evaluations within epochs
    evaluations: list[Figures] = dataclasses.field(default_factory=list)
    #: the best value of a figure so far, and its step
    best_value: float | None = None
    best_step: int | None = None

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
            self.total = merged(self.total, figures)

    def current(self) -> Figures:
        """The scalar figures of the epoch so far."""
        if self.total is None or isinstance(self.total, list):
            return {}
        # Those that keep their examples would be sorted each time.
        total = {name: figure for name, figure in self.total.items() if not isinstance(figure, metrics.Ranking)}
        values = metrics.values(total)
        return {name: values[name] for name in _loss_first(values) if np.ndim(values[name]) == 0}

    def end_epoch(self, step: int, more: Mapping[str, Any]) -> Figures:
        """Ends the epoch, and adds its metrics to the history. Returns them."""
        if self.total is None:
            raise ArgumentError(
                f"epoch {self.epoch + 1} had no batches",
                instead="batches that can be iterated again, or a function of the epoch",
            )
        # Still a list if no batch was left after `read`.
        figures = self.figures if isinstance(self.total, list) else metrics.values(self.total)
        in_order = {name: figures[name] for name in _loss_first(figures)}
        row = {"epoch": self.epoch + 1, "step": step, **in_order, **more}
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
    def read(cls, text: str) -> Place:
        place = cls(**json.loads(text))
        for row in (*place.history, *place.evaluations, place.figures):
            row.update({name: np.asarray(figure) for name, figure in row.items() if isinstance(figure, list)})
        return place


def _loss_first(figures: Mapping[str, Any]) -> list[str]:
    return sorted(figures, key=lambda name: name != "loss")
