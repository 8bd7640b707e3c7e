"""The command line: the programs, their options, and the valid values of each option.

Imports only the standard library, so that ./train can show help and reject invalid options before it installs anything:
it runs this module as a script, which prints help for --help, and nothing otherwise.
"""

from __future__ import annotations

import argparse
import difflib
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn

from .errors import ProgramError

PROGRAMS = {
    "selu-mlp": "train a SELU network on handwritten digits (what ./train alone does)",
    "data-parallel": "train it on several devices with pmap and on one, and compare the losses",
}


class Settings(NamedTuple):
    """The options that determine the results of a training; those of a checkpoint must be equal."""

    seed: int
    widths: tuple[int, ...]
    epochs: int
    batch_size: int
    learning_rate: float


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings among the options of a program."""
    return Settings(options.seed, tuple(options.widths), options.epochs, options.batch_size, options.learning_rate)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The parsed options of a command line; `program` is the name of the program.

    Raises `ProgramError` for invalid words. For ``--help`` it prints the help and exits.
    """
    if words and words[0] in ("-h", "--help"):
        _overview().parse_args(words[:1])
    named = bool(words) and not words[0].startswith("-")
    program = words[0] if named else "selu-mlp"
    if program not in PROGRAMS:
        raise ProgramError(f"there is no program {program!r}{_meant(program, PROGRAMS)} (see ./train --help)")
    parser = _selu_mlp() if program == "selu-mlp" else _data_parallel()
    options, unknown = parser.parse_known_args(words[1:] if named else words)
    if unknown:
        parser.error(f"there is no option {unknown[0]!r}{_meant(unknown[0], parser._option_string_actions)}")
    options.program = program
    if program == "data-parallel" and options.batch_size % options.devices:
        parser.error(f"--batch-size {options.batch_size} cannot be split evenly over {options.devices} devices")
    return options


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
    programs = "\n".join(f"  {name:<14} {text}" for name, text in PROGRAMS.items())
    parser = _parser(
        "",
        "Trains networks with phlox. The first run installs what they need into .venv.",
        f"programs:\n{programs}\n\nexamples:\n  ./train\n  ./train selu-mlp --epochs 50 --checkpoint out/checkpoints\n"
        "  ./train data-parallel --devices 8\n  ./train data-parallel --help",
    )
    parser.usage = "./train [PROGRAM] [OPTION ...]"
    return parser


def _selu_mlp() -> _Parser:
    parser = _parser(
        "selu-mlp",
        "Trains a SELU network on scikit-learn's handwritten digits, prints loss and test accuracy of\n"
        "each epoch, and writes a plot and the numbers: out/selu-mlp.png and out/selu-mlp.json.",
        "examples:\n  ./train selu-mlp\n  ./train selu-mlp --widths 64 64 --learning-rate 0.001\n"
        "  ./train selu-mlp --loader torch\n  ./train selu-mlp --epochs 100 --checkpoint out/checkpoints",
    )
    _add_common(parser, epochs=30)
    parser.add_argument(
        "--loader",
        choices=["numpy", "torch", "tf", "tfds"],
        default="numpy",
        help="the library that makes the batches (default: numpy)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="save each epoch in DIR, and go on where an earlier run with the same settings stopped",
    )
    return parser


def _data_parallel() -> _Parser:
    parser = _parser(
        "data-parallel",
        "Trains the network of selu-mlp with each batch split over several devices, and once more on one\n"
        "device with the same batches. Prints both losses side by side and exits with status 1 if they\n"
        "differ by more than 1e-5. Writes out/data-parallel.png and out/data-parallel.json.",
        "examples:\n  ./train data-parallel\n  ./train data-parallel --devices 4 --batch-size 128",
    )
    parser.add_argument(
        "--devices", type=_whole(1), default=8, metavar="N", help="how many; virtual ones on a CPU (default: 8)"
    )
    _add_common(parser, epochs=10)
    return parser


def _add_common(parser: _Parser, epochs: int) -> None:
    def add(name: str, type: Callable[[str], object], metavar: str, default: object, help: str) -> None:
        parser.add_argument(name, type=type, metavar=metavar, default=default, help=f"{help} (default: {default})")

    add("--epochs", _whole(1), "N", epochs, "how often to go through the training pictures")
    add("--batch-size", _whole(1), "N", 64, "pictures in a step, on all devices together")
    add("--learning-rate", _rate, "RATE", 0.002, "of Adam; falls to 0 along half a cosine")
    add("--seed", _whole(0, 2**32 - 1), "N", 0, "of everything random: split, order, first parameters, noise")
    parser.add_argument(
        "--widths",
        type=_whole(1),
        nargs="+",
        default=[128, 128, 128],
        metavar="N",
        help="sizes of the hidden layers (default: 128 128 128)",
    )
    add("--out", str, "DIR", "out", "folder for the results")


def _whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            up = "up" if most == math.inf else f"to {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} {up}")
        return int(text)

    return convert


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


if __name__ == "__main__":
    try:
        parse(sys.argv[1:])
    except ProgramError as error:
        sys.exit(error.report())
