"""`Prompt`, the base class of debuggers in the terminal."""

from __future__ import annotations

import cmd
import linecache
from typing import Any


class Prompt(cmd.Cmd):
    """A prompt in the terminal or, for tests, in files. A line that is no command is an expression, as in pdb."""

    prompt = "(phlox) "

    def __init__(self, stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        # `cmd` reads files line by line only without the input function of the terminal.
        self.use_rawinput = stdin is None

    def write(self, text: str) -> None:
        """Prints a text and a newline."""
        self.stdout.write(text + "\n")

    def write_source(self, file: str, current: int) -> None:
        """Prints the source around a line."""
        for line in range(max(1, current - 5), current + 6):
            text = linecache.getline(file, line)
            if text:
                self.write(f"{line:4} {'->' if line == current else '  '} {text.rstrip()}")

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> bool | None:  # type: ignore[override]
        if line == "EOF":
            return True
        self.do_p(line)
        return None

    def do_p(self, expression: str) -> None:
        """p EXPRESSION: prints its value."""
        raise NotImplementedError
