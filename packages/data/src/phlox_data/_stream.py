"""Sources that other libraries batch and shuffle: their batches are read from the beginning, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from phlox.errors import ArgumentError

from ._batches import whole_number
from ._examples import examples
from ._last import Last, Reading


class Stream:
    """A `Source` made of an iterable of batches, or of a function that makes one for each epoch.

    Args:
      name: the public function's name, for errors.
      given: the iterable, or the function of the epoch's number.
      open: the iterator to read an iterable with.
      batch_size: the length of full batches, given by the user.
      size: returns the length of full batches of an iterable, or None.
      count: returns the number of batches of an iterable for a mode of the last batch, or None.
      unsteady: returns why an iterable may have another order each time it is read, or None. Its second argument is the
        result of a second call of the function for the same epoch; None for iterables that no function made.
      ordered: code for an iterable whose order depends only on the epoch's number, for errors.
    """

    batch_size: int | None
    rest: int | None = None

    def __init__(
        self,
        name: str,
        given: Any,
        *,
        open: Callable[[Any], Iterator[Any]],
        batch_size: int | None,
        size: Callable[[Any], int | None],
        count: Callable[[Any, Last], int | None],
        unsteady: Callable[[Any, Any], str | None],
        ordered: str,
    ):
        self._name = name
        self._given = given
        self._open = open
        self._size = size
        self._count = count
        self._unsteady = unsteady
        self._ordered = ordered
        self._is_function = callable(given) and not isinstance(given, Iterable)
        if not self._is_function and (not isinstance(given, Iterable) or isinstance(given, Iterator)):
            trouble = "can be read only once" if isinstance(given, Iterator) else "holds no batches"
            raise ArgumentError(
                f"{name}: {given!r} {trouble}", instead="a loader, or a function of the epoch's number that makes one"
            )
        self.batch_size = None if batch_size is None else whole_number(batch_size, "batch_size", 1)
        if not self._is_function:
            self.batch_size = self._full(given)

    def count(self, last: Last) -> int | None:
        return None if self._is_function else self._count(self._given, last)

    def _full(self, batches: Any) -> int | None:
        return self._size(batches) if self.batch_size is None else self.batch_size

    def read(self, epoch: int, start: int) -> Reading:
        batches = self._given(epoch) if self._is_function else self._given
        if start:
            why = self._unsteady(batches, self._given(epoch) if self._is_function else None)
            if why is not None:
                raise ArgumentError(
                    f"{self._name}: start={start} asks for the rest of an epoch, but {why}",
                    instead=f"{self._name}({self._ordered})",
                    start=start,
                )
        # Opened here, before the thread starts, because loaders may fork processes, which is unsafe with threads.
        opened = self._open(batches)
        return Reading((examples(batch, "the batch") for batch in opened), self._full(batches), skip=start)
