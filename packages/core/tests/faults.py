"""Faults in calls of jaxlib and of the file system: the n-th call fails, once.

`install` replaces the functions through which phlox compiles, executes, transfers and serializes, and those of `os` and
`open`. It must run before phlox is imported, so a process of its own does it. `inject` is the context in which calls
are counted. Python's import system does not use the replaced functions.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

#: classes of jaxlib and their methods, and functions of its module; some exist only in some versions
METHODS = {
    "Client": ("compile_and_load", "serialize_executable", "deserialize_executable"),
    "LoadedExecutable": ("execute_sharded",),
    "ExecuteResults": ("consume_with_handlers",),
    "ArrayImpl": ("_to_np_array_did_copy", "_single_device_array_to_np_array_did_copy", "block_until_ready"),
}
FUNCTIONS = ("batched_device_put", "batched_copy_array_to_devices_with_sharding", "batched_block_until_ready")
FILES = (
    "close", "fstat", "listdir", "lstat", "makedirs", "mkdir", "open", "remove", "rename", "replace", "rmdir", "scandir",
    "stat", "unlink", "utime", "write",
)  # fmt: skip


class Fault:
    """The n-th call of a replaced function fails. `place` is its name once it has failed."""

    def __init__(self, number: int):
        self.number = number
        self.calls = 0
        self.place = ""
        self._lock = threading.Lock()

    def due(self, place: str) -> bool:
        with self._lock:
            self.calls += 1
            if self.calls != self.number:
                return False
            self.place = place
            return True

    @property
    def text(self) -> str:
        return f"injected fault {self.number} in {self.place}"


_current: Fault | None = None


@contextlib.contextmanager
def inject(number: int) -> Iterator[Fault]:
    """A context in which the call of this number fails."""
    global _current
    _current = fault = Fault(number)
    try:
        yield fault
    finally:
        _current = None


def _failing(function: Callable[..., Any], place: str, error: Callable[[str], Exception]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        fault = _current
        if fault is not None and fault.due(place):
            if place == "os.close":  # as on Linux, the descriptor is closed nevertheless
                function(*args, **kwargs)
            raise error(fault.text)
        return function(*args, **kwargs)

    return call


def _no_space(text: str) -> OSError:
    return OSError(errno.ENOSPC, text)


class _File:
    """A file for writing: a write that fails has written half of the data."""

    def __init__(self, file: Any):
        self._file = file

    def write(self, data: Any) -> int:
        fault = _current
        if fault is not None and fault.due("write"):
            self._file.write(data[: len(data) // 2])
            raise _no_space(fault.text)
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)


def _opening(function: Callable[..., Any], place: str) -> Callable[..., Any]:
    checked = _failing(function, place, _no_space)

    def call(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        made = checked(file, mode, *args, **kwargs)
        return _File(made) if _current is not None and set(mode) & set("wax+") else made

    return call


def install() -> None:
    """Replaces the functions. Call it before phlox is imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # as phlox does before it imports jaxlib
    from jaxlib import _jax as native

    def runtime(text: str) -> Exception:
        return native.JaxRuntimeError(f"INTERNAL: {text}")

    for kind, names in METHODS.items():
        cls = getattr(native, kind)
        for name in names:
            if hasattr(cls, name):
                setattr(cls, name, _failing(getattr(cls, name), f"{kind}.{name}", runtime))
    for name in FUNCTIONS:
        if hasattr(native, name):
            setattr(native, name, _failing(getattr(native, name), name, runtime))
    for name in FILES:
        setattr(os, name, _failing(getattr(os, name), f"os.{name}", _no_space))
    os.fdopen = _opening(os.fdopen, "os.fdopen")  # type: ignore[assignment]
    builtins.open = _opening(builtins.open, "open")  # type: ignore[assignment]
