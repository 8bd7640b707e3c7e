"""What a program leaves behind: a folder with its numbers and its plot."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from .errors import ProgramError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def make_folder(folder: str, option: str) -> None:
    """Makes sure that `folder` is there and can be written, before a program works for it.

    Raises `ProgramError`, which says that `option` named the folder.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        # Permissions, read-only disks, full ones: trying is the only way to know.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ProgramError(f"{option} {folder}: files cannot be written there ({error.strerror})") from None


def write_json(path: str, contents: Any) -> None:
    """Writes `contents` to a file that is there as a whole or not at all."""
    partial = f"{path}.part"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(contents, file, indent=2)
        file.write("\n")
    os.replace(partial, path)


def write(folder: str, program: str, contents: dict[str, Any], figure: Figure) -> list[str]:
    """Writes the numbers and the plot of a program. Returns the names of the files."""
    numbers, plot = (os.path.join(folder, f"{program}.{ending}") for ending in ("json", "png"))
    write_json(numbers, {"program": program, **contents})
    figure.savefig(plot, dpi=150)
    return [plot, numbers]
