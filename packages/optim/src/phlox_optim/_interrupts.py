"""Ctrl-C during training: the first one only sets a flag, so that the running step can be finished and saved."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def remembered() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether Ctrl-C was pressed. The second Ctrl-C raises KeyboardInterrupt as usual.

    Works only in the main thread and if no other signal handler is installed; otherwise the function returns False.
    """
    pressed = False
    usual = signal.getsignal(signal.SIGINT)

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            signal.default_int_handler(number, frame)
        pressed = True

    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, usual)
