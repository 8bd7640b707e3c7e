"""The loop over an epoch as its consumer sees it: it counts the batches that were taken, and the time of waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ._last import Note


@dataclass(frozen=True)
class Report:
    """How fast a loop over batches is, or was. Made by `Batches.report`.

    Attributes:
      examples: the number of examples taken, without padding.
      batches: the number of batches taken.
      seconds: from when the first batch was asked for to when the latest one was there.
      waited: the seconds of these in which the consumer waited for batches.

    >>> print(Report(examples=64_000, batches=500, seconds=4.0, waited=0.5))
    16000 examples/s, 12.5% of the time waiting for batches (64000 examples, 500 batches, 4 s)
    """

    examples: int
    batches: int
    seconds: float
    waited: float

    @property
    def examples_per_second(self) -> float:
        """Examples a second; 0 before the first batch."""
        return self.examples / self.seconds if self.seconds else 0.0

    @property
    def share_waited(self) -> float:
        """The share of the time in which the consumer waited, from 0 to 1."""
        return self.waited / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.examples_per_second:.5g} examples/s, {100 * self.share_waited:.3g}% of the time waiting for batches"
            f" ({self.examples} examples, {self.batches} batches, {self.seconds:.3g} s)"
        )


class Progress:
    """How far a loop came. `Batches` holds this and not the loop, which must be freed when its consumer leaves it."""

    __slots__ = ("batch", "batch_count", "began", "ended", "epoch", "examples", "latest", "reader", "waited")

    def __init__(self, epoch: int, batch: int, reader: dict[str, Any] | None):
        self.epoch, self.batch, self.reader = epoch, batch, reader
        self.ended = False
        self.examples = self.batch_count = 0
        self.began: float | None = None
        self.latest = self.waited = 0.0

    def again(self) -> Progress:
        return Progress(self.epoch, self.batch, self.reader)

    def report(self) -> Report:
        seconds = 0.0 if self.began is None else self.latest - self.began
        return Report(self.examples, self.batch_count, seconds, self.waited)


class Loop(Iterator[Any]):
    """The batches of one epoch.

    Args:
      batches: an iterator with `close`.
      notes: has a note on each batch by the time that `batches` returns it.
      progress: is brought up to date with each batch.
    """

    __slots__ = ("_batches", "_closed", "_notes", "_progress")

    def __init__(self, batches: Any, notes: deque[Note], progress: Progress):
        self._batches = batches
        self._notes = notes
        self._progress = progress
        self._closed = False

    def __next__(self) -> Any:
        progress = self._progress
        start = perf_counter()
        if progress.began is None:
            progress.began = start
        try:
            batch = next(self._batches)
        except StopIteration:
            progress.ended = progress.ended or not self._closed
            raise
        except BaseException:
            self._closed = True  # what comes after an error is not the end of the epoch
            raise
        progress.latest = now = perf_counter()
        progress.waited += now - start
        progress.batch += 1
        progress.batch_count += 1
        examples, progress.reader = self._notes.popleft()
        progress.examples += examples
        return batch

    def close(self) -> None:
        """Ends the epoch early, as leaving the loop does, and stops what prepares further batches."""
        self._closed = True
        self._batches.close()
