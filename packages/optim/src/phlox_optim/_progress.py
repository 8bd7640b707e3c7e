"""What `fit` shows: a line of figures an epoch, and in a terminal a bar that says how far the epoch is (rich).

Without rich, or where output goes to a file, the lines are all there is.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np


class Progress:
    """Shows nothing but lines. What `shown` gives where there is no terminal."""

    def row(self, figures: Mapping[str, Any]) -> None:
        """Prints the figures that are scalars."""
        print(
            "  ".join(f"{name} {_text(figure)}" for name, figure in figures.items() if np.ndim(figure) == 0), flush=True
        )

    def counted(self, batches: Iterable[Any], title: str, done: int, total: int | None) -> Iterator[Any]:
        """`batches`, one by one. Of `total` (None: nobody knows), `done` were taken before."""
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
def shown(wanted: bool) -> Iterator[Progress]:
    """The display while the block runs; one that shows nothing unless it is `wanted`."""
    if not wanted:
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
