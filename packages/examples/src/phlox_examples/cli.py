"""From the words of a command line to a program and its exit status.

A program is imported when it is known that it will run: help and errors do not wait for numerical libraries.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .errors import ProgramError
from .options import parse


def main(words: Sequence[str] | None = None) -> int:
    """Runs the program that `words` (default: the command line) name; returns the exit status."""
    try:
        options = parse(sys.argv[1:] if words is None else words)
        if options.program == "selu-mlp":
            from .selu_mlp import run
        else:
            from .data_parallel import run
        run(options)
    except ProgramError as error:
        return error.report()
    except ImportError as error:
        command = getattr(error, "command", None)  # phlox's packages say how to install an optional library
        if command is None:
            raise
        return ProgramError(f"{getattr(error, 'what', error)}. To install it: {_here(command)}").report()
    except KeyboardInterrupt:
        return ProgramError("stopped by Ctrl-C", status=130).report()
    return 0


def _here(command: str) -> str:
    """A command that begins with pip, made to install into the environment that this program runs in."""
    inside = os.path.relpath(sys.executable)
    python = sys.executable if inside.startswith(os.pardir) else inside
    return command.replace("pip ", f"{python} -m pip ", 1)
