"""Prefetching: a thread takes items from an iterator while the consumer processes earlier ones.

The thread holds no reference to the consumer's iterator. When the consumer leaves its loop, that iterator is therefore
freed, which stops the thread; the exit of the interpreter stops it too. This module does not depend on batches.

Two threads of Python that hand items over and wait for its global lock lose about a tenth of a millisecond for each
item. Where reading or the consumer takes less than that, nothing is gained by the thread: it is paused, and the
consumer's own thread takes the items, until both take longer. A `Pace` remembers this for the next epoch.
"""

from __future__ import annotations

import contextvars
import threading
import time
import weakref
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from phlox.errors import PhloxError
from phlox.extend import Location, user_location

_LITTLE, _MUCH = 2e-4, 4e-4  # seconds for each item that a thread must hide to be kept, and to be used again
_PAUSE_AFTER, _RESUME_AFTER = 3, 2  # items in a row that must agree, as single times vary with the machine's load
_PATIENCE = 5.0  # seconds to wait for a thread to stop; a thread blocked in a read must not block the program


class _Exchange:
    """Two queues between the threads: items in `ready`; in `room` a permit for each item that may be prepared.

    An item in `ready` is a triple of its kind, its value, and the seconds that it took.
    SimpleQueue, because a finalizer may use these queues while one of their own methods runs, and after a fork.
    """

    def __init__(self, size: int):
        self.ready: SimpleQueue[tuple[str, Any, float]] = SimpleQueue()
        self.room: SimpleQueue[None] = SimpleQueue()
        self.closed = False
        for _ in range(size):
            self.room.put(None)

    def close(self) -> None:
        self.closed = True
        self.room.put(None)  # wakes the thread


def _take_next(items: Iterator[Any], where: Location | None) -> tuple[str, Any, float]:
    """The next item, or the end, or an error, and the seconds that it took."""
    start = time.perf_counter()
    try:
        # Not bound to a name, which would keep this item alive while the next one is prepared.
        return "item", next(items), time.perf_counter() - start
    except StopIteration:
        return "end", None, 0.0
    except BaseException as error:
        if isinstance(error, PhloxError) and error.where is None:
            error.where = where  # the user's line of the loop, because the thread's stack has no user code
        return "error", error, 0.0


def _fill(items: Iterator[Any], exchange: _Exchange, where: Location | None) -> None:
    """The function of the thread."""
    kind = "item"
    while kind == "item":
        exchange.room.get()  # before the work, so that no more than `size` items exist
        if exchange.closed:
            break
        message = _take_next(items, where)
        kind = message[0]
        exchange.ready.put(message)
        del message


def _stop(exchange: _Exchange, thread: threading.Thread) -> None:
    exchange.close()
    # The garbage collector may run this finalizer in any thread.
    if thread.ident is not None and thread is not threading.current_thread():
        thread.join(_PATIENCE)


class Pace:
    """Whether the thread of the latest iterator over a source was paused, with which the next one begins."""

    paused = False


class Ahead(Iterator[Any]):
    """The items of an iterator, up to `size` of them prepared in advance by a thread, where this saves time.

    Args:
      items: runs in the thread or in that of the consumer, with the context variables of the caller.
      size: the maximum number of items that are ready or in preparation, besides the one in use.
      pace: that of the source.

    An exception in `items` is raised here with its own traceback, after the items before it.
    """

    def __init__(self, items: Iterator[Any], size: int, pace: Pace | None = None):
        self._pace = Pace() if pace is None else pace
        self._pausing = self._pace.paused
        self._size = size
        self._permits = 0 if self._pausing else size  # of the permits, those that the thread holds or will get
        self._exchange = exchange = _Exchange(self._permits)
        self._items: Iterator[Any] | None = items
        self._where = user_location()
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()  # several threads may share this iterator
        self._in_a_row = 0
        self._left: float | None = None  # the time at which the consumer got its item
        run = contextvars.copy_context().run
        self._thread = thread = threading.Thread(target=run, args=(_fill, items, exchange, self._where))
        thread.name, thread.daemon = "phlox-data", True
        if self._permits:
            thread.start()
        self._stop = weakref.finalize(self, _stop, exchange, thread)

    def __next__(self) -> Any:
        with self._lock:
            items = self._items
            if items is None:
                raise StopIteration
            busy = None if self._left is None else time.perf_counter() - self._left
            if self._permits:
                kind, value, took = self._exchange.ready.get()
                self._permits -= 1
            else:  # the thread waits for a permit, and leaves the iterator alone
                kind, value, took = self._context.run(_take_next, items, self._where)
            del items
            if kind == "item":
                if busy is not None:
                    self._choose(min(busy, took))
                if not self._pausing:
                    self._permit()
                self._left = time.perf_counter()
                return value
        self.close()
        if kind == "end":
            raise StopIteration
        try:
            raise value
        finally:
            del value  # breaks the reference cycle of error, traceback and this frame

    def _choose(self, hidden: float) -> None:
        """Pauses the thread, or lets it go on, by the seconds that it hides or would hide for an item."""
        other = hidden > _MUCH if self._pausing else hidden < _LITTLE
        self._in_a_row = self._in_a_row + 1 if other else 0
        if self._in_a_row == (_RESUME_AFTER if self._pausing else _PAUSE_AFTER):
            self._pausing = self._pace.paused = not self._pausing
            self._in_a_row = 0

    def _permit(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
        while self._permits < self._size:
            self._permits += 1
            self._exchange.room.put(None)

    def close(self) -> None:
        """Stops the thread and discards the items that it has prepared. Leaving the loop does the same."""
        self._stop()
        self._items = None
        while not self._exchange.ready.empty():
            self._exchange.ready.get()
