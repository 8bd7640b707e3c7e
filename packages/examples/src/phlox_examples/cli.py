"""Runs the program that a command line names.

A program is imported only when it runs, so help and errors do not wait for the import of numerical libraries.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from .catalogue import PROGRAMS
from .catalogue.rows import INSTALLATIONS
from .errors import ProgramError
from .options import needs_of, parse


def main(words: Sequence[str] | None = None) -> int:
    """Runs the program that `words` (by default the command line) name. Returns the exit status."""
    with _terminated_as_by_ctrl_c() as received:
        try:
            options = parse(sys.argv[1:] if words is None else words)
            _check_libraries(options)
            importlib.import_module(f"{__package__}.{PROGRAMS[options.program].module}").run(options)
        except ProgramError as error:
            return error.report()
        except ImportError as error:
            command = getattr(
                error, "command", None
            )  # errors about optional libraries have the command to install them
            if command is None:
                raise
            return ProgramError(f"{getattr(error, 'what', error)}. To install it: {_here(command)}").report()
        except BrokenPipeError:
            # Who read the output has ended, as `head` does. What is left in the buffer must not raise at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        except KeyboardInterrupt:
            if received:
                return ProgramError("stopped by SIGTERM", status=128 + signal.SIGTERM).report()
            return ProgramError("stopped by Ctrl-C", status=128 + signal.SIGINT).report()
    return 0


@contextlib.contextmanager
def _terminated_as_by_ctrl_c() -> Iterator[list[int]]:
    """Within it SIGTERM has the effect of Ctrl-C: what a training has learnt is saved. Yields the signals received."""
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if usual[signal.SIGINT] is signal.SIG_IGN:
        # So scripts start programs in the background. SIGTERM must end them all the same.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _check_libraries(options: argparse.Namespace) -> None:
    """Raises `ProgramError` if the program needs an optional library that is not installed, before anything runs."""
    for library in needs_of(options):
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:  # without an origin: a folder of that name, which is no package
            raise ProgramError(f"{library} is not installed. To install it: {_here(INSTALLATIONS[library])}")


def _here(command: str) -> str:
    """A pip command, changed to install into the environment of this program."""
    inside = os.path.relpath(sys.executable)
    python = sys.executable if inside.startswith(os.pardir) else inside
    return command.replace("pip ", f"{python} -m pip ", 1)
