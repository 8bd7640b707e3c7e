"""Writes programs to files for people who look for a fault: the flags `dump_ir_to` and `dump_ir_modes`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

from .._base.config import Settings
from .._ir.jaxpr import Jaxpr

_numbers = itertools.count()


def dump(settings: Settings, name: str, jaxpr: Jaxpr, text: Callable[[], str]) -> None:
    """Writes the program `name` into the folder `dump_ir_to`, in the forms of `dump_ir_modes`.

    The files have names as in jax.
    """
    folder, modes = Path(settings.dump_ir_to), settings.dump_ir_modes.split(",")
    folder.mkdir(parents=True, exist_ok=True)
    number, name = next(_numbers), re.sub(r"[^\w.]", "_", name).rstrip("_")
    if "stablehlo" in modes:
        (folder / f"jax_ir{number:04}_jit_{name}_compile.mlir").write_text(text())
    if "jaxpr" in modes:
        (folder / f"jax_{number:06}_{name}.jaxpr.txt").write_text(f"{jaxpr}\n")
