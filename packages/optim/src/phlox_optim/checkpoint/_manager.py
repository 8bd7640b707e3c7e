"""`CheckpointManager`: orbax's manager for one folder of checkpoints, for trees of phlox."""

from __future__ import annotations

import contextlib
import errno
import operator
import os
import zlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

import phlox
from phlox.errors import PhloxError
from phlox.experimental import multihost_utils

from ..errors import CheckpointError, StepError
from . import _folder
from ._orbax import orbax
from ._pack import Names, pack, unreadable
from ._stored import Contents, join
from ._unpack import check, check_like, rebuild, restored_alone

#: sends all processes whether an operation succeeded here, and returns the answers of all processes
_Agreed = Callable[[bool], list[bool]]


class CheckpointManager:
    """Saves trees as numbered steps in a folder, and restores them.

    A tree is any pytree of arrays, PRNG keys (old and new style), Python numbers, text and None: parameters, an
    optimizer's state, the step and the key together. Saving copies the arrays to the host and writes in the
    background. A step appears in the folder when it is complete, so an interrupted save does not affect earlier steps,
    and it disappears at once when it is removed. Arrays that are sharded over several devices are gathered.

    Of several processes (`phlox.distributed`) all call these methods, with the same folder, and wait for each other.
    Each writes its own parts of arrays that are spread over them, the first everything else; any number of processes
    restores the result. Otherwise one process may write to a folder at a time.

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
        self._trouble: Exception | None = None
        self._closed = False
        if os.path.isfile(self.directory):
            raise CheckpointError(f"{self.directory} is a file", instead="a folder", directory=self.directory)

    def _open(self, folder: str) -> Any:
        """Orbax's manager of a folder. Only for folders that exist, so that reading does not create one."""
        if folder not in self._managers:
            module = self._orbax
            # Old steps are removed by this class: orbax deletes files one by one, and may leave an incomplete step.
            keep_all = module.checkpoint_managers.LatestN(None)
            # If a save fails, threads that wait for its folders would hold the process at its exit for five minutes.
            waiting = module.AsyncOptions(create_directories_asynchronously=False)
            options = module.CheckpointManagerOptions(preservation_policy=keep_all, async_options=waiting)
            self._managers[folder] = module.CheckpointManager(
                folder, options=options, item_handlers=module.StandardCheckpointHandler()
            )
        return self._managers[folder]

    @property
    def _own(self) -> str:
        """The folder to which this process writes."""
        return _folder.share_folder(self.directory, phlox.process_index(), phlox.process_count())

    def _check_open(self) -> None:
        if self._closed:
            raise CheckpointError(f"the CheckpointManager of {self.directory} is closed", instead="a new one")

    # -- steps

    def all_steps(self) -> list[int]:
        """The numbers of the complete steps in the folder, in ascending order. Waits for a running save."""
        self.wait_until_finished()
        return sorted(_folder.folders_of(self.directory))

    def latest_step(self) -> int | None:
        """The highest of `all_steps`, or None."""
        return max(self.all_steps(), default=None)

    def delete(self, step: int) -> None:
        """Removes a step. Raises `StepError` when there is no such step."""
        number = self._existing(step)
        _agreed(True)  # all processes have seen the step before one removes it
        self._remove(lambda steps: [number], _agreed)

    def _remove(self, which: Callable[[list[int]], list[int]], agreed: _Agreed) -> None:
        """Removes the complete steps that `which` selects. Only the first process does, so that all agree on them."""
        if phlox.process_index() == 0:
            folders = _folder.folders_of(self.directory)
            for step in which(sorted(folders)):
                for folder in folders[step]:
                    _folder.remove(folder, step)
        agreed(True)
        for manager in self._managers.values():
            manager.reload()

    def _existing(self, step: int | None) -> int:
        steps = self.all_steps()
        if step is None and steps:
            return steps[-1]
        if step is None or operator.index(step) not in steps:
            request = "checkpoint" if step is None else f"step {step}"
            raise StepError(
                f"there is no {request} in {self.directory}",
                instead="one of " + ", ".join(map(str, steps)) if steps else "",
                step=step,
                steps=steps,
                directory=self.directory,
            )
        return operator.index(step)

    # -- saving

    def save(self, step: int, tree: Any) -> None:
        """Saves `tree` as this step, in the background. Waits for the previous save if it is still running.

        Args:
          step: higher than every step in the folder.
          tree: see the class. Containers that only phlox knows are saved as dicts.

        Raises:
          StepError: a step as high exists.
          CheckpointError: a leaf is neither an array nor a number nor text, or orbax cannot store its element type; or
            another process failed.
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
        spread = _spread(tree, number)
        own = self._own
        trouble: Exception | None = None
        try:
            packed = pack(tree, phlox.process_index() == 0, spread)
            os.makedirs(own, exist_ok=True)
            _folder.sweep(own)
            for incomplete in _folder.steps_in(own) - set(_folder.folders_of(self.directory)):
                _folder.remove(own, incomplete)  # other processes were killed before they had written their shares
                self._open(own).reload()
        except Exception as error:
            trouble = error
        # After all processes have removed their incomplete shares, shares of two runs cannot form one step.
        self._check_all(trouble, number, _agreed)
        arguments = self._orbax.args.StandardSave(packed.tree)
        try:
            with _disk_errors(self.directory, number):
                if not self._open(own).save(number, args=arguments, custom_metadata={"phlox": packed.notes}):
                    raise CheckpointError(f"orbax did not save step {number} in {self.directory}", step=number)
        except Exception as error:
            _folder.sweep(own)  # incomplete files may fill the disk
            if phlox.process_count() == 1:
                raise
            self._trouble = error  # raised by the next call, in which all processes exchange their results
        self._saving = number

    def wait_until_finished(self) -> None:
        """Waits until all processes have written everything. Raises errors of the background save."""
        self._check_open()
        self._finish(_agreed)

    def _finish(self, agreed: _Agreed) -> None:
        """Waits for a running save, checks it, and removes old steps."""
        if self._saving is None:
            return
        own, step, trouble = self._own, self._saving, self._trouble
        self._saving = self._trouble = None
        try:
            if trouble is None:
                with _disk_errors(self.directory, step):
                    self._managers[own].wait_until_finished()
                self._check_saved(own, step)
        except Exception as error:
            trouble = error
        if trouble is not None:
            _folder.sweep(own)  # incomplete files may fill the disk
            with contextlib.suppress(Exception):  # orbax raises the same error again
                self._managers.pop(own).close()
        self._check_all(trouble, step, agreed)
        if self._max_to_keep:
            keep = self._max_to_keep
            self._remove(lambda steps: steps[:-keep], agreed)

    def _check_saved(self, folder: str, step: int) -> None:
        """Removes the step and raises `OSError` if a part was not written: orbax only logs some errors.

        The notes and the types of all arrays are read, which takes milliseconds, not the arrays.
        """
        with contextlib.suppress(Exception):  # reading may fail too, so it is tried twice
            if self._has_notes(folder, step):
                return
        self._forget()
        try:
            if self._has_notes(folder, step):
                return
            problem = "its notes are missing"
        except Exception as error:
            problem = str(error)
        _folder.remove(folder, step)
        self._forget()
        raise OSError(errno.EIO, f"step {step} was not written completely, and is removed: {problem}", self.directory)

    def _has_notes(self, folder: str, step: int) -> bool:
        """Whether the notes of a step can be read. Raises if the type of an array cannot."""
        manager = self._open(folder)
        self._contents(manager, folder, step)
        return "phlox" in (manager.metadata(step).custom_metadata or {})

    def _check_all(self, trouble: Exception | None, step: int, agreed: _Agreed) -> None:
        """Raises the error of this process, or `CheckpointError` if there was one in another process."""
        went_well = agreed(trouble is None)
        if trouble is not None:
            raise trouble
        if not all(went_well):
            failed = ", ".join(str(process) for process, well in enumerate(went_well) if not well)
            raise CheckpointError(
                f"step {step} was not saved in {self.directory}: process {failed} could not write its share", step=step
            )

    # -- restoring

    def restore(self, step: int | None = None, *, like: Any = None) -> Any:
        """The tree saved as `step`, or as the latest one.

        Args:
          step: its number; None: the highest.
          like: a tree of the same structure and types. Where it has a phlox array (or a `ShapeDtypeStruct`, as from
            `phlox.eval_shape`), the result has one, on the devices of that one; where it has a NumPy array, a Python
            number or text, the result has such. Without it the result has dicts for all containers with names, lists
            for all others, numbers, text, and arrays on the default device.

        Raises:
          StepError: there is no such step.
          CheckpointError: the files of the step are damaged; the message names steps that are not.
          TreeError: leaves are missing from the checkpoint, or it has others.
          ShapeError, DtypeError: types differ. Nothing is converted.
        """
        if like is not None:
            check_like(like)
        number = self._existing(step)
        try:
            first, values, alone = self._restored(number, like is None)
        except (CheckpointError, MemoryError, PermissionError):
            raise
        except Exception as error:
            try:  # orbax takes a file that could not be opened once for a missing one, and remembers that
                self._forget()
                first, values, alone = self._restored(number, like is None)
            except Exception:
                raise self._damaged(number) from error
        if like is None:
            return alone
        check(like, first.leaves, f"step {number} in {self.directory}")
        return rebuild(like, values)

    def _restored(self, step: int, alone: bool) -> tuple[Contents, dict[Names, Any], Any]:
        """The contents of a step, its leaves by name, and if `alone` the tree that they make without another tree."""
        first, values = self._read(step)
        return first, values, restored_alone(first.target, first, values) if alone else None

    def _forget(self) -> None:
        """Closes orbax's managers, which hold what they have read. `_open` makes new ones."""
        for folder in list(self._managers):
            self._managers.pop(folder).close()

    def _read(self, step: int) -> tuple[Contents, dict[Names, Any]]:
        """The contents of a step, and its leaves by name."""
        parts = []
        for folder in _folder.folders_of(self.directory)[step]:
            manager = self._open(folder)
            contents = self._contents(manager, folder, step)
            restored = manager.restore(step, args=self._orbax.args.StandardRestore(contents.target))
            parts.append((contents, contents.values(restored)))
        return parts[0][0], join(parts)

    def _contents(self, manager: Any, folder: str, step: int) -> Contents:
        if not _folder.is_folder(os.path.join(folder, str(step), "default")):
            raise CheckpointError(
                f"step {step} in {self.directory} holds something else than one tree of arrays",
                instead="orbax.checkpoint, for checkpoints of several named items",
                step=step,
            )
        written = manager.metadata(step)
        # Orbax treats an unreadable file like a missing one, which very old checkpoints lack.
        if written.init_timestamp_nsecs is None and os.path.exists(os.path.join(folder, str(step), _DESCRIPTION)):
            raise ValueError(f"the description of step {step} in {folder} cannot be read")
        notes = (written.custom_metadata or {}).get("phlox", {})
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

    # -- closing

    def close(self) -> None:
        """Waits until everything is written, and closes orbax's managers."""
        self._close(_agreed)

    def _close(self, agreed: _Agreed) -> None:
        if not self._closed:
            try:
                self._finish(agreed)
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
        # During an exception other processes may not reach this point, so do not wait for them.
        self._close(_agreed if kind is None else lambda well: [well])


