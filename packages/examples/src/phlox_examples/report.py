"""The screen: a table that grows by a line an epoch, and below it a bar that says how far the program is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console = Console()


def show(text: str) -> None:
    """Prints a line as it stands: rich would colour numbers, look for markup, and break lines."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


class Report:
    """What `progress` gives: a table and a bar."""

    def __init__(self, bar: Progress):
        self._bar = bar
        self._widths: list[int] = []

    def row(self, *cells: str) -> None:
        """Prints a line of the table, whose columns are as wide as the first line asks."""
        self._widths = self._widths or [len(cell) for cell in cells]
        show("   ".join(cell.rjust(width) for cell, width in zip(cells, self._widths, strict=True)))

    def counted(self, steps: Iterable[Any]) -> Iterator[Any]:
        """`steps`, one by one; the bar moves on after each."""
        for step in steps:
            yield step
            self._bar.advance(self._bar.task_ids[0])


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Report]:
    """A table, and while the block runs a bar of `total` steps with `done` behind it.

    Where output goes to a file, the table is all there is.
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
