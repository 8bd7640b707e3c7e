"""The result files of a program: a folder with its numbers and its plot."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from . import plots
from .errors import ProgramError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def make_folder(folder: str, option: str) -> None:
    """Creates `folder` and checks that it is writable, before a long computation.

    Raises `ProgramError`, which names the `option` that set the folder.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        # A write is the only reliable check for permissions, and for read-only or full disks.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ProgramError(f"{option} {folder}: files cannot be written there ({error.strerror})") from None


def write_json(path: str, contents: Any) -> None:
    """Writes `contents` to a file atomically."""
    partial = f"{path}.part"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(contents, file, indent=2)
        file.write("\n")
    os.replace(partial, path)


def write(options: argparse.Namespace, contents: dict[str, Any], figure: Figure) -> list[str]:
    """Writes the numbers and the plot of a program to ``options.out``. Returns the names of the files.

    A run with ``--quick`` has files of its own, `NAME-quick`: it must not replace what a full run has written, and its
    picture has no title that states a result, as so short a run shows none.
    """
    name = f"{options.program}-quick" if options.quick else options.program
    if options.quick:
        plots.set_title(figure, f"{options.program} (quick): a small run, to see that everything works")
    numbers, plot = (os.path.join(options.out, f"{name}.{ending}") for ending in ("json", "png"))
    write_json(numbers, {"program": options.program, **contents})
    figure.savefig(plot, dpi=150)
    return [plot, numbers]
