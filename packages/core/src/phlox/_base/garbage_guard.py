"""The flag `array_garbage_collection_guard`: jaxlib logs arrays whose memory waited for Python's garbage collector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .native import native


def _level(value: str | None) -> Any:
    return None if value is None else getattr(native.guard_lib.GarbageCollectionGuardLevel, value.upper())


def set_for_process(value: str | None) -> None:
    """Sets the guard of all threads that have none of their own."""
    native.guard_lib.global_state().garbage_collect_array = _level(value)


@contextmanager
def in_thread(value: str | None) -> Iterator[None]:
    """A context with this guard in the thread."""
    state = native.guard_lib.thread_local_state()
    outer = state.garbage_collect_array
    state.garbage_collect_array = _level(value)
    try:
        yield
    finally:
        state.garbage_collect_array = outer
