"""The checkpoints of one folder: orbax's manager, with trees of phlox going in and coming out."""

from __future__ import annotations

import contextlib
import errno
import operator
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import phlox

from ..errors import CheckpointError, StepError
from . import _folder
from ._orbax import orbax
from ._pack import Names, pack
from ._stored import Contents, join
from ._unpack import check, check_like, rebuild, restored_alone


class CheckpointManager:
    """Saves trees as numbered steps in a folder, and restores them.

    A tree is any pytree of arrays, PRNG keys (old and new style), Python numbers and None: parameters, an optimizer's
    state, the step and the key together. Saving copies the arrays to the host and writes in the background; a step
    appears in the folder when it is complete, so that an interrupted save leaves the earlier ones as they were, and it
    disappears at once when it is removed. Arrays that lie on several devices are gathered.

    Of several processes (`phlox.distributed`) each calls these methods, with the same folder, and writes its own parts
    of arrays that are spread over them; any number of processes restores the result. Otherwise one process may write to
    a folder at a time.

    Args:
      directory: the folder, on a file system of this machine, or one that all processes share. It is made when the
        first step is saved.
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
        self._managers: dict[str, Any] = {}
        self._saving: int | None = None
        self._closed = False
        if os.path.exists(self.directory) and not os.path.isdir(self.directory):
            raise CheckpointError(f"{self.directory} is a file", instead="a folder", directory=self.directory)

    def _open(self, folder: str) -> Any:
        """Orbax's manager of a folder. Only made for one that exists: looking for checkpoints leaves no traces."""
        if folder not in self._managers:
            module = self._orbax
            # Old steps are removed here: orbax deletes them file by file, under their own name.
            keep_all = module.checkpoint_managers.LatestN(None)
            options = module.CheckpointManagerOptions(preservation_policy=keep_all)
            self._managers[folder] = module.CheckpointManager(
                folder, options=options, item_handlers=module.StandardCheckpointHandler()
            )
        return self._managers[folder]

    @property
    def _own(self) -> str:
        """The folder that this process writes to."""
        return _folder.share_folder(self.directory, phlox.process_index(), phlox.process_count())

    def _check_open(self) -> None:
        if self._closed:
            raise CheckpointError(f"the CheckpointManager of {self.directory} is closed", instead="a new one")

    # -- steps

    def all_steps(self) -> list[int]:
        """The numbers of the steps in the folder, in ascending order; one that is still being written counts."""
        self._check_open()
        steps = set(_folder.folders_of(self.directory))
        if self._saving is not None:
            steps.add(self._saving)
        return sorted(steps)[-self._max_to_keep if self._max_to_keep else None :]

    def latest_step(self) -> int | None:
        """The highest of `all_steps`, or None."""
        return max(self.all_steps(), default=None)

    def delete(self, step: int) -> None:
        """Removes a step. Raises `StepError` when there is no such step."""
        self.wait_until_finished()
        number = self._existing(step)
        for folder in _folder.folders_of(self.directory)[number]:
            self._remove(folder, number)

    def _remove(self, folder: str, step: int) -> None:
        _folder.remove(folder, step)
        if folder in self._managers:
            self._managers[folder].reload()

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
        self.wait_until_finished()
        packed = pack(tree, phlox.process_index() == 0)
        os.makedirs(self._own, exist_ok=True)
        _folder.sweep(self._own)
        arguments = self._orbax.args.StandardSave(packed.tree)
        with _disk_errors(self.directory):
            if not self._open(self._own).save(number, args=arguments, custom_metadata={"phlox": packed.notes}):
                raise CheckpointError(f"orbax did not save step {number} in {self.directory}", step=number)
        self._saving = number

    def wait_until_finished(self) -> None:
        """Waits until everything is written. Raises what went wrong in the background."""
        self._check_open()
        if self._saving is None:
            return
        own, self._saving = self._own, None
        with _disk_errors(self.directory):
            self._managers[own].wait_until_finished()
        if self._max_to_keep:
            for old in sorted(_folder.steps_in(own))[: -self._max_to_keep]:
                self._remove(own, old)

    # -- restoring

    def restore(self, step: int | None = None, *, like: Any = None) -> Any:
        """The tree saved as `step`, or as the latest one.

        Args:
          step: its number; None: the highest.
          like: a tree of the same structure and types. Where it has a phlox array (or a `ShapeDtypeStruct`, as from
            `phlox.eval_shape`), the result has one, on the devices of that one; where it has a NumPy array or a Python
            number, the result has such. Without it the result has dicts for all containers with names, lists for all
            others, numbers, and arrays on the default device.

        Raises:
          StepError: there is no such step.
          CheckpointError: the files of the step are damaged; the message names steps that are not.
          TreeError: leaves are missing from the checkpoint, or it has others.
          ShapeError, DtypeError: types differ. Nothing is converted.
        """
        if like is not None:
            check_like(like)
        self.wait_until_finished()
        number = self._existing(step)
        try:
            first, values = self._read(number)
        except CheckpointError:
            raise
        except Exception as error:
            raise self._damaged(number) from error
        if like is None:
            return restored_alone(first.target, first, values)
        check(like, first.leaves, f"step {number} in {self.directory}")
        return rebuild(like, values)

    def _read(self, step: int) -> tuple[Contents, dict[Names, Any]]:
        """What a step holds: described, and its leaves by name."""
        parts = []
        for folder in _folder.folders_of(self.directory)[step]:
            manager = self._open(folder)
            contents = self._contents(manager, folder, step)
            restored = manager.restore(step, args=self._orbax.args.StandardRestore(contents.target))
            parts.append((contents, contents.values(restored)))
        return parts[0][0], join(parts)

    def _contents(self, manager: Any, folder: str, step: int) -> Contents:
        if not os.path.isdir(os.path.join(folder, str(step), "default")):
            raise CheckpointError(
                f"step {step} in {self.directory} holds something else than one tree of arrays",
                instead="orbax.checkpoint, for checkpoints of several named items",
                step=step,
            )
        notes = manager.metadata(step).custom_metadata.get("phlox", {})
        return Contents(manager.item_metadata(step).tree, notes, self._orbax.metadata)

    def _damaged(self, step: int) -> CheckpointError:
        intact = []
        for other in self.all_steps():
            with contextlib.suppress(Exception):
                self._read(other)
                intact.append(other)
        return CheckpointError(
            f"step {step} in {self.directory} is damaged: its files cannot be read",
            instead=f"an intact step: {', '.join(map(str, intact))}" if intact else "",
            step=step,
            intact=intact,
        )

    # -- the end

    def close(self) -> None:
        """Waits until everything is written and lets go of the folder."""
        if not self._closed:
            try:
                self.wait_until_finished()
            finally:
                self._closed = True
                for manager in self._managers.values():
                    manager.close()

    def __enter__(self) -> CheckpointManager:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


#: what libraries below orbax say of a disk that takes no more, and the error that Python has for it
_FULL = {"No space left": errno.ENOSPC, "Disk quota": errno.EDQUOT, "File too large": errno.EFBIG}


@contextlib.contextmanager
def _disk_errors(directory: str) -> Iterator[None]:
    """Turns errors that speak of a full disk into the `OSError` that they come from."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        for words, number in _FULL.items():
            if words in str(error):
                raise OSError(number, os.strerror(number), directory) from error
        raise
