"""Compiles programs on a thread, which take the place of those compiled at low effort by ``compile_effort="tiered"``.

The thread lives while there is something to compile. It takes one program at a time, and begins when no other thread
compiles: a result that is waited for comes first. Programs whose quick form is no longer referenced are left out.

A process cannot end while XLA compiles, as Python would abort it. So at exit the thread finishes the program that it is
compiling, and the others are dropped.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._base import config, monitoring

#: seconds without a compilation in the foreground before the thread begins one, and the longest wait for that
_PAUSE, _PATIENCE = 0.05, 5.0

_Job = Callable[[], None]


class _Queue:
    """The jobs that wait, and the thread that takes them; there is no thread while there are no jobs."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.jobs: deque[_Job] = deque()
        self.thread: threading.Thread | None = None
        self.closed = False
        #: compilations in the foreground that are under way, and when the last one ended
        self.foreground = 0
        self.ended = 0.0

    def add(self, job: _Job) -> None:
        with self.changed:
            if self.closed:
                return
            self.jobs.append(job)
            if self.thread is None:
                # A daemon, because Python waits for other threads before it calls `_close`, which drops the jobs that
                # wait.
                thread = threading.Thread(target=self._work, name="phlox compiler", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is ending, or there are too many threads
                    self.jobs.clear()
                    return
                self.thread = thread

    def _work(self) -> None:
        while True:
            with self.changed:
                # After this time a job begins even if the foreground never rests, or a busy program would never be
                # replaced.
                until = time.monotonic() + _PATIENCE
                while self._wait_for_others(until):
                    self.changed.wait(_PAUSE)
                if not self.jobs:
                    self.thread = None
                    self.changed.notify_all()
                    return
                job = self.jobs.popleft()
            # Without the lock, which `foreground` takes: compiling takes seconds.
            job()
            del job  # which refers to the program

    def _wait_for_others(self, until: float) -> bool:
        now = time.monotonic()
        busy = self.foreground > 0 or now < self.ended + _PAUSE
        return bool(self.jobs) and busy and now < until

    def wait(self) -> None:
        """Waits until all jobs are done."""
        with self.changed:
            while self.thread is not None:
                self.changed.wait()

    def close(self) -> None:
        """Drops the jobs that wait, and waits for the one that runs."""
        with self.changed:
            self.closed = True
            self.jobs.clear()
            self.changed.notify_all()
            thread = self.thread
        if thread is not None:
            # Outside of the lock: the thread needs it to end.
            thread.join()


_queue = _Queue()


def _close() -> None:
    # The global is read at exit, not at registration, as a fork replaces it.
    _queue.close()


def _after_fork() -> None:
    """A child process has neither the thread nor a valid lock."""
    global _queue
    _queue = _Queue()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
_registered = False


@contextmanager
def foreground() -> Iterator[None]:
    """A context for a compilation whose result is waited for: the thread begins none meanwhile."""
    # The same queue at both ends, also if the process forks inside of the block.
    queue = _queue
    with queue.changed:
        queue.foreground += 1
    try:
        yield
    finally:
        with queue.changed:
            queue.foreground -= 1
            queue.ended = time.monotonic()


def wait() -> None:
    """Waits until all programs are compiled and in their place."""
    _queue.wait()


def replace_later(owner: Any, name: str, make: Callable[[], Any], install: Callable[[Any, Any], None]) -> None:
    """Calls ``install(owner, make())`` on the thread, under the settings of this call.

    Args:
      owner: what the new program replaces. The thread holds a weak reference; if it dies, nothing is compiled.
      name: of the program, for messages.
      make: compiles the program.
      install: puts it in place of `owner`, if that is still where it was.
    """
    global _registered
    if not _registered:  # registered after the clients, so that it runs before they are freed
        _registered = True
        atexit.register(_close)
    reference, settings = weakref.ref(owner), config.current()

    def job() -> None:
        if reference() is None:
            return
        try:
            # A new thread has a context of its own, without the settings of the caller.
            with config.exactly(settings):
                replacement = make()
            owner = reference()
            if owner is not None:
                install(owner, replacement)
        except Exception as error:
            monitoring.warn(
                "compiling jit(%s) in full failed, the program compiled at low effort stays: %s", name, error
            )

    _queue.add(job)
