"""The display of `fit`: a line of metrics for each epoch, and in a terminal a progress bar (rich).

Without rich, or if output goes to a file, there are only lines: those of epochs, and one each half minute with the
figures of the running epoch and the time that is left.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

#: seconds between lines of a running epoch in a log, and between changes of the figures in a bar
_LINE_INTERVAL, _BAR_INTERVAL = 30.0, 0.5

Current = Callable[[], Mapping[str, Any]]


class Progress:
    """A display of lines only, which `shown` yields without a terminal."""

    interval = _LINE_INTERVAL

    def __init__(self) -> None:
        self._epoch = self._epochs = self._done = self._timed = 0
        self._total: int | None = None
        self._clock: float | None = None
        self._shown = time.monotonic()

    def start_epoch(self, epoch: int, epochs: int, done: int, total: int | None) -> None:
        """Begins an epoch; `done` of its batches (None: unknown) were processed before."""
        self._epoch, self._epochs, self._done = epoch, epochs, done
        self._total = total if total is not None else self._total

    def counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields `batches` and counts them."""
        for batch in batches:
            yield batch
            self._done += 1
            # The first step compiles, and says nothing of the speed.
            if self._clock is None:
                self._clock = time.monotonic()
            else:
                self._timed += 1
        self._total = self._done

    def update(self, current: Current) -> None:
        """Shows the figures of the running epoch, if the last time is long ago."""
        now = time.monotonic()
        if now - self._shown >= self.interval:
            self._shown = now
            self.show(current())

    def show(self, figures: Mapping[str, Any]) -> None:
        """Shows these figures of the running epoch."""
        number = self._done + 1  # this batch is counted when the next one is asked for
        count = f"batch {number}" if self._total is None else f"batch {number} of {self._total}"
        title = f"epoch {self._epoch + 1} of {self._epochs}  {count}"
        print("  ".join(filter(None, [title, line(figures), self.left()])), flush=True)

    def left(self) -> str:
        """The speed and the time that is left, as text; empty if it is not known."""
        if not self._timed or self._clock is None:
            return ""
        speed = self._timed / max(time.monotonic() - self._clock, 1e-9)
        text = f"{speed:.3g} steps/s"
        if self._total is None:
            return text
        batches = self._total - self._done - 1 + self._total * (self._epochs - self._epoch - 1)
        return f"{text}  ETA {_duration(max(batches, 0) / speed)}"

    def row(self, figures: Mapping[str, Any]) -> None:
        """Prints the metrics of an epoch that are scalars."""
        self._shown = time.monotonic()
        print(line(figures), flush=True)


class _Silent(Progress):
    def update(self, current: Current) -> None:
        pass

    def row(self, figures: Mapping[str, Any]) -> None:
        pass


class _Bar(Progress):
    interval = _BAR_INTERVAL

    def __init__(self, bar: Any):
        super().__init__()
        self._bar = bar
        self._task: Any = None

    def show(self, figures: Mapping[str, Any]) -> None:
        self._bar.update(self._task, figures=line(figures))

    def row(self, figures: Mapping[str, Any]) -> None:
        self._bar.console.print(line(figures), highlight=False, markup=False, soft_wrap=True)

    def counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        title = f"epoch {self._epoch + 1} of {self._epochs}"
        # The first step of a training compiles before it returns.
        compiling = "" if self._timed else "compiling"
        self._task = self._bar.add_task(title, completed=self._done, total=self._total, figures=compiling)
        try:
            for batch in super().counted(batches):
                yield batch
                self._bar.advance(self._task)
                if compiling:
                    compiling = ""
                    self._bar.update(self._task, figures="")
        finally:
            self._bar.remove_task(self._task)


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
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
        TextColumn("{task.fields[figures]}", markup=False),
    )
    with Rich(*columns, transient=True) as bar:
        yield _Bar(bar)


def line(figures: Mapping[str, Any]) -> str:
    """The figures that are scalars, as text."""
    return "  ".join(f"{name} {_text(figure)}" for name, figure in figures.items() if np.ndim(figure) == 0)


def _text(figure: Any) -> str:
    return f"{figure:.4g}" if isinstance(figure, float) else str(figure)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
