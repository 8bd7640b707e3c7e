"""Work done ahead of time: a thread takes items from an iterator while the consumer is busy with earlier ones.

The thread holds no reference to the iterator that the consumer has. So that one is freed when the consumer leaves its
loop, and freeing it stops the thread; the same happens when the interpreter exits. Knows nothing about batches.
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

_PATIENCE = 5.0  # seconds to wait for a thread that was told to stop; one stuck in a read must not hold up the program


class _Exchange:
    """Where the two sides meet: the thread puts items on `ready`, the consumer a permit on `room` for each it takes.

    These queues may be used by a finalizer that runs in the midst of their own methods, and in forked processes.
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
    """The thread's life."""
    try:
        while True:
            exchange.room.get()  # before the work, so that no more than `size` items exist
            if exchange.closed:
                break
            # Not bound to a name: the next item may take long, and the consumer be done with this one.
            exchange.ready.put(("item", next(items)))
    except StopIteration:
        exchange.ready.put(("end", None))
    except BaseException as error:
        if isinstance(error, PhloxError) and error.where is None:
            error.where = where  # the thread has no line of the user's; the loop has
        exchange.ready.put(("error", error))


def _stop(exchange: _Exchange, thread: threading.Thread) -> None:
    exchange.close()
    if thread is not threading.current_thread():  # the collector may run, and free us, in any thread
        thread.join(_PATIENCE)


class Ahead(Iterator[Any]):
    """The items of an iterator, up to `size` of them prepared by a thread before they are asked for.

    Args:
      items: runs in the thread, with the context variables of the caller.
      size: at most so many items are ready or in preparation, besides the one in use.

    An exception of `items` is raised here, after the items that came before it, with its own traceback.
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
            del value  # or the error would hold its traceback, that this frame, and this frame the error

    def close(self) -> None:
        """Stops the thread and forgets what it has prepared. Leaving the loop does the same."""
        self._stop()
        while not self._exchange.ready.empty():
            self._exchange.ready.get()
