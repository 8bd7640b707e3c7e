"""`map` of a pipeline in threads or in processes: some examples ahead, in their order."""

from __future__ import annotations

import contextvars
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.connection import wait
from typing import Any

from phlox.errors import ArgumentError, PhloxError

from ._steps import note

_AHEAD = 2  # examples for each worker: one in work, and one that waits so that the worker need not


def check_function(f: Callable[[Any], Any]) -> None:
    """Raises `ArgumentError` if other processes cannot be sent `f`."""
    try:
        pickle.dumps(f)
    except Exception as error:
        raise ArgumentError(
            f"map: {f!r} cannot be sent to other processes: {error}",
            instead="a function that is defined at the top of a module, or processes=False",
            argument="f",
        ) from error


def map_ahead(
    items: Iterator[tuple[int, Any]], f: Callable[[Any], Any], workers: int, processes: bool, step: int
) -> Iterator[tuple[int, Any]]:
    """Pairs of number and ``f(value)``, computed by workers, of which none is left when the iterator is closed."""
    pool, submit = _processes(f, workers) if processes else _threads(f, workers)
    running: deque[tuple[int, Future[Any]]] = deque()
    try:
        for number, value in items:
            running.append((number, submit(value)))
            if len(running) > _AHEAD * workers:
                number, future = running.popleft()
                yield number, _result(future, f, step, number)
        while running:
            number, future = running.popleft()
            yield number, _result(future, f, step, number)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[Any], f: Callable[[Any], Any], step: int, number: int) -> Any:
    try:
        return future.result()
    except BrokenExecutor as error:
        raise PhloxError(
            f"a worker process of map ended by itself, near example {number}",
            instead="workers=0, which shows its error in this process; if memory was short, fewer workers. Functions "
            "must be those of a module, not of a notebook, and the work of a program stands under "
            '`if __name__ == "__main__":`',
            example=number,
        ) from error
    except Exception as error:
        error.add_note(note("map", f, step, number))
        raise


def _threads(f: Callable[[Any], Any], workers: int) -> tuple[Executor, Callable[[Any], Future[Any]]]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="phlox-data-map")
    # A copy for each call, because a context can be entered by one thread at a time.
    return pool, lambda value: pool.submit(contextvars.copy_context().run, f, value)


def _processes(f: Callable[[Any], Any], workers: int) -> tuple[Executor, Callable[[Any], Future[Any]]]:
    # Not forked from this process, which has threads: in its copy locks that they hold would never be free.
    context = multiprocessing.get_context("forkserver")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(f,))

    def submit(value: Any) -> Future[Any]:
        try:
            return pool.submit(_call, value)
        except BrokenExecutor as error:  # a worker has ended meanwhile: told in the order of the examples
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    return pool, submit


_function: Callable[[Any], Any]  # of this worker process, which gets it once and not with each example


def _begin(f: Callable[[Any], Any]) -> None:
    """The first thing that a worker process does."""
    global _function
    _function = f
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which then ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _call(value: Any) -> Any:
    return _function(value)
