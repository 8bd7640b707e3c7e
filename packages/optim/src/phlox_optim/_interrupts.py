"""Ctrl-C while training: the first one is remembered, so that the step that runs is finished and saved."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def remembered() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether Ctrl-C was pressed. The second time it interrupts as ever.

    Only the main thread hears of signals, and only where nobody else handles them; elsewhere the answer is no.
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
