"""Memory spaces in types: the kind of memory that holds an array, ``f32<host>[3]``. That of the device is not printed.

All operands of an operation must be in one space, in which its results are too; exceptions have `memory_in_types`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .sharding_types import refuse

if TYPE_CHECKING:
    from .avals import ShapedArray


class Space(enum.Enum):
    """A kind of memory: that of the device, or that of its host which the device can read."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


_any = False


def note_space() -> None:
    """Notes that there is a type in another space than `Space.Device`."""
    global _any
    _any = True


def any_spaces() -> bool:
    """Whether there ever was such a type. Without any, transformations need not compare those of cotangents."""
    return _any


def space_text(aval: ShapedArray) -> str:
    """``<host>``, as JAX prints it; nothing for the memory of the device."""
    return "" if aval.memory_space is Space.Device else f"<{aval.memory_space.name.lower()}>"


def space_of(kind: str | None) -> Space:
    """The space of a kind of memory such as "pinned_host"; None is the default kind of the device."""
    return Space.Host if kind == "pinned_host" else Space.Device


def kind_of(space: Space) -> str | None:
    """The kind of memory of a space; None is the default kind of the device."""
    return "pinned_host" if space is Space.Host else None


def shared_space(name: str, avals: Sequence[ShapedArray]) -> Space:
    """The space of the results of the operation `name`: that of the operands. Those without axes may be in any, and as
    in JAX, results of such operands alone are in the memory of the device.

    Raises `ShardingTypeError` if operands are in two spaces.
    """
    if all(a.memory_space is Space.Any for a in avals):
        return Space.Any
    spaces = {a.memory_space for a in avals if a.ndim}
    if len(spaces) > 1:
        what = f"memory_space of all inputs passed to `{name}` must be the same"
        refuse(name, what, avals, "phlox.device_put(x, phlox.memory.Space.Device) of an operand first")
    return spaces.pop() if spaces else Space.Device
