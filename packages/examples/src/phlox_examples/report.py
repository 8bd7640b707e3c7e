"""Terminal output: a table with a line for each epoch, and a progress bar below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console = Console()


def show(text: str) -> None:
    """Prints a line unchanged; without these options rich would colour numbers, parse markup, and wrap lines."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


class Report:
    """The table and the progress bar that `progress` yields."""

    def __init__(self, bar: Progress):
        self._bar = bar
        self._widths: list[int] = []

    def row(self, *cells: str) -> None:
        """Prints a line of the table; the first line determines the widths of the columns."""
        self._widths = self._widths or [len(cell) for cell in cells]
        show("   ".join(cell.rjust(width) for cell, width in zip(cells, self._widths, strict=True)))

    def counted(self, steps: Iterable[Any]) -> Iterator[Any]:
        """Yields `steps`, and advances the bar after each."""
        for step in steps:
            yield step
            self._bar.advance(self._bar.task_ids[0])


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Report]:
    """A context manager for a table and a progress bar of `total` steps, of which `done` are finished.

    If output goes to a file, there is only the table.
    """
    with Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        bar.add_task(what, completed=done, total=total)
        yield Report(bar)
