"""Prefetching: a thread takes items from an iterator while the consumer processes earlier ones.

The thread holds no reference to the consumer's iterator. When the consumer leaves its loop, that iterator is therefore
freed, which stops the thread; the exit of the interpreter stops it too. This module does not depend on batches.
"""

from __future__ import annotations

import contextvars
import threading
import weakref
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from phlox.errors import PhloxError
from phlox.extend import Location, user_location

_PATIENCE = 5.0  # seconds to wait for a thread to stop; a thread blocked in a read must not block the program


class _Exchange:
    """Two queues between the threads: items in `ready`; in `room` a permit for each item that may be prepared.

    SimpleQueue, because a finalizer may use these queues while one of their own methods runs, and after a fork.
    """

    def __init__(self, size: int):
        self.ready: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.room: SimpleQueue[None] = SimpleQueue()
        self.closed = False
        for _ in range(size):
            self.room.put(None)

    def close(self) -> None:
        self.closed = True
        self.room.put(None)  # wakes the thread


def _fill(items: Iterator[Any], exchange: _Exchange, where: Location | None) -> None:
    """The function of the thread."""
    try:
        while True:
            exchange.room.get()  # before the work, so that no more than `size` items exist
            if exchange.closed:
                break
            # Not bound to a name, which would keep this item alive while the next one is prepared.
            exchange.ready.put(("item", next(items)))
    except StopIteration:
        exchange.ready.put(("end", None))
    except BaseException as error:
        if isinstance(error, PhloxError) and error.where is None:
            error.where = where  # the user's line of the loop, because the thread's stack has no user code
        exchange.ready.put(("error", error))


def _stop(exchange: _Exchange, thread: threading.Thread) -> None:
    exchange.close()
    if thread is not threading.current_thread():  # the garbage collector may run this finalizer in any thread
        thread.join(_PATIENCE)


class Ahead(Iterator[Any]):
    """The items of an iterator, up to `size` of them prepared in advance by a thread.

    Args:
      items: runs in the thread, with the context variables of the caller.
      size: the maximum number of items that are ready or in preparation, besides the one in use.

    An exception in `items` is raised here with its own traceback, after the items before it.
    """

    def __init__(self, items: Iterator[Any], size: int):
        self._exchange = exchange = _Exchange(size)
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(_fill, items, exchange, user_location()), name="phlox-data")
        thread.daemon = True
        thread.start()
        self._stop = weakref.finalize(self, _stop, exchange, thread)

    def __next__(self) -> Any:
        if self._exchange.closed:
            raise StopIteration
        kind, value = self._exchange.ready.get()
        if kind == "item":
            self._exchange.room.put(None)
            return value
        self.close()
        if kind == "end":
            raise StopIteration
        try:
            raise value
        finally:
            del value  # breaks the reference cycle of error, traceback and this frame

    def close(self) -> None:
        """Stops the thread and discards the items that it has prepared. Leaving the loop does the same."""
        self._stop()
        while not self._exchange.ready.empty():
            self._exchange.ready.get()
