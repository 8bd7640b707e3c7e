"""Ctrl-C and SIGTERM during training: the first one only sets a flag, so that the step can be finished and saved."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def remembered() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether Ctrl-C was pressed or SIGTERM arrived. The second has its usual effect.

    Works only in the main thread, and for signals that have their default handlers; otherwise the result is False.
    """
    arrived = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    usual = {number: default for number, default in defaults.items() if signal.getsignal(number) is default}

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal arrived
        if arrived:
            signal.signal(number, usual[signal.Signals(number)])
            signal.raise_signal(number)
        arrived = True

    for number in usual:
        signal.signal(number, remember)
    try:
        yield lambda: arrived
    finally:
        for number, default in usual.items():
            signal.signal(number, default)
