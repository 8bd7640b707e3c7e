"""`Batches`: the pipeline from a source to the devices.

Its stages are in files of their own: read (the source), finish (`_last`), put (`_placement`), ahead (`_ahead`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from phlox.errors import ArgumentError

from ._ahead import Ahead
from ._last import Last, Reading, check_mode, finish
from ._placement import Placement


class Source(Protocol):
    """The interface of sources of examples."""

    @property
    def batch_size(self) -> int | None:
        """The length of a full batch, if it is known in advance."""

    @property
    def rest(self) -> int | None:
        """The length of the short batch at the end of an epoch, if it is known in advance; 0 if there is none."""

    def count(self, last: Last) -> int | None:
        """The number of batches of an epoch, if it is known in advance."""

    def read(self, epoch: int, start: int) -> Reading:
        """Begins to read an epoch at batch `start`.

        This method runs in the user's thread; the iterator that it returns runs in another thread.
        """


class Batches:
    """Batches of examples on devices, epoch by epoch. Made by `batches`, `from_torch`, `from_tf` and `from_tfds`.

    ``for batch in train.epoch(3)`` runs epoch 3, ``train.epoch(3, start=10)`` the same without its first ten batches.
    ``for batch in train`` runs the next epoch: the first such loop epoch 0, the second one epoch 1. `len` is the number
    of batches in an epoch; it raises `ArgumentError`, a `TypeError`, if the source does not provide it.

    >>> import numpy as np
    >>> import phlox_data as data
    >>> train = data.batches(np.arange(4), batch_size=2, seed=0)
    >>> len(train)
    2
    >>> [batch.tolist() for batch in train] == [batch.tolist() for batch in train.epoch(0)]
    True
    """

    def __init__(
        self,
        source: Source,
        *,
        last: Last,
        device: Any,
        devices: Sequence[Any] | None,
        prefetch: int,
    ):
        check_mode(last)
        self._source = source
        self._last = last
        self._prefetch = whole_number(prefetch, "prefetch")
        self._placement = Placement(device, devices)
        self._epochs_begun = 0
        if source.batch_size is not None:
            self._placement.check(source.batch_size, "a batch")
        if source.rest and last == "keep":
            self._placement.check(source.rest, "the last batch")

    def epoch(self, number: int, start: int = 0) -> Iterator[Any]:
        """An iterator over the batches of one epoch, from batch `start` on.

        The order is that of the source. If the source shuffles by a seed, it depends only on the seed and `number`: a
        program that was stopped in epoch 3 after 10 batches continues with ``epoch(3, start=10)``.

        The iterator's `close()` ends it early, as does leaving the loop. Raises `ArgumentError` for negative numbers
        and for a `start` after the end of the epoch.
        """
        number, start = whole_number(number, "epoch"), whole_number(start, "start")
        count = self._source.count(self._last)
        if count is not None and start > count:
            raise ArgumentError(
                f"start={start} lies beyond the end of an epoch of {count} batches",
                instead="the batch size that the number was counted with",
                argument="start",
            )
        placed = self._placement.put(finish(self._source.read(number, start), self._last))
        return Ahead(placed, self._prefetch) if self._prefetch else placed

    def __iter__(self) -> Iterator[Any]:
        number = self._epochs_begun
        self._epochs_begun += 1
        return self.epoch(number)

    def __len__(self) -> int:
        count = self._source.count(self._last)
        if count is None:
            raise ArgumentError("this source does not say how many batches it has", instead="count them in the loop")
        return count


def whole_number(value: Any, name: str, least: int = 0) -> int:
    """`value` as an int of at least `least`, or an `ArgumentError` about the argument `name`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ArgumentError(
            f"{name}={value!r} is no whole number from {least} up",
            instead=f"{name}={least}",
            argument=name,
            value=value,
        )
    return number
