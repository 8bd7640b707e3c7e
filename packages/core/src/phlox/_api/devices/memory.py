"""`phlox.memory`: the kinds of memory that JAX distinguishes."""

from __future__ import annotations

import enum


class Space(enum.Enum):
    """A kind of memory. Here all arrays are in `Device` memory, the only kind that devices have."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"
