"""The folders of steps: finding complete steps, and removing steps.

Orbax writes a step under another name and renames it when it is complete, so a folder whose name is a number is a
complete step. Removal renames the folder first, so that a process that is killed while it deletes leaves no incomplete
step.

A single process writes its steps into the folder itself, where programs on jax find them. Each of several processes
writes its share into its own subfolder; a step is complete when it is in all subfolders.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat

_REMOVED = ".removed-"
_UNFINISHED = ".orbax-checkpoint-tmp"
_SHARE = re.compile(r"process-(\d+)-of-(\d+)")


def share_folder(directory: str, process: int, processes: int) -> str:
    """The folder to which this process writes its share; for a single process `directory` itself."""
    return directory if processes == 1 else os.path.join(directory, f"process-{process}-of-{processes}")


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def steps_in(folder: str) -> set[int]:
    """The numbers of the complete steps in one folder."""
    return {int(name) for name in _entries(folder) if name.isdecimal() and is_folder(os.path.join(folder, name))}


def is_folder(path: str) -> bool:
    """As `os.path.isdir`, which answers False if the disk cannot be read; this raises `OSError`."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def folders_of(directory: str) -> dict[int, list[str]]:
    """The folders that contain each complete step, by its number; those of several processes in order of processes."""
    folders_by_step = {step: [directory] for step in steps_in(directory)}
    shares: dict[int, list[int]] = {}
    for name in _entries(directory):
        match = _SHARE.fullmatch(name)
        if match:
            shares.setdefault(int(match[2]), []).append(int(match[1]))
    for count, processes in shares.items():
        if len(processes) == count:
            folders = [share_folder(directory, process, count) for process in range(count)]
            for step in set.intersection(*map(steps_in, folders)):
                folders_by_step.setdefault(step, folders)
    return folders_by_step


def remove(folder: str, step: int) -> None:
    """Removes a step: it disappears at once by a rename, then its files are deleted."""
    hidden = os.path.join(folder, f"{_REMOVED}{step}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):  # another process has removed it already
        os.rename(os.path.join(folder, str(step)), hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def sweep(folder: str) -> None:
    """Deletes the files of steps whose removal or writing was interrupted."""
    for name in _entries(folder):
        if name.startswith(_REMOVED) or _UNFINISHED in name:
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
