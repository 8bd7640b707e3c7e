"""jaxlib's profiler. It is imported at first use, and nothing of it runs while no trace is recorded."""

from __future__ import annotations

from jaxlib import _profile_data as data, _profiler as profiler

from .devices import client

__all__ = ["heap_profile", "profiler", "start_clients"]

ProfileData = data.ProfileData
ProfileEvent = data.ProfileEvent
ProfilePlane = data.ProfilePlane


def start_clients() -> str:
    """Starts the default client, whose devices a recording can only see if they are there, and returns its version."""
    return str(client().platform_version)


def heap_profile(platform: str | None = None) -> bytes:
    """The memory of the arrays and programs of a platform by where they were made, as a protocol buffer of pprof."""
    profile: bytes = client(platform).heap_profile()
    return profile
