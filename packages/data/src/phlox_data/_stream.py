"""Sources that other libraries batch and shuffle: their batches are read from the beginning, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from phlox.errors import ArgumentError

from ._batches import whole_number
from ._examples import examples
from ._host import Names, check_names
from ._last import Last, Reading


class Position(NamedTuple):
    """Where to begin reading: an epoch and a batch of it, or a state that an earlier reader had there."""

    epoch: int
    batch: int
    state: Any = None


class Opened(NamedTuple):
    """An epoch that was begun.

    Attributes:
      batches: an iterator over batches.
      skip: the number of batches before the position that was asked for.
      state: returns the iterator's state.
      final: whether nobody writes to a batch any more once it is there.
    """

    batches: Iterator[Any]
    skip: int = 0
    state: Callable[[], Any] | None = None
    final: bool = False


class Stream:
    """A `Source` made of an iterable of batches, or of a function that makes one for each epoch.

    Args:
      name: the public function's name, for errors.
      given: the iterable, or the function of the epoch's number.
      open: begins to read an iterable at a position. A state is given only to readers that have one.
      batch_size: the length of full batches, given by the user.
      size: returns the length of full batches of an iterable, or None.
      count: returns the number of batches of an iterable for a mode of the last batch, or None.
      unsteady: returns why an iterable may have another order each time it is read, or None. Its second argument is the
        result of a second call of the function for the same epoch; None for iterables that no function made.
      ordered: code for an iterable whose order depends only on the epoch's number, for errors; or a function that
        returns the code for an iterable.
      host: names of what stays on the host.
    """

    batch_size: int | None
    rest: int | None = None

    def __init__(
        self,
        name: str,
        source: Any,
        *,
        open: Callable[[Any, Position], Opened],
        batch_size: int | None,
        size: Callable[[Any], int | None],
        count: Callable[[Any, Last], int | None],
        unsteady: Callable[[Any, Any], str | None],
        ordered: str | Callable[[Any], str],
        host: Names = (),
    ):
        self._name = name
        self._source = source
        self._open = open
        self._size = size
        self._count = count
        self._unsteady = unsteady
        self._ordered = ordered
        self._host = check_names(host)
        self._steady_epoch: int | None = None
        self._is_function = callable(source) and not isinstance(source, Iterable)
        if not self._is_function:
            self._check_iterable(source)
        self.batch_size = None if batch_size is None else whole_number(batch_size, "batch_size", 1)
        if not self._is_function:
            self.batch_size = self._full(source)

    def _check_iterable(self, batches: Any) -> None:
        if isinstance(batches, Iterator):
            trouble = "can be read only once"
        elif not isinstance(batches, Iterable):
            trouble = "holds no batches"
        else:
            return
        raise ArgumentError(
            f"{self._name}: {batches!r} {trouble}",
            instead="a loader, or a function of the epoch's number that makes one",
        )

    def count(self, last: Last) -> int | None:
        return None if self._is_function else self._count(self._source, last)

    def _full(self, batches: Any) -> int | None:
        return self._size(batches) if self.batch_size is None else self.batch_size

    def check_resumable(self, epoch: int) -> None:
        if self._steady_epoch != epoch:
            self._check_steady(self._make(epoch), epoch, "state()")
            self._steady_epoch = epoch

    def _make(self, epoch: int) -> Any:
        batches = self._source(epoch) if self._is_function else self._source
        if not (isinstance(batches, Iterable) or hasattr(batches, "__getitem__")):
            raise ArgumentError(
                f"{self._name}: the function returned {batches!r} for epoch {epoch}, which holds no batches",
                instead="return loader, or what else can be iterated",
                epoch=epoch,
            )
        return batches

    def _check_steady(self, batches: Any, epoch: int, caller: str) -> None:
        again = self._make(epoch) if self._is_function else None
        if again is batches and isinstance(again, Iterator):
            why: str | None = "its function returns one iterator each time, which can be read only once"
        else:
            why = self._unsteady(batches, again)
        if why is not None:
            raise ArgumentError(
                f"{self._name}: {caller} asks for the rest of an epoch, but {why}",
                instead=f"{self._name}({self._ordered(batches) if callable(self._ordered) else self._ordered})",
                epoch=epoch,
            )

    def read(self, epoch: int, start: int, state: Any = None) -> Reading:
        batches = self._make(epoch)
        size = self._full(batches)
        if state is not None:
            size, state = (state["size"] if size is None else size), state["state"]
        elif start:
            self._check_steady(batches, epoch, f"start={start}")
        # Opened here, before the thread starts, because loaders may fork processes, which is unsafe with threads.
        opened = self._open(batches, Position(epoch, start, state))
        if state is not None and opened.state is None:
            raise ArgumentError(
                f"{self._name}: the state is that of a reader of another kind",
                instead="a state of batches of the same source",
                argument="state",
            )
        host, final = self._host, opened.final
        read = (examples(batch, "the batch", host, final) for batch in opened.batches)
        return Reading(read, size, opened.skip, opened.state)