def _spread(tree: Any, step: int) -> set[Names]:
    """The leaves that the first process cannot read. Raises `CheckpointError` when processes have different trees."""
    unreadable_leaves = unreadable(tree)
    if phlox.process_count() == 1:
        return set()
    others = multihost_utils.process_allgather(np.uint32(zlib.crc32(repr((step, list(unreadable_leaves))).encode())))
    if len(set(others.tolist())) > 1:
        raise CheckpointError(f"step {step}: the processes save different steps or trees", step=step)
    first = multihost_utils.broadcast_one_to_all(np.array(list(unreadable_leaves.values()), bool))
    return {names for names, spread in zip(unreadable_leaves, first, strict=True) if spread}


def _agreed(well: bool) -> list[bool]:
    """Waits for all processes, and returns the answer of each."""
    return multihost_utils.process_allgather(np.bool_(well)).tolist()


#: the file that orbax writes about a step as a whole
_DESCRIPTION = "_CHECKPOINT_METADATA"

#: messages of libraries under orbax about full disks, and Python's error number for each
_FULL = {"No space left": errno.ENOSPC, "Disk quota": errno.EDQUOT, "File too large": errno.EFBIG}


@contextlib.contextmanager
def _disk_errors(directory: str, step: int) -> Iterator[None]:
    """Converts errors with such a message to `OSError`, and orbax's other errors to `CheckpointError`."""
    try:
        yield
    except (OSError, PhloxError, MemoryError):
        raise
    except Exception as error:
        for words, number in _FULL.items():
            if words in str(error):
                raise OSError(number, os.strerror(number), directory) from error
        what = f"step {step} was not saved in {directory}: {type(error).__name__}: {error}"
        raise CheckpointError(what, step=step, directory=directory) from error
