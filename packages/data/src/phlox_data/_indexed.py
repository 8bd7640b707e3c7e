"""Sources with random access: the order of an epoch is a function of a seed and the epoch's number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phlox.errors import AxisSizeError

from ._batches import whole_number
from ._examples import Examples
from ._last import Last, Reading
from ._memory import Memory


class Indexed:
    """A `Source` of `length` examples.

    Args:
      take: the examples with these numbers, a slice or an array; they may be written to the memory.
      seed: None for the order in which they are stored.
      last: used here only to raise early if an epoch would have no batch.
    """

    def __init__(
        self,
        length: int,
        take: Callable[[slice | np.ndarray, Memory], Examples],
        batch_size: int,
        seed: int | None,
        last: Last,
    ):
        self.batch_size = whole_number(batch_size, "batch_size", 1)
        self.rest = length % self.batch_size
        self._length = length
        self.take = take
        self._seed = None if seed is None else whole_number(seed, "seed")
        if not self.count(last):
            raise AxisSizeError(
                f"{length} examples do not fill one batch of {batch_size}" if length else "there are no examples",
                instead="a smaller batch_size, or last='pad' or 'keep'" if length else "some",
                sizes=[("", 0, (length,))],
            )

    def count(self, last: Last) -> int:
        return self._length // self.batch_size + (self.rest > 0 and last != "drop")

    def check_resumable(self, epoch: int) -> None:
        """Any batch can be the first."""

    def read(self, epoch: int, start: int, state: Any = None) -> Reading:
        return Reading(self._batches(epoch, start), self.batch_size, skip=0)

    def _batches(self, epoch: int, start: int) -> Iterator[Examples]:
        memory = Memory()
        return (self.take(rows, memory) for rows in self._rows(epoch, start))

    def numbers(self, epoch: int, start: int) -> Iterator[np.ndarray]:
        """The numbers of the examples of each batch of an epoch, from batch `start` on."""
        for rows in self._rows(epoch, start):
            yield np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def _rows(self, epoch: int, start: int) -> Iterator[slice | np.ndarray]:
        order = None if self._seed is None else permutation(self._length, self._seed, epoch)
        for first in range(start * self.batch_size, self._length, self.batch_size):
            rows = slice(first, min(first + self.batch_size, self._length))
            yield rows if order is None else order[rows]


def permutation(length: int, seed: int, epoch: int) -> np.ndarray:
    """The order of an epoch.

    >>> permutation(5, seed=0, epoch=1)
    array([1, 0, 3, 4, 2])
    """
    # RandomState, because NumPy guarantees its streams. Those of default_rng may change with a version, and a program
    # that continues after an update would see some examples twice and others never.
    bits = np.random.MT19937(np.random.SeedSequence((seed, epoch)))
    return np.random.RandomState(bits).permutation(length)
