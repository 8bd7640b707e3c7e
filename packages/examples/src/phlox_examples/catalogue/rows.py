"""A row of the catalogue: a program and its options, and the checks of what is given for an option."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

#: How the optional libraries are installed. The usual torch for Linux brings gigabytes of CUDA, unused here.
INSTALLATIONS = {
    "torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    "tensorflow": "pip install tensorflow-cpu",
    "tensorflow_datasets": "pip install tensorflow-datasets array_record",
}


class Option(NamedTuple):
    """An option of a program.

    Fields:
      name: as it is typed, ``--batch-size``; the program gets it as ``options.batch_size``.
      check: converts a word to the value, or raises `argparse.ArgumentTypeError`. See `whole` and `positive`.
      default: the value when the option is not given.
      help: what it means; the default is added.
      quick: the value under ``--quick`` when the option is not given; None: the default.
      metavar: the name of the value in the help.
      choices: the values that are possible, if these are few.
      many: whether the option takes several words, and its value is a list.
      decides: whether it decides the numbers that come out. Those that do are in the JSON as ``settings``.
      needs: the optional library of each choice that needs one, a key of `INSTALLATIONS`.
    """

    name: str
    check: Callable[[str], Any]
    default: Any
    help: str
    quick: Any = None
    metavar: str = "N"
    choices: tuple[str, ...] | None = None
    many: bool = False
    decides: bool = True
    needs: Mapping[str, str] = {}


class Program(NamedTuple):
    """A program.

    Fields:
      name: as it is typed after ./train. The module is `phlox_examples.<name with underscores>`.
      shows: one line for ``./train --list``.
      seconds: how long it takes at its default size on two cores, without the installation.
      options: its own options; all programs have ``--seed``, ``--out`` and ``--quick`` as well.
      writes: the names in ``out/NAME.json``, beside ``program`` and ``settings``.
      needs: optional libraries that it imports, keys of `INSTALLATIONS`.
      refuses: gets the options; returns what is wrong with their combination, or None.
    """

    name: str
    shows: str
    seconds: int
    options: tuple[Option, ...]
    writes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    refuses: Callable[[argparse.Namespace], str | None] = lambda options: None

    @property
    def module(self) -> str:
        """The name of the program's module in phlox_examples."""
        return self.name.replace("-", "_")


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """The check of an option that is a whole number from `least` to `most`."""

    def convert(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            up = "up" if most == math.inf else f"to {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} {up}")
        return int(text)

    return convert


def positive(text: str) -> float:
    """The check of an option that is a finite number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value
