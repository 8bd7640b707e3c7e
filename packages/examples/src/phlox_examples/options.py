"""The command line: finds the program and reads its options, as the catalogue says.

Imports only the standard library: ./train runs this module as a script before it installs anything. It then prints the
help or the list of programs where they are asked for, and nothing otherwise.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from .catalogue import PROGRAMS, Option, Program
from .catalogue.rows import whole
from .errors import ProgramError

DEFAULT = "selu-mlp"

COMMON = (
    Option("--seed", whole(0, 2**32 - 1), 0, "of everything random"),
    Option("--out", str, "out", "folder for the picture and the numbers", metavar="DIR", decides=False),
)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options of a command line; `program` is the name of the program.

    Raises `ProgramError` for invalid words. For ``--help`` and ``--list`` it prints what is asked for and exits.
    """
    if words and words[0] in ("-h", "--help"):
        _overview().parse_args(words[:1])
    if words and words[0] == "--list":
        print(listing())
        raise SystemExit(0)
    named = bool(words) and not words[0].startswith("-")
    name = words[0] if named else DEFAULT
    if name not in PROGRAMS:
        raise ProgramError(f"there is no program {name!r}{_meant(name, PROGRAMS)} (see ./train --list)")
    program = PROGRAMS[name]
    parser = _parser_of(program, quick="--quick" in words)
    options, unknown = parser.parse_known_args(words[1:] if named else words)
    if unknown:
        parser.error(f"there is no option {unknown[0]!r}{_meant(unknown[0], parser._option_string_actions)}")
    options.program = name
    if (wrong := program.refuses(options)) is not None:
        parser.error(wrong)
    return options


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options that decide the numbers of a program, by name: ``settings`` of its JSON."""
    rows = (*COMMON, *PROGRAMS[options.program].options)
    return {name: getattr(options, name) for name in (_attribute(row) for row in rows if row.decides)}


def listing() -> str:
    """A table of all programs: name, seconds, what it shows."""
    width = max(map(len, PROGRAMS))
    rows = [f"{program.name:<{width}}  {program.seconds:>4} s  {_described(program)}" for program in PROGRAMS.values()]
    return "\n".join(rows)


def needs_of(options: argparse.Namespace) -> list[str]:
    """The optional libraries that a program imports with these options."""
    program = PROGRAMS[options.program]
    choices = [row.needs.get(getattr(options, _attribute(row))) for row in program.options if row.needs]
    return [*program.needs, *(library for library in choices if library is not None)]


def _described(program: Program) -> str:
    return program.shows + (f" [needs {' and '.join(program.needs)}]" if program.needs else "")


def _attribute(option: Option) -> str:
    return option.name.removeprefix("--").replace("-", "_")


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word.partition("=")[0], known, 1)
    return f"; did you mean {close[0]}?" if close else ""


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that reports errors as one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise ProgramError(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


def _parser(program: str, description: str, epilog: str) -> _Parser:
    return _Parser(
        prog=f"./train {program}".rstrip(),
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _overview() -> _Parser:
    parser = _parser(
        "",
        "Trains networks and computes with phlox, and draws what comes out. The first run installs what the programs\n"
        "need into .venv. Each program writes a picture and its numbers: out/NAME.png and out/NAME.json.",
        f"programs, with their seconds on two cores:\n{listing()}\n\nexamples:\n  ./train\n"
        "  ./train selu-mlp --epochs 50 --checkpoint out/checkpoints\n"
        "  ./train data-parallel --devices 8\n  ./train data-parallel --help",
    )
    parser.usage = "./train [PROGRAM] [OPTION ...]"
    parser.add_argument("--list", action="store_true", help="show the programs, how long each takes and what it shows")
    return parser


def _parser_of(program: Program, quick: bool) -> _Parser:
    what = program.shows[0].upper() + program.shows[1:]
    needs = f"\nNeeds {' and '.join(program.needs)}." if program.needs else ""
    name = program.name
    parser = _parser(
        name,
        f"{what}.\nTakes about {program.seconds} seconds on two cores.{needs}\n"
        f"Writes a picture, out/{name}.png, and its numbers, out/{name}.json.",
        "",
    )
    for row in (*program.options, *COMMON):
        shown = " ".join(map(str, row.default)) if row.many else row.default
        parser.add_argument(
            row.name,
            type=row.check,
            metavar=None if row.choices else row.metavar,
            choices=row.choices,
            nargs="+" if row.many else None,
            default=row.quick if quick and row.quick is not None else row.default,
            help=row.help if row.default is None else f"{row.help} (default: {shown})",
        )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"a much smaller run, to see that everything works, with files {name}-quick.*",
    )
    return parser


if __name__ == "__main__":
    try:
        parse(sys.argv[1:])
    except ProgramError as error:
        sys.exit(error.report())
