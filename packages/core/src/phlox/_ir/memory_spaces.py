"""Memory spaces in types: the kind of memory that holds an array, ``f32<host>[3]``. That of the device is not printed.

All operands of an operation must be in one space, in which its results are too; exceptions have `memory_in_types`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .sharding_types import refuse

if TYPE_CHECKING:
    from .avals import ShapedArray
    from .primitive import Primitive


class Space(enum.Enum):
    """A kind of memory: that of the device, or that of its host which the device can read."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__


_any = False


def note_space(space: Space) -> Space:
    """`space`, which a new type is in."""
    global _any
    _any = _any or space is not Space.Device
    return space


def any_spaces() -> bool:
    """Whether a type was ever in another space than that of the device. Without any, transformations need not compare
    those of cotangents and primals."""
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


def in_shared_space(primitive: Primitive, avals: Sequence[ShapedArray], result_types: Any) -> Any:
    """The type of the result of an operation, or the list of types, in the space of its operands.

    Operands without axes may be in any space, and as in JAX, results of such operands alone are in the memory of the
    device. Raises `ShardingTypeError` if other operands are in two spaces.
    """
    if primitive.memory_in_types or all(a.memory_space is Space.Device for a in avals):
        return result_types
    spaces = {a.memory_space for a in avals if a.ndim}
    if all(a.memory_space is Space.Any for a in avals):
        spaces = {Space.Any}
    if len(spaces) > 1:
        what = f"memory_space of all inputs passed to `{primitive.name}` must be the same"
        refuse(primitive.name, what, avals, "phlox.device_put(x, phlox.memory.Space.Device) of an operand first")
    space = spaces.pop() if spaces else Space.Device
    if isinstance(result_types, list | tuple):
        return [a.in_space(space) for a in result_types]
    return result_types.in_space(space)
