"""`Batches`: the pipeline from a source to the devices.

Its stages are in files of their own: read (the source), finish (`_last`), put (`_placement`), ahead (`_ahead`). The
consumer takes batches from a `Loop`, which counts them.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from phlox.errors import ArgumentError

from ._ahead import Ahead, Pace
from ._last import Last, Note, Reading, check_mode, finish
from ._loop import Loop, Progress, Report
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

    def check_resumable(self, epoch: int) -> None:
        """Raises `ArgumentError` if the epoch, read once more, may have other batches."""

    def read(self, epoch: int, start: int, state: Any = None) -> Reading:
        """Begins to read an epoch at batch `start`, or from a state that an earlier reader of this epoch had there.

        This method runs in the user's thread; the iterator that it returns runs in another thread.
        """


class Batches:
    """Batches of examples on devices, epoch by epoch. Made by `batches` and by the functions named ``from_...``.

    ``for batch in train.epoch(3)`` runs epoch 3, ``train.epoch(3, start=10)`` the same without its first ten batches.
    ``for batch in train`` runs the next epoch: the first such loop epoch 0, the second one epoch 1. `len` is the number
    of batches in an epoch; it raises `ArgumentError`, a `TypeError`, if the source does not provide it.

    `state` says how far the latest loop came, `restore` makes the next loop go on there. `report` tells how fast it is.

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
        self._pace = Pace()
        self._placement = Placement(device, devices)
        self._next_epoch = 0
        self._progress = Progress(0, 0, None)
        self._restored = False
        if self._placement.shares is not None:
            self._placement.shares.check(source)
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
        self._check_start(start)
        return self._begin(Progress(number, start, None))

    def _check_start(self, start: int) -> None:
        count = self._source.count(self._last)
        if count is not None and start > count:
            raise ArgumentError(
                f"start={start} lies beyond the end of an epoch of {count} batches",
                instead="the batch size that the number was counted with",
                argument="start",
            )

    def _begin(self, progress: Progress) -> Iterator[Any]:
        notes: deque[Note] = deque()
        if self._placement.shares is not None:
            placed = self._placement.shares.put(self._source, progress.epoch, progress.batch, self._last, notes)
        else:
            reading = self._source.read(progress.epoch, progress.batch, progress.reader)
            placed = self._placement.put(finish(reading, self._last, notes))
        self._progress, self._restored = progress, False
        return Loop(Ahead(placed, self._prefetch, self._pace) if self._prefetch else placed, notes, progress)

    def __iter__(self) -> Iterator[Any]:
        # A fresh object for each loop: the iterator of an earlier one may still be in use.
        progress = self._progress.again() if self._restored else Progress(self._next_epoch, 0, None)
        loop = self._begin(progress)
        self._next_epoch = progress.epoch + 1
        return loop

    def __len__(self) -> int:
        count = self._source.count(self._last)
        if count is None:
            raise ArgumentError("this source does not say how many batches it has", instead="count them in the loop")
        return count

    def state(self) -> dict[str, Any]:
        """How far the latest loop came: a small dict, to be stored with a checkpoint.

        It counts the batches that the loop has taken, whatever is prefetched. After the end of an epoch it is the
        beginning of the next one. Its entries are ``"epoch"``, ``"batch"``, and ``"reader"`` where the source's own
        library has a state; it can be pickled, and written as JSON unless that library's state has other things in it.

        Raises `ArgumentError` in the middle of an epoch that would have other batches if it was read once more.

        >>> import numpy as np
        >>> import phlox_data as data
        >>> train = data.batches(np.arange(10), batch_size=2, seed=0)
        >>> for batch in train:
        ...     if train.state()["batch"] == 3:
        ...         break
        >>> train.state()
        {'epoch': 0, 'batch': 3}
        """
        at = self._progress
        if at.ended:
            return {"epoch": at.epoch + 1, "batch": 0}
        if at.reader is not None:
            return {"epoch": at.epoch, "batch": at.batch, "reader": at.reader}
        if at.batch:
            self._source.check_resumable(at.epoch)
        return {"epoch": at.epoch, "batch": at.batch}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Makes the next ``for batch in train`` go on where `state` was taken; later loops run the epochs after it.

        The rest of an epoch of which all batches were taken is empty: each epoch is one loop, as without a stop.

        Args:
          state: what `state` returned, in this or in another process, of batches of the same source and options.

        Raises `ArgumentError` for anything else, as far as it can be seen.

        >>> import numpy as np
        >>> import phlox_data as data
        >>> train = data.batches(np.arange(6), batch_size=2)
        >>> train.restore({"epoch": 4, "batch": 1})
        >>> [batch.tolist() for batch in train], train.state()
        ([[2, 3], [4, 5]], {'epoch': 5, 'batch': 0})
        """
        if not isinstance(state, Mapping) or not {"epoch", "batch"} <= set(state) <= {"epoch", "batch", "reader"}:
            raise ArgumentError(
                f"restore: {state!r} is no state of batches", instead="what state() returned", argument="state"
            )
        epoch, batch = whole_number(state["epoch"], "epoch"), whole_number(state["batch"], "batch")
        self._check_start(batch)
        self._progress, self._restored = Progress(epoch, batch, state.get("reader")), True

    def report(self) -> Report:
        """How fast the latest loop is, or was: examples a second, and the share of the time that it waited for batches.

        Time counts from when the first batch was asked for to when the latest one was there. A share near 0 says that
        loading is hidden behind the computation; near 1, that the program is as fast as its loading. Computation that
        runs asynchronously counts when the program waits for its results.

        >>> import numpy as np
        >>> import phlox_data as data
        >>> train = data.batches(np.arange(10), batch_size=2)
        >>> for batch in train:
        ...     pass
        >>> train.report().examples, train.report().batches
        (10, 5)
        """
        return self._progress.report()


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
