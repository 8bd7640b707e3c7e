"""Each epoch of a training kept in a folder, so that a program that was stopped goes on where it was.

DIR/settings.json    what the training depends on: a checkpoint of another one is refused
DIR/epochs/12        everything that epoch 13 needs, as `phlox_optim.checkpoint` stores it
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import numpy as np

from phlox_optim.checkpoint import CheckpointManager

from .errors import ProgramError
from .results import make_folder, write_json


class Checkpoints:
    """The checkpoints of one training. Use it in a ``with`` block: the last epoch may still be on its way to the disk.

    Args:
      folder: where they are; made if it is not there.
      settings: what the numbers of the training depend on, as JSON has it.

    Raises `ProgramError` when the folder cannot be written or belongs to another training.
    """

    def __init__(self, folder: str, settings: dict[str, Any]):
        self._folder = folder
        make_folder(folder, "--checkpoint")
        self._agree(json.loads(json.dumps(settings)))
        # Orbax warns when it clears away a save that was killed halfway, which is nothing to worry about.
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._manager = CheckpointManager(os.path.join(folder, "epochs"), max_to_keep=2)

    def _agree(self, settings: dict[str, Any]) -> None:
        path = os.path.join(self._folder, "settings.json")
        if not os.path.exists(path):
            write_json(path, settings)
            return
        try:
            with open(path, encoding="utf-8") as file:
                found = dict(json.load(file))
        except (OSError, ValueError):
            raise ProgramError(f"{path} cannot be read; choose another folder for --checkpoint") from None
        names = [name for name in {**settings, **found} if settings.get(name) != found.get(name)]
        if names:
            theirs = ", ".join(f"{name} {found.get(name)}" for name in names)
            ours = ", ".join(f"{name} {settings.get(name)}" for name in names)
            raise ProgramError(
                f"--checkpoint {self._folder} belongs to a training with {theirs}, and this one has {ours}: "
                "choose the same settings or another folder"
            )

    def resume(self, state: Any, columns: int) -> tuple[Any, list[list[float]]]:
        """State and history, a row of `columns` figures for each epoch, as the last epoch saved left them.

        Where nothing is saved yet: `state`, and no rows.
        """
        done = self._manager.latest_step()
        if done is None:
            return state, []
        saved = self._manager.restore(like={"state": state, "history": np.zeros((done, columns))})
        return saved["state"], saved["history"].tolist()

    def save(self, state: Any, history: list[list[float]]) -> None:
        """Saves what the last epoch of `history` left, in the background."""
        self._manager.save(len(history), {"state": state, "history": np.array(history)})

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self._manager.close()
