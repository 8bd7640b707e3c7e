"""Runs the program that a command line names.

A program is imported only when it runs, so help and errors do not wait for the import of numerical libraries.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .errors import ProgramError
from .options import parse


def main(words: Sequence[str] | None = None) -> int:
    """Runs the program that `words` (by default the command line) name. Returns the exit status."""
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
        command = getattr(error, "command", None)  # errors about optional libraries have the command that installs them
        if command is None:
            raise
        return ProgramError(f"{getattr(error, 'what', error)}. To install it: {_here(command)}").report()
    except KeyboardInterrupt:
        return ProgramError("stopped by Ctrl-C", status=130).report()
    return 0


def _here(command: str) -> str:
    """A pip command, changed to install into the environment of this program."""
    inside = os.path.relpath(sys.executable)
    python = sys.executable if inside.startswith(os.pardir) else inside
    return command.replace("pip ", f"{python} -m pip ", 1)
