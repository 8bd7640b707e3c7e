"""The disk cache of compiled programs, which processes share. Loading takes about a millisecond, compiling much longer.

An entry is machine code: anyone who can write to the folder can run code in this process. So the folder must be
private. It is created with mode 0700, and refused if it belongs to another user or if others may write to it. Entries
are written to a temporary file, then renamed. Each begins with a checksum of its key and content, which detects damage,
not attacks. Now and then a write checks the size of the folder, and removes the least recently used entries above the
limit. On any failure the program is compiled as without a cache; the user is warned once. A folder that cannot be
written to is still read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import NamedTuple

from .._base import config
from .._base.source import warn

_MAGIC = b"phlox-executable-2\n"
_SUFFIX = ".xla"
_WITHOUT_ENTRY = "what it lacks is compiled in each process"
#: So many writes check the size of the folder, while as much is written as it may hold.
_CHECKS = 32

_state = {"warned": False}
_usable: dict[str, bool] = {}


class CacheInfo(NamedTuple):
    """Path of the cache folder, number of entries, and their size in bytes."""

    directory: str
    entries: int
    bytes: int


def directory() -> str:
    """The cache folder: the flag `compilation_cache_dir`, or ``phlox/programs`` in the user's cache folder."""
    folder = config.current().compilation_cache_dir
    if folder:
        # Absolute, as the program may change its working directory.
        return os.path.abspath(os.path.expanduser(folder))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "phlox", "programs")


def load(key: str) -> bytes | None:
    """The entry of this key; None if there is none or if it is damaged."""
    folder = usable_folder()
    if folder is None:
        return None
    try:
        data = _read(os.path.join(folder, key + _SUFFIX))
    except FileNotFoundError:
        return None
    # Not readable as a file, as after damage of the disk: treated like content that does not match its checksum.
    except OSError:
        data = b""
    start = len(_MAGIC) + 32
    payload = data[start:]
    # Entries of an older format begin differently, and are discarded here too.
    if data[:start] != _head(key, payload):
        discard(key)
        return None
    return payload


def _read(path: str) -> bytes:
    """The content of a regular file. Raises `OSError` for anything else; does not block on a named pipe."""
    flags = [getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")]
    handle = os.open(path, os.O_RDONLY | sum(flags))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        with contextlib.suppress(OSError):
            # Set by hand, as many file systems do not note when a file is read.
            os.utime(handle)  # marks the entry as used, for `_evict`
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def _head(key: str, payload: bytes) -> bytes:
    """The first bytes of an entry: the format's name and a checksum of key and content."""
    import hashlib  # here, to keep `import phlox` fast

    digest = hashlib.sha256(f"{key}\n".encode())
    digest.update(payload)
    return _MAGIC + digest.digest()


def store(key: str, payload: bytes) -> None:
    """Writes an entry. The file appears by renaming, so that other processes never see a part of it."""
    folder = usable_folder()
    if folder is None:
        return
    head = _head(key, payload)
    # In the same folder: renaming is atomic only within one file system. `tempfile` would take 3 ms to import.
    temporary = os.path.join(folder, f"{key}.{os.urandom(8).hex()}.part")
    try:
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(head)
            file.write(payload)
        with contextlib.suppress(FileNotFoundError):  # another process has cleared the cache
            os.replace(temporary, os.path.join(folder, key + _SUFFIX))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        _warn(f"cannot write to the cache of compiled programs in {folder} ({error.strerror})", _WITHOUT_ENTRY)
        return
    limit = config.current().compilation_cache_max_size
    if _write_checks_size(head, len(head) + len(payload), limit):
        _evict(folder, limit)


def _write_checks_size(head: bytes, size: int, limit: int) -> bool:
    """Whether the write of an entry of so many bytes checks the size of the folder.

    A full folder has some 50,000 entries, and reading their sizes takes half a second. So chance chooses few writes. A
    count of writes would not do, as most processes compile few programs. The checksum serves as random number, since
    Python's generator is the user's.
    """
    return int.from_bytes(head[-8:], "big") * limit < _CHECKS * size << 64


def discard(key: str) -> None:
    """Removes an entry that turned out to be unusable."""
    folder = usable_folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, key + _SUFFIX))


def info() -> CacheInfo:
    """The folder of the cache, and the number and size of its entries."""
    entries = _entries(directory())
    return CacheInfo(directory(), len(entries), sum(size for _, size, _ in entries))


def clear() -> None:
    """Removes all entries."""
    for path, _, _ in _entries(directory()):
        with contextlib.suppress(OSError):
            os.unlink(path)


def forget_folders() -> None:
    """Forgets which folders are usable, so that they are looked at again."""
    _usable.clear()
    _state["warned"] = False


def usable_folder() -> str | None:
    """The cache folder, created if it does not exist; None if the cache is off or the folder is not private."""
    if not config.current().enable_compilation_cache:
        return None
    folder = directory()
    # The folder is looked at once per process, not for each program.
    if folder not in _usable:
        _usable[folder] = _prepare(folder)
    return folder if _usable[folder] else None


def _prepare(folder: str) -> bool:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError as error:
        _warn(f"cannot make the folder {folder} for compiled programs ({error.strerror})")
        return False
    # Windows has neither user ids nor these bits; its home folders are private.
    if hasattr(os, "getuid"):
        if status.st_uid != os.getuid():
            _warn(f"the folder {folder} belongs to another user; compiled programs from it are not trusted")
            return False
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            _warn(f"others may write to the folder {folder}; compiled programs from it are not trusted")
            return False
    return True


def _warn(message: str, consequence: str = "going on without a cache") -> None:
    if not _state["warned"]:
        _state["warned"] = True
        warn(
            f"{message}; {consequence}. PHLOX_COMPILATION_CACHE_DIR names another folder, "
            "PHLOX_ENABLE_COMPILATION_CACHE=0 turns it off",
            RuntimeWarning,
        )


def _entries(folder: str) -> list[tuple[str, int, float]]:
    entries = []
    with contextlib.suppress(OSError), os.scandir(folder) as listing:
        for item in listing:
            # Parts are what killed processes leave behind. They count, and are removed as the oldest files.
            if item.name.endswith((_SUFFIX, ".part")):
                with contextlib.suppress(OSError):
                    status = item.stat(follow_symlinks=False)
                    entries.append((item.path, status.st_size, status.st_mtime))
    return entries


def _evict(folder: str, limit: int) -> None:
    entries = _entries(folder) if limit != -1 else []
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    # By time of last use, see `_read`. Another process may remove the same file, which is no error.
    for path, size, _ in sorted(entries, key=lambda entry: entry[2]):
        # What is written before the next checks has room too.
        if total <= limit - limit // 16:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
