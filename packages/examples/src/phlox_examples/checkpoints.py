"""Checkpoints after each epoch, so that a program that was stopped can be continued.

DIR/settings.json    the settings of the training: checkpoints with other settings are refused
DIR/epochs/12        the state after epoch 12, written by `phlox_optim.checkpoint`
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
    """The checkpoints of one training. Use it in a ``with`` block, which waits until the last epoch is written.

    Args:
      folder: the folder of the checkpoints; created if it does not exist.
      settings: the settings of the training, as JSON values.

    Raises `ProgramError` if the folder cannot be written or belongs to another training.
    """

    def __init__(self, folder: str, settings: dict[str, Any]):
        self._folder = folder
        make_folder(folder, "--checkpoint")
        self._agree(json.loads(json.dumps(settings)))
        # Suppresses orbax's warning when it removes an incomplete save, which is expected.
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
        """The saved state and history (a row of `columns` metrics for each epoch) of the last saved epoch.

        If nothing is saved yet, returns `state` and no rows.
        """
        done = self._manager.latest_step()
        if done is None:
            return state, []
        saved = self._manager.restore(like={"state": state, "history": np.zeros((done, columns))})
        return saved["state"], saved["history"].tolist()

    def save(self, state: Any, history: list[list[float]]) -> None:
        """Saves state and history after the last epoch of `history`, in the background."""
        self._manager.save(len(history), {"state": state, "history": np.array(history)})

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self._manager.close()
