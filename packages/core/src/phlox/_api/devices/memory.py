"""`phlox.memory`: the kinds of memory that JAX distinguishes."""

from __future__ import annotations

import enum

from ..._ir.avals import LAZY_ATTRIBUTES


class Space(enum.Enum):
    """A kind of memory, for `device_put`: that of the device, or that of its host which the device can read."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


LAZY_ATTRIBUTES["memory_space"] = lambda aval: Space.Device
