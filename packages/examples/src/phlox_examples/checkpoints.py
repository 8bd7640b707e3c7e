"""Checkpoints of `phlox_optim`, and beside them the settings of the training that they belong to.

DIR/settings.json    the settings: a training with other ones is refused
DIR/steps/264        the state after step 264, written by `phlox_optim.checkpoint`
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from typing import Any

from phlox_optim.checkpoint import CheckpointManager

from .errors import ProgramError
from .results import make_folder, write_json


@contextlib.contextmanager
def checkpoints(folder: str | None, settings: dict[str, Any]) -> Iterator[CheckpointManager | None]:
    """A context manager for the `CheckpointManager` of a folder; for the folder None it is None.

    Args:
      folder: the folder; created if it does not exist.
      settings: what the training depends on. The number of epochs does not belong to it: a training with more of them
        goes on where one with fewer has ended.

    Raises `ProgramError` if the folder cannot be written or belongs to another training.
    """
    if folder is None:
        yield None
        return
    make_folder(folder, "--checkpoint")
    _agree(folder, json.loads(json.dumps({name: value for name, value in settings.items() if name != "epochs"})))
    # Suppresses orbax's warning when it removes an incomplete save, which is expected.
    logging.getLogger("absl").setLevel(logging.ERROR)
    with CheckpointManager(os.path.join(folder, "steps"), max_to_keep=2) as manager:
        yield manager


def _agree(folder: str, settings: dict[str, Any]) -> None:
    path = os.path.join(folder, "settings.json")
    if not os.path.exists(path):
        write_json(path, settings)
        return
    try:
        with open(path, encoding="utf-8") as file:
            stored = dict(json.load(file))
    except (OSError, TypeError, ValueError, RecursionError):
        raise ProgramError(f"{path} cannot be read; choose another folder for --checkpoint") from None
    names = [name for name in {**settings, **stored} if settings.get(name) != stored.get(name)]
    if names:
        theirs = ", ".join(f"{name} {stored.get(name)}" for name in names)
        ours = ", ".join(f"{name} {settings.get(name)}" for name in names)
        raise ProgramError(
            f"--checkpoint {folder} belongs to a training with {theirs}, and this one has {ours}: "
            "choose the same settings or another folder"
        )
