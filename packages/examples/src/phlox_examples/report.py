"""Output: a table with a line for each epoch, and a progress bar below it; in files, estimates of the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console = Console()


def show(text: str) -> None:
    """Prints a line unchanged; without these options rich would colour numbers, parse markup, and wrap lines."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


#: Seconds of measured steps before the first estimate, and between two. Shorter rests than LONG are not worth a line.
FIRST, BETWEEN, LONG = 5.0, 60.0, 20.0


class Estimate:
    """An estimate of the seconds that are left of a training, from the steps that were measured.

    The seconds of the catalogue are those of two idle cores. A busy machine may take twenty times as long.

    Args:
      total: the number of steps of the training.
      clock: returns the time in seconds.
    """

    #: The first steps wait for the compiler.
    UNMEASURED = 3

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic):
        self._total, self._clock = total, clock
        self._measured = -self.UNMEASURED
        self._start = 0.0
        self._next = FIRST

    def text(self, done: int) -> str | None:
        """Counts a step, after which `done` are done. Returns a line to show, or None."""
        self._measured += 1
        if self._measured <= 0:
            self._start = self._clock()
            return None
        seconds = self._clock() - self._start
        left = seconds / self._measured * (self._total - done)
        if seconds < self._next or left < LONG:
            return None
        self._next = seconds + BETWEEN
        minutes, rest = divmod(round(left), 60)
        return f"Step {done} of {self._total}; about {minutes}:{rest:02} minutes are left at this speed."


class Report:
    """The table and the progress bar that `progress` yields."""

    def __init__(self, bar: Progress, total: int, done: int):
        self._bar = bar
        self._estimate, self._done = Estimate(total), done
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
            self._done += 1
            if not console.is_terminal and (line := self._estimate.text(self._done)) is not None:
                show(line)


@contextmanager
def progress(what: str, total: int, done: int = 0) -> Iterator[Report]:
    """A context manager for a table and a progress bar of `total` steps, of which `done` are finished.

    If output goes to a file, there is only the table, and now and then a line that tells the time left.
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
        yield Report(bar, total, done)
