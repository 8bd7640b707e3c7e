"""The display of `fit`: a line of metrics for each epoch, and in a terminal a progress bar (rich).

Without rich, or if output goes to a file, there are only the lines.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np


class Progress:
    """A display of lines only, which `shown` yields without a terminal."""

    def row(self, figures: Mapping[str, Any]) -> None:
        """Prints the metrics that are scalars."""
        print(
            "  ".join(f"{name} {_text(figure)}" for name, figure in figures.items() if np.ndim(figure) == 0), flush=True
        )

    def counted(self, batches: Iterable[Any], title: str, done: int, total: int | None) -> Iterator[Any]:
        """Yields `batches` and counts them. `done` of `total` (None: unknown) were processed before."""
        yield from batches


class _Silent(Progress):
    def row(self, figures: Mapping[str, Any]) -> None:
        pass


class _Bar(Progress):
    def __init__(self, bar: Any):
        self._bar = bar

    def row(self, figures: Mapping[str, Any]) -> None:
        scalars = ((name, figure) for name, figure in figures.items() if np.ndim(figure) == 0)
        line = "  ".join(f"{name} {_text(figure)}" for name, figure in scalars)
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def counted(self, batches: Iterable[Any], title: str, done: int, total: int | None) -> Iterator[Any]:
        task = self._bar.add_task(title, completed=done, total=total)
        try:
            for batch in batches:
                yield batch
                self._bar.advance(task)
        finally:
            self._bar.remove_task(task)


@contextlib.contextmanager
def shown(enabled: bool) -> Iterator[Progress]:
    """A context manager for the display, which shows nothing unless it is `enabled`."""
    if not enabled:
        yield _Silent()
        return
    if not sys.stdout.isatty():
        yield Progress()
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Rich, TextColumn, TimeRemainingColumn
    except ImportError:
        yield Progress()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Rich(*columns, transient=True) as bar:
        yield _Bar(bar)


def _text(figure: Any) -> str:
    return f"{figure:.4g}" if isinstance(figure, float) else str(figure)
