"""The checkpoints of one folder: orbax's manager, with trees of phlox going in and coming out."""

from __future__ import annotations

import operator
import os
from types import TracebackType
from typing import Any

from ..errors import CheckpointError, StepError
from ._orbax import orbax
from ._pack import pack
from ._stored import Contents
from ._unpack import check, check_like, rebuild


class CheckpointManager:
    """Saves trees as numbered steps in a folder, and restores them.

    A tree is any pytree of arrays, PRNG keys (old and new style), Python numbers and None: parameters, an optimizer's
    state, the step and the key together. Saving copies the arrays to the host and writes in the background; a step
    appears in the folder when it is complete, so that an interrupted save leaves the earlier ones as they were. Arrays
    that lie on several devices are gathered. One process may write to a folder at a time.

    Args:
      directory: the folder, on a file system of this machine. It is made when the first step is saved.
      max_to_keep: how many of the latest steps stay; None: all.

    Use it in a ``with`` block, or call `close`: a save may still be under way.

    Raises:
      MissingExtraError: orbax is not installed.
      CheckpointError: `directory` is a file; or the manager is used after `close`.

    >>> import tempfile, phlox.numpy as jnp
    >>> folder = tempfile.TemporaryDirectory()
    >>> with CheckpointManager(folder.name, max_to_keep=2) as checkpoints:
    ...     for step in range(4):
    ...         checkpoints.save(step, {"w": jnp.ones(2) * step})
    ...     checkpoints.all_steps(), checkpoints.restore(like={"w": jnp.zeros(2)})
    ([2, 3], {'w': Array([3., 3.], dtype=float32)})
    """

    def __init__(self, directory: str | os.PathLike[str], *, max_to_keep: int | None = None):
        self._orbax = orbax()
        self.directory = os.path.abspath(os.path.expanduser(directory))
        self._max_to_keep = max_to_keep
        self._manager: Any = None
        self._closed = False
        if os.path.isdir(self.directory):
            self._open()
        elif os.path.exists(self.directory):
            raise CheckpointError(f"{self.directory} is a file", instead="a folder", directory=self.directory)

    def _open(self) -> Any:
        """Orbax's manager. Only made for a folder that exists: looking for checkpoints leaves no traces."""
        if self._manager is None:
            module = self._orbax
            options = module.CheckpointManagerOptions(
                preservation_policy=module.checkpoint_managers.LatestN(self._max_to_keep)
            )
            self._manager = module.CheckpointManager(
                self.directory, options=options, item_handlers=module.StandardCheckpointHandler()
            )
        return self._manager

    def _check_open(self) -> None:
        if self._closed:
            raise CheckpointError(f"the CheckpointManager of {self.directory} is closed", instead="a new one")

    # -- steps

    def all_steps(self) -> list[int]:
        """The numbers of the steps in the folder, in ascending order; one that is still being written counts."""
        self._check_open()
        return sorted(self._manager.all_steps()) if self._manager is not None else []

    def latest_step(self) -> int | None:
        """The highest of `all_steps`, or None."""
        return max(self.all_steps(), default=None)

    def delete(self, step: int) -> None:
        """Removes a step. Raises `StepError` when there is no such step."""
        self.wait_until_finished()
        self._manager.delete(self._existing(step))

    def _existing(self, step: int | None) -> int:
        steps = self.all_steps()
        if step is None and steps:
            return steps[-1]
        if step is None or operator.index(step) not in steps:
            asked = "checkpoint" if step is None else f"step {step}"
            raise StepError(
                f"there is no {asked} in {self.directory}",
                instead="one of " + ", ".join(map(str, steps)) if steps else "",
                step=step,
                steps=steps,
                directory=self.directory,
            )
        return operator.index(step)

    # -- saving

    def save(self, step: int, tree: Any) -> None:
        """Saves `tree` as this step, in the background. Waits for the save before it, should that still be under way.

        Args:
          step: higher than every step in the folder.
          tree: see the class. Containers that only phlox knows are filed as dicts.

        Raises:
          StepError: a step as high exists.
          CheckpointError: a leaf is neither an array nor a number, or orbax cannot store its element type.
          OSError: the folder cannot be written. What goes wrong in the background is raised by the next call.
        """
        number, latest = operator.index(step), self.latest_step()
        if latest is not None and number <= latest:
            raise StepError(
                f"step {number} cannot be saved: {self.directory} has steps up to {latest}",
                instead=f"a step above {latest}, delete({latest}) first, or another folder",
                step=number,
                steps=self.all_steps(),
                directory=self.directory,
            )
        packed = pack(tree)
        os.makedirs(self.directory, exist_ok=True)
        arguments = self._orbax.args.StandardSave(packed.tree)
        if not self._open().save(number, args=arguments, custom_metadata={"phlox": packed.notes}):
            raise CheckpointError(f"orbax did not save step {number} in {self.directory}", step=number)

    def wait_until_finished(self) -> None:
        """Waits until everything is written. Raises what went wrong in the background."""
        self._check_open()
        if self._manager is not None:
            self._manager.wait_until_finished()

    # -- restoring

    def restore(self, step: int | None = None, *, like: Any) -> Any:
        """The tree saved as `step`, or as the latest one.

        Args:
          step: its number; None: the highest.
          like: a tree of the same structure and types. Where it has a phlox array (or a `ShapeDtypeStruct`, as from
            `phlox.eval_shape`), the result has one, on the devices of that one; where it has a NumPy array or a Python
            number, the result has such.

        Raises:
          StepError: there is no such step.
          TreeError: leaves are missing from the checkpoint, or it has others.
          ShapeError, DtypeError: types differ. Nothing is converted.
        """
        check_like(like)
        self.wait_until_finished()
        number = self._existing(step)
        contents = self._contents(number)
        check(like, contents.leaves, f"step {number} in {self.directory}")
        arguments = self._orbax.args.StandardRestore(contents.target)
        return rebuild(like, contents.values(self._manager.restore(number, args=arguments)))

    def _contents(self, step: int) -> Contents:
        try:
            found = self._manager.item_metadata(step)
        except (FileNotFoundError, KeyError, ValueError):
            found = None
        if found is None:
            raise CheckpointError(
                f"step {step} in {self.directory} holds something else than one tree of arrays",
                instead="orbax.checkpoint, for checkpoints of several named items",
                step=step,
            )
        notes = self._manager.metadata(step).custom_metadata.get("phlox", {})
        return Contents(found.tree, notes, self._orbax.metadata)

    # -- the end

    def close(self) -> None:
        """Waits until everything is written and lets go of the folder."""
        if not self._closed:
            try:
                self.wait_until_finished()
            finally:
                self._closed = True
                if self._manager is not None:
                    self._manager.close()

    def __enter__(self) -> CheckpointManager:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
