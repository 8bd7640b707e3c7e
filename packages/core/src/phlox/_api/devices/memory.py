"""`phlox.memory`: the kinds of memory that JAX distinguishes."""

from __future__ import annotations

import enum


class Space(enum.Enum):
    """A kind of memory. Devices of the platforms that phlox runs on have one: arrays lie in `Device`."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"
