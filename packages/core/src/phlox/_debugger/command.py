"""The command line of ``python -m phlox debug``: runs a program, and opens a prompt at its first nan."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Sequence

from .._api.recording.record import Recording
from .._base import config
from .._base.errors import InvalidValueError
from .._ir.jaxpr import ClosedJaxpr
from .._trace.steps import Value
from .._xla import invalid_values
from .prompt import Debugger


def main(arguments: Sequence[str]) -> int:
    """Runs ``debug`` with its arguments. Returns the exit status."""
    about = "runs a program and stops at the first nan, with the recording of the compiled call"
    parser = argparse.ArgumentParser(prog="python -m phlox debug", description=f"{about.capitalize()}.")
    parser.add_argument("--inf", action="store_true", help="stop at infinities, too")
    parser.add_argument(
        "-m", dest="module", action="store_true", help="run a module, such as pytest, instead of a file"
    )
    parser.add_argument("program", help="a Python file, or a module after -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    options = parser.parse_args(arguments)
    rest = list(options.arguments)
    if options.module and options.program == "pytest":
        # Without -s pytest would take the input of the prompt.
        rest = ["-s", *rest]
    sys.argv = [options.program, *rest]
    sys.path.insert(0, os.getcwd() if options.module else os.path.dirname(os.path.abspath(options.program)))
    config.update("debug_nans", True)
    config.update("debug_infs", options.inf)
    invalid_values.on_error = _open
    try:
        if options.module:
            runpy.run_module(options.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(options.program, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        # As Python itself does: text is printed, and the status is 1.
        print(end.code, file=sys.stderr)
        return 1
    except InvalidValueError as error:  # the prompt has been open
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        import pdb  # imported for this case alone

        traceback.print_exception(error)
        pdb.post_mortem(error.__traceback__)
        return 1
    return 0


def _open(error: InvalidValueError) -> None:
    """Opens the prompt for an error, once in a process."""
    # Once: the error passes through outer calls, which would ask again.
    invalid_values.on_error = None
    jaxpr, arguments = error.program
    inputs = [Value(x, label=f"argument {i}") for i, x in enumerate(arguments)]
    recording = Recording(ClosedJaxpr(jaxpr), inputs, None, jaxpr.name)
    with config.scope(debug_nans=False, debug_infs=False):
        recording.result = [x.array for x in recording.section.outputs]
        Debugger(recording).cmdloop()
