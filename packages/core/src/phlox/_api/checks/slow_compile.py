"""Slow compilations: a message, while XLA compiles for longer than 10 seconds, with the lines of most equations."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

from ..._base import checks
from ..._base.errors import CheckWarning
from ..._base.source import Location, user_location
from ..._ir.jaxpr import Jaxpr
from .unrolled import by_line

#: a compilation that takes longer is reported
SECONDS = 10.0


@contextlib.contextmanager
def watched(jaxpr: Jaxpr, name: str) -> Iterator[None]:
    """A context for a compilation. If it takes longer than `SECONDS`, a thread warns; the thread ends with the context.

    The warning is no error in strict mode either, as it comes from another thread while XLA runs.
    """
    if not checks.is_on():
        yield
        return
    # A thread, as XLA holds this one until it is done.
    timer = threading.Timer(SECONDS, _warn, (jaxpr, name, user_location()))
    timer.daemon = True  # it must not keep a process that was interrupted alive
    with contextlib.suppress(RuntimeError):  # Python starts no thread when it is about to end
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _warn(jaxpr: Jaxpr, name: str, location: Location | None) -> None:
    text = f"slow compilation: {description(jaxpr, name)}"
    file, line = ("phlox", 1) if location is None else (location.file, location.line)
    warnings.warn_explicit(text, CheckWarning, file, line)


def description(jaxpr: Jaxpr, name: str) -> str:
    """The message about a Jaxpr that is being compiled: its size, and the lines that recorded most equations."""
    # Also in jitted functions inside, since these are part of the program that XLA compiles.
    lines = sorted(by_line(jaxpr, inside_jit=True), key=lambda line: -len(line[1]))
    total = sum(len(equations) for _, equations in lines)
    most = "; ".join(
        f"{len(equations)} from {location} ({location.text()})" for location, equations in lines[:3] if location.text()
    )
    return (
        f"XLA has been compiling {name} for {SECONDS:.0f} s, and goes on. It has {total} equations: {most}; instead: "
        "phlox.lax.scan or fori_loop for what is repeated; compile_effort='fast' while you try out; the next process "
        "loads the program from disk"
    )
