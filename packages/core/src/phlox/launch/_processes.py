"""Processes that live and die together: their lines with a prefix, their signals, their end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import IO, Any, NamedTuple

#: seconds that processes have to end after SIGTERM, before SIGKILL
_GRACE = 10.0
_POLL = 0.05
#: exit status of a process that ended because another one failed (`phlox.distributed`)
_LOST = 75
#: seconds to wait for the other one's end
_PATIENCE = 3.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM)


class Command(NamedTuple):
    """A process to start, and what its lines begin with. `remote`: signals are sent to it as lines of text."""

    words: Sequence[str]
    environment: dict[str, str]
    prefix: str
    name: str
    remote: bool = False


class Group:
    """Started processes. `run` waits for their end."""

    def __init__(self, commands: Sequence[Command]):
        self.commands = commands
        self.running: list[subprocess.Popen[bytes]] = []
        self.signal_number: int | None = None
        self.readers: list[threading.Thread] = []
        self.writing = threading.Lock()

    def run(self, *, until_end_of_input: bool = False) -> int:
        """Starts all, and waits until all have ended.

        The first that fails ends the others. SIGINT and SIGTERM are forwarded; with `until_end_of_input` also those
        whose names are lines of the standard input, at whose end all are ended.

        Returns:
          The exit status of the first that failed, as a shell gives it; 0 if none did.
        """
        # Set before the first start, so that no process is left behind by a signal in between.
        before = {number: signal.signal(number, self._note_signal) for number in _FORWARDED}
        try:
            for command in self.commands:
                self._start(command)
            if until_end_of_input:
                threading.Thread(target=self._follow_input, daemon=True).start()
            return self._wait()
        finally:
            for process in self.running:
                if process.poll() is None:
                    process.kill()
            for reader in self.readers:
                reader.join(2)  # a grandchild may keep the pipe open
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self, command: Command) -> None:
        # A session of its own: Ctrl-C in the terminal reaches this process alone, which forwards it once.
        process = subprocess.Popen(
            command.words,
            env=command.environment,
            stdin=subprocess.PIPE if command.remote else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.running.append(process)
        for source, target in ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer)):
            reader = threading.Thread(target=self._copy, args=(source, target, command.prefix.encode()), daemon=True)
            reader.start()
            self.readers.append(reader)

    def _copy(self, source: IO[bytes], target: Any, prefix: bytes) -> None:
        for line in source:
            with self.writing:
                try:
                    target.write(prefix + line + (b"" if line.endswith(b"\n") else b"\n"))
                    target.flush()
                except OSError:  # nobody reads it any more
                    continue

    def _note_signal(self, number: int, _: FrameType | None) -> None:
        self.signal_number = number

    def _follow_input(self) -> None:
        for line in sys.stdin:
            self.signal_number = signal.Signals[line.strip()]
        # The end of the input is the end of ssh: the launcher on the other side is gone.
        self.signal_number = signal.SIGTERM

    def _send(self, number: int) -> None:
        for command, process in zip(self.commands, self.running, strict=True):
            if process.poll() is not None:
                continue
            if not command.remote:
                process.send_signal(number)
                continue
            # ssh does not pass on signals.
            try:
                process.stdin.write(f"{signal.Signals(number).name}\n".encode())  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
            except OSError:
                process.terminate()

    def _wait(self) -> int:
        cause: tuple[str, int] | None = None
        others_end, deadline, by_signal = None, None, False
        while any(process.poll() is None for process in self.running):
            if self.signal_number is not None:
                number, self.signal_number = self.signal_number, None
                by_signal = True
                self._send(number)
            # The first failure is searched; processes that ended because of it may be seen before it.
            if cause is None:
                cause = self._failure(only_causes=True)
                if cause is None and self._failure(only_causes=False):
                    # A status of 75 alone: the cause may show in a moment.
                    others_end = others_end or time.monotonic() + _PATIENCE
                    if time.monotonic() > others_end:
                        cause = self._failure(only_causes=False)
                if cause is not None:
                    deadline = time.monotonic() + _GRACE
                    if not by_signal:  # else they end by themselves, and may be saving something
                        self._say(f"{cause[0]} ended with {_described(cause[1])}; the others are ended")
                        self._send(signal.SIGTERM)
            if deadline is not None and time.monotonic() > deadline:
                for process in self.running:
                    process.kill()
            time.sleep(_POLL)
        if cause is None:
            cause = self._failure(only_causes=True) or self._failure(only_causes=False)
            if cause is not None:
                self._say(f"{cause[0]} ended with {_described(cause[1])}")
        return _status(cause[1]) if cause is not None else 0

    def _failure(self, *, only_causes: bool) -> tuple[str, int] | None:
        """Name and status of a process that failed; with `only_causes`, not of one that ended because of another."""
        codes = ((command.name, process.poll()) for command, process in zip(self.commands, self.running, strict=True))
        failed = ((name, code) for name, code in codes if code and not (only_causes and code == _LOST))
        return next(failed, None)

    def _say(self, text: str) -> None:
        with self.writing:
            sys.stderr.write(f"phlox.launch: {text}\n")
            sys.stderr.flush()


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code


def _described(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
