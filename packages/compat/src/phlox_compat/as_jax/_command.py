"""The command line of ``python -m phlox.as_jax``: runs a program, a module, a command or an interactive session.

It is no part of ``__main__.py``, because the program takes over the names of that module.
"""

from __future__ import annotations

import os
import runpy
import sys
from types import TracebackType
from typing import Any

from . import install

_USAGE = "python -m phlox.as_jax [program.py | -m module | -c command] [arguments]"


def main(arguments: list[str]) -> None:
    """Runs what the command line `arguments` name, as ``python`` with the same arguments would."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"usage: {_USAGE}\n\nRuns a program whose `import jax` imports phlox.")
        return
    if arguments[:1] in (["-m"], ["-c"]) and len(arguments) < 2:
        sys.exit(f"{arguments[0]} needs an argument\nusage: {_USAGE}")
    if arguments[:1] and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
        sys.exit(f"unknown option {arguments[0]}\nusage: {_USAGE}")
    install()
    try:
        _run(arguments)
    except Exception as error:
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


def _run(arguments: list[str]) -> None:
    if not arguments:
        _interact()
    elif arguments[0] == "-m":
        sys.argv[:] = [arguments[1], *arguments[2:]]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv[:] = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec", dont_inherit=True), _fresh_main())
    else:
        path = arguments[0]
        sys.argv[:] = arguments
        if os.path.isdir(path):  # with a __main__.py
            sys.path.pop(0)
            runpy.run_path(path, run_name="__main__")
            return
        path = os.path.abspath(path)  # also in tracebacks and warnings, as Python does
        sys.path[0] = os.path.dirname(path)
        try:
            with open(path, "rb") as file:
                source = file.read()
        except OSError as error:
            sys.exit(f"python -m phlox.as_jax: can't open file {path!r}: {error.strerror}")
        exec(compile(source, path, "exec", dont_inherit=True), _fresh_main(path))


def _fresh_main(path: str | None = None) -> dict[str, Any]:
    """The names of the module ``__main__``, without ours, as Python sets them for a program."""
    names = vars(sys.modules["__main__"])
    builtins = names["__builtins__"]
    names.clear()
    names.update(__name__="__main__", __builtins__=builtins, __doc__=None, __spec__=None, __loader__=None)
    names.update(__package__=None)
    if path is not None:
        names.update(__file__=path)
    return names


def _interact() -> None:
    import code

    names = _fresh_main()
    try:
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    except ImportError:
        pass
    code.interact(local=names, banner=f"Python {sys.version.split()[0]}; import jax imports phlox", exitmsg="")


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this file and of runpy, which come first."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        rest = rest.tb_next
    return rest or trace
