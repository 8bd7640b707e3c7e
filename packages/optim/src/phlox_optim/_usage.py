"""Throughput and memory of a training, for the figures of an epoch."""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import phlox
from phlox.errors import ArgumentError

from . import metrics

_NAMES = ("throughput", "memory")


class Usage:
    """Counts the steps and examples of an epoch and their time."""

    def __init__(self, names: Sequence[str]):
        if isinstance(names, str) or not set(names) <= set(_NAMES):
            raise ArgumentError(
                f"fit: figures is {names!r}", instead='figures=("throughput", "memory")', argument="figures"
            )
        self._names = tuple(names)
        self._is_compiled = False
        self.start_epoch()

    def start_epoch(self) -> None:
        """Begins to count."""
        self._steps = self._examples = 0
        self._start = time.monotonic()

    def count(self, batch: Any, place: Any) -> None:
        """Counts a step. The first one of a training, which compiles, only starts the clock."""
        if not self._names:
            return
        if not self._is_compiled:
            phlox.block_until_ready(place.total)
            self._is_compiled = True
            self.start_epoch()
            return
        self._steps += 1
        self._examples += metrics.examples_in(batch)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Time in this context does not count."""
        start = time.monotonic()
        yield
        self._start += time.monotonic() - start

    def figures(self) -> dict[str, Any]:
        """The figures of the epoch so far."""
        result: dict[str, Any] = {}
        seconds = time.monotonic() - self._start
        if "throughput" in self._names and self._steps:
            result["steps_per_second"] = self._steps / seconds
            result["examples_per_second"] = self._examples / seconds
        if "memory" in self._names:
            result["memory_bytes"] = _memory()
        return result


def _memory() -> int:
    """The peak of the memory in use of the first device; of the process, if its device does not tell."""
    stats = phlox.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return int(stats["peak_bytes_in_use"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # bytes there, KiB on Linux
