"""The folders of steps: which steps are complete, and how one is removed.

Orbax writes a step under another name and renames it when it is complete, so a folder whose name is a number is a whole
step. It is removed in the same way: renamed first, so that a process killed while it deletes leaves no half step.

One process writes its steps into the folder itself, where programs on jax find them. Several processes write a share
each, into a folder of their own inside of it; a step is complete when all shares are there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil

_REMOVED = ".removed-"
_UNFINISHED = ".orbax-checkpoint-tmp"
_SHARE = re.compile(r"process-(\d+)-of-(\d+)")


def share_folder(directory: str, process: int, processes: int) -> str:
    """Where this one of several processes writes its share; the folder itself for one process."""
    return directory if processes == 1 else os.path.join(directory, f"process-{process}-of-{processes}")


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def steps_in(folder: str) -> set[int]:
    """The numbers of the complete steps that lie in one folder."""
    return {int(name) for name in _entries(folder) if name.isdecimal() and os.path.isdir(os.path.join(folder, name))}


def folders_of(directory: str) -> dict[int, list[str]]:
    """The folders that hold each complete step, by its number; those of several processes in their order."""
    found = {step: [directory] for step in steps_in(directory)}
    shares: dict[int, list[int]] = {}
    for name in _entries(directory):
        match = _SHARE.fullmatch(name)
        if match:
            shares.setdefault(int(match[2]), []).append(int(match[1]))
    for count, processes in shares.items():
        folders = [share_folder(directory, process, count) for process in range(count)]
        if len(processes) == count:
            for step in set.intersection(*map(steps_in, folders)):
                found.setdefault(step, folders)
    return found


def remove(folder: str, step: int) -> None:
    """Removes a step: from this moment it is not there, though its files may take a while."""
    hidden = os.path.join(folder, f"{_REMOVED}{step}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        os.rename(os.path.join(folder, str(step)), hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def sweep(folder: str) -> None:
    """Deletes the files of steps whose removal was interrupted, or that could not be written to their end."""
    for name in _entries(folder):
        if name.startswith(_REMOVED) or _UNFINISHED in name:
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
