"""Ends this process, with one clear line, when another process of the distributed program has failed.

XLA's coordination service notices which processes no longer send heartbeats. By itself its client then aborts the
process with a trace of C++ functions, which names no process. Here two threads ask the service in advance: one who is
alive, and one whether a process has left a note about its failure. If the service itself cannot be reached, the client
calls `missed_heartbeat_callback`. jaxlib cannot pass the status to a Python function, and throws an exception that
nothing catches (0.10 to 0.12): C++ then calls the terminate handler, which is set here.
"""

from __future__ import annotations

import ctypes
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

#: exit status of a process that ends because another one failed: EX_TEMPFAIL of sysexits.h, "try again"
LOST = 75
_NOTE = "phlox/failed"
#: seconds that the threads have to find out more when the client only says that something failed
_GRACE = 1.5
#: a text that is no key of the store
_NOTHING = "phlox/nothing"
_ending = threading.Lock()


def end(message: str) -> NoReturn:
    """Prints `message` and ends the process at once; its main thread may wait for devices for ever."""
    # Never released: the process ends, and another thread must not print a second line.
    if not _ending.acquire(blocking=False):
        time.sleep(60)  # must not return: the thread that ends the process needs little more than a second
    try:
        flusher = threading.Thread(target=_flush, daemon=True)  # the main thread may hold the lock of a stream
        flusher.start()
        flusher.join(1)
    except RuntimeError:  # Python is about to end: this is the main thread
        _flush()
    os.write(2, f"phlox.distributed: {message}\n".encode())
    # `os._exit`, as the usual end would wait for threads that wait for a process which is gone.
    os._exit(LOST)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


class Watch:
    """The threads that watch the other processes of a client, from `start` to `stop`."""

    def __init__(self, number: int, count: int, address: str, heartbeat: int):
        #: the client, once it is made
        self.client: Any = None
        self.number = number
        self.count = count
        self.address = address
        self.heartbeat = heartbeat
        self.stopped = threading.Event()
        #: whether this process waits in the client's shutdown
        self.leaving = False
        #: whether this process is about to end by itself
        self.failing = False
        self.threads: list[threading.Thread] = []
        #: the requests of `_query_service`. The thread that makes them starts here, as Python starts none when it is
        #: about to end.
        self.requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._serve_requests, name="phlox_serve_requests", daemon=True).start()

    def start(self) -> None:
        """Starts to watch."""
        for target in (self._watch_live_nodes, self._wait_for_note):
            thread = threading.Thread(target=target, name=f"phlox{target.__name__}", daemon=True)
            thread.start()
            self.threads.append(thread)

    def stop(self) -> None:
        """Waits for the threads, after the client's shutdown; Python may not end while they use the client."""
        self.stopped.set()
        for thread in self.threads:
            # With a limit: a thread may be stuck in the client, which waits for a service that does not answer.
            thread.join(_GRACE)

    def tell(self, what: str) -> None:
        """Tells the others why this process ends; they end at once, and need not wait for its heartbeats."""
        self.failing = True
        self.stopped.set()
        text = f"process {self.number} failed with {what}"
        # Not overwritten: the first failure is the cause, later ones are its consequences.
        self._query_service(lambda: self.client.key_value_set(_NOTE, text, allow_overwrite=False))
        time.sleep(0.3)  # process 0 takes the service with it

    def fail(self, what: str) -> NoReturn:
        """Ends this process, after telling the others why."""
        self.tell(what)
        # `os._exit` skips the functions at exit, of which that of `logging` writes what handlers hold.
        if "logging" in sys.modules:
            sys.modules["logging"].shutdown()
        _flush()
        os._exit(1)  # Python cannot end while its threads wait for answers of the service

    def lose(self) -> NoReturn:
        """Ends this process, as the coordination service has failed, or cannot be reached."""
        time.sleep(60 if self.failing else _GRACE)  # another thread may know more, and ends the process
        where = "which this process runs" if self.number == 0 else f"which process 0 runs at {self.address}"
        end(
            self._end_message(
                f"the coordination service, {where}, reports an error or cannot be reached; "
                f"process 0 has ended, the network is broken, or a process was started twice (its log says more)"
            )
        )

    def _end_message(self, cause: str) -> str:
        return f"process {self.number} of {self.count} ends: {cause}"

    def _watch_live_nodes(self) -> None:
        everybody = list(range(self.count))
        # Four requests for each heartbeat: a dead process is found before the client aborts this one.
        pause = max(0.2, min(5.0, self.heartbeat / 4))
        while not self.stopped.wait(pause):
            try:
                alive = self.client.get_live_nodes(everybody)  # waits until all that are alive have asked
            except Exception:
                return  # the client reports it
            gone = [str(number) for number in everybody if number not in alive]
            if self.leaving:
                return  # the first to disconnect is gone before our shutdown returns, which reports real failures
            if gone and not self.stopped.is_set():
                several = len(gone) > 1
                end(
                    self._end_message(
                        f"process{'es' * several} {', '.join(gone)} sent no heartbeat for {self.heartbeat} s; "
                        f"{'they were' if several else 'it was'} killed or stopped, or the network is broken"
                    )
                )

    def _wait_for_note(self) -> None:
        while not self.stopped.is_set():
            try:
                # In milliseconds. The call returns when the note appears; its time limit only serves to look at
                # `stopped`.
                note = self.client.blocking_key_value_get(_NOTE, 600_000)
            except Exception as error:
                if "DEADLINE_EXCEEDED" in str(error):
                    continue
                return
            if not self.stopped.is_set():
                end(self._end_message(note))

    def answers(self) -> bool:
        """Whether the client still works."""
        return self._query_service(lambda: self.client.key_value_try_get(_NOTHING))

    def _query_service(self, request: Callable[[], Any]) -> bool:
        """Asks the service in a thread, as a client that has lost it may hold its lock for ever. False: no answer."""
        answered = threading.Event()

        def wait() -> None:
            try:
                request()
            except Exception as error:
                # These errors are answers as well: the service works, and there is no such key, or the note was left
                # already.
                if not any(answer in str(error) for answer in ("NOT_FOUND", "ALREADY_EXISTS")):
                    return
            answered.set()

        self.requests.put(wait)
        return answered.wait(1)

    def _serve_requests(self) -> None:
        while True:
            self.requests.get()()


_watch: Watch | None = None
#: the terminate handler as C++ calls it; must live as long as the process
_handler: Any = None


def callback_for(watch: Watch) -> Callable[..., None] | None:
    """The `missed_heartbeat_callback` of the client of `watch`; None if it could not end the process with a message."""
    global _watch, _handler
    if _handler is None:
        _handler = _set_terminate_handler()
    if _handler is None:
        return None
    _watch = watch
    return lambda *_: watch.lose()


def _set_terminate_handler() -> Any:
    """Sets the function that C++ calls for an uncaught exception. None if the C++ library is another one."""
    try:
        # The mangled name of `std::set_terminate`. Another C++ library has other handlers, which this one would not
        # reach.
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
    except (OSError, AttributeError):
        return None
    kind = ctypes.CFUNCTYPE(None)
    set_terminate.restype = ctypes.c_void_p
    before: list[Any] = []

    @kind
    def handler() -> None:
        watch = _watch
        # Another thread of C++ may have ended for a reason of its own: then the service still answers.
        if watch is None or (not watch.failing and (watch.stopped.is_set() or watch.answers())):
            kind(before[0])()  # C++'s own handler, which prints the exception and aborts
            return
        watch.lose()

    before.append(set_terminate(handler))
    return handler
