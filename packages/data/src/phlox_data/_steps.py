"""The steps of a `Pipeline`. Each reads the step before it; an item is a pair of the example's number and its value.

A step begins anywhere in an epoch: `read(epoch, start)`. Steps that give one item for each one pass `start` on, so that
the examples before it are neither read nor computed; others read from the beginning and skip.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ._examples import collate
from ._indexed import permutation

Items: TypeAlias = Iterator[tuple[int, Any]]


class Step:
    """What all steps have.

    Attributes:
      length: the number of items of an epoch; None if it is unknown or infinite.
      reorders: whether `read` takes an order, the numbers of items in the sequence in which they are wanted.
      batch_size: the length of full batches, if items are batches.
      unsteady: why an epoch that is read once more may be another, or None.
      number: counts the steps, for errors.
    """

    length: int | None = None
    reorders = False
    batch_size: int | None = None
    unsteady: str | None = None
    number = 0

    def __init__(self, before: Step | None = None):
        if before is not None:
            self.before = before
            self.length, self.batch_size, self.unsteady = before.length, before.batch_size, before.unsteady
            self.number = before.number + 1

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        raise NotImplementedError


class Rows(Step):
    """A source with random access."""

    reorders = True

    def __init__(self, length: int, get: Callable[[int], Any]):
        super().__init__()
        self.length = length
        self._get = get

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        for i in range(start, self.length or 0) if order is None else order[start:].tolist():
            yield i, read_one(self._get, i)


class Iterated(Step):
    """A source that is read from the beginning: an iterable, made by a function for each epoch or the same for all."""

    def __init__(self, make: Callable[[int], Iterable[Any]], length: int | None, unsteady: str | None):
        super().__init__()
        self._make, self.length, self.unsteady = make, length, unsteady

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        return itertools.islice(self._items(epoch), start, None)

    def _items(self, epoch: int) -> Items:
        values = iter(self._make(epoch))
        for i in itertools.count():
            try:
                value = next(values)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"in the source, for example {i}")
                raise
            yield i, value


class Map(Step):
    def __init__(self, before: Step, f: Callable[[Any], Any], workers: int, processes: bool):
        super().__init__(before)
        self.reorders = before.reorders
        self._f, self._workers, self._processes = f, workers, processes

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        items = self.before.read(epoch, start, order)
        if self._workers:
            from ._workers import map_ahead  # here, because it makes the import of this package slower by half

            return map_ahead(items, self._f, self._workers, self._processes, self.number)
        return self._mapped(items)

    def _mapped(self, items: Items) -> Items:
        for i, value in items:
            yield i, named("map", self._f, value, self.number, i)


class Filter(Step):
    def __init__(self, before: Step, f: Callable[[Any], Any]):
        super().__init__(before)
        self.length = None
        self._f = f

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        return itertools.islice(self._filtered(self.before.read(epoch, 0)), start, None)

    def _filtered(self, items: Items) -> Items:
        for i, value in items:
            if named("filter", self._f, value, self.number, i):
                yield i, value


class Batch(Step):
    def __init__(self, before: Step, size: int, drop: bool):
        super().__init__(before)
        if before.length is not None:
            self.length = before.length // size if drop else -(-before.length // size)
        self.batch_size, self._size, self._drop = size, size, drop

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        items = self.before.read(epoch, start * self._size)
        for number in itertools.count(start):
            rows = list(itertools.islice(items, self._size))
            if not rows or (self._drop and len(rows) < self._size):
                return
            yield number, named("batch", collate, [value for _, value in rows], self.number, *(i for i, _ in rows))


class Permuted(Step):
    """All examples in a new order each epoch."""

    def __init__(self, before: Step, seed: int):
        super().__init__(before)
        self._seed = seed

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        return self.before.read(epoch, start, permutation(self.length or 0, self._seed, epoch))


class Buffered(Step):
    """Each next example is drawn from those in a buffer."""

    def __init__(self, before: Step, seed: int, size: int):
        super().__init__(before)
        self._seed, self._size = seed, size

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        return itertools.islice(self._drawn(self.before.read(epoch, 0), epoch), start, None)

    def _drawn(self, items: Items, epoch: int) -> Items:
        random = generator(self._seed, epoch)
        buffer = list(itertools.islice(items, self._size))
        for item in items:
            i = random.randint(len(buffer))
            buffer[i], drawn = item, buffer[i]
            yield drawn
        for i in random.permutation(len(buffer)):
            yield buffer[i]


class Repeat(Step):
    def __init__(self, before: Step, times: int | None):
        super().__init__(before)
        self._times = times
        self.length = None if times is None or before.length is None else before.length * times

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        if not self.before.length:
            return itertools.islice(self._rounds(epoch, 0, 0), start, None)
        return self._rounds(epoch, *divmod(start, self.before.length))

    def _rounds(self, epoch: int, first: int, start: int) -> Items:
        rounds = itertools.count(first) if self._times is None else range(first, self._times)
        for round_ in rounds:
            nothing = True
            # Each round is an epoch of its own for the steps before, with its own order.
            for item in self.before.read(epoch * (self._times or 1) + round_, start if round_ == first else 0):
                nothing = False
                yield item
            if nothing and round_ > first:  # an empty source, repeated without end
                return


class Take(Step):
    def __init__(self, before: Step, count: int):
        super().__init__(before)
        self.reorders = before.reorders
        self.length = None if before.length is None else min(count, before.length)
        self._count = count

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        return itertools.islice(self.before.read(epoch, start, order), max(self._count - start, 0))


class Mixed(Step):
    """Each next item comes from a source that is drawn by weights."""

    def __init__(self, steps: Sequence[Step], weights: np.ndarray, seed: int):
        super().__init__()
        self._steps, self._seed = steps, seed
        self._edges = np.cumsum(weights)[:-1] / weights.sum()
        self.number = max(step.number for step in steps) + 1
        self.unsteady = next((step.unsteady for step in steps if step.unsteady is not None), None)
        sizes = {step.batch_size for step in steps}
        self.batch_size = sizes.pop() if len(sizes) == 1 else None

    def read(self, epoch: int, start: int, order: np.ndarray | None = None) -> Items:
        skipped = np.bincount(list(itertools.islice(self._choices(epoch), start)), minlength=len(self._steps))
        sources = [step.read(epoch, int(n)) for step, n in zip(self._steps, skipped, strict=True)]
        for choice in itertools.islice(self._choices(epoch), start, None):
            item = next(sources[choice], None)
            if item is None:
                return
            yield item

    def _choices(self, epoch: int) -> Iterator[int]:
        random = generator(self._seed, epoch)
        while True:
            yield from np.searchsorted(self._edges, random.random_sample(256), side="right").tolist()


def named(kind: str, f: Callable[[Any], Any], value: Any, step: int, *numbers: int) -> Any:
    """``f(value)``; an error gets a note that says in which step and for which example it was raised."""
    try:
        return f(value)
    except Exception as error:
        error.add_note(note(kind, f, step, *numbers))
        raise


def read_one(get: Callable[[int], Any], i: int) -> Any:
    """``get(i)``; an error gets a note that names the example."""
    try:
        return get(i)
    except Exception as error:
        error.add_note(f"in the source, for example {i}")
        raise


def note(kind: str, f: Callable[[Any], Any], step: int, *numbers: int) -> str:
    which = f"example {numbers[0]}" if len(numbers) == 1 else f"examples {', '.join(map(str, numbers))}"
    called = f"({getattr(f, '__qualname__', type(f).__name__)})" if kind != "batch" else ""
    return f"in step {step} of the pipeline, {kind}{called}, for {which}"


def generator(seed: int, epoch: int) -> np.random.RandomState:
    """Random numbers that depend on these two numbers alone, whatever the version of NumPy (see `permutation`)."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence((seed, epoch))))
