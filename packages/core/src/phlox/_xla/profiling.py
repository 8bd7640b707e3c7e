"""jaxlib's profiler. It is imported at first use, and nothing of it runs while no trace is recorded."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jaxlib import _profile_data as data, _profiler as profiler

from .devices import client

__all__ = ["heap_profile", "profiler", "start_clients", "write"]

ProfileData = data.ProfileData
ProfileEvent = data.ProfileEvent
ProfileLine = data.ProfileLine
ProfilePlane = data.ProfilePlane


def start_clients() -> str:
    """Starts the default client, whose devices a recording can only see if they are there, and returns its version."""
    return str(client().platform_version)


def heap_profile(platform: str | None = None) -> bytes:
    """The memory of the arrays and programs of a platform by where they were made, as a protocol buffer of pprof."""
    profile: bytes = client(platform).heap_profile()
    return profile


def write(session: Any, content: bytes, log_dir: str, session_id: str) -> Path:
    """Writes a recording as `ProfilerSession.stop` returns it, and returns its folder.

    Args:
      session: the `ProfilerSession`.
      content: the serialized recording.
      log_dir: the folder for recordings.
      session_id: the name of the folder of this recording; empty for the time of day.
    """
    recordings = Path(log_dir).absolute() / "plugins" / "profile"
    recordings.mkdir(parents=True, exist_ok=True)
    # jaxlib 0.10 cannot write under a name: it writes elsewhere, into a folder named after the time of day.
    # In `log_dir`, so that the files can be renamed into their place.
    with TemporaryDirectory(dir=log_dir) as temporary:
        session.export(content, temporary)
        (written,) = (Path(temporary) / "plugins" / "profile").iterdir()
        folder = recordings / (session_id or written.name)
        folder.mkdir(exist_ok=True)
        for file in written.iterdir():
            file.replace(folder / file.name)
    return folder
