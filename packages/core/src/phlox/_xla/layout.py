"""In which order the elements of an array lie in memory, as compiled programs and foreign functions state it."""

from __future__ import annotations

import dataclasses
from typing import Any

from .sharding import Sharding


@dataclasses.dataclass(frozen=True)
class Layout:
    """The axes of an array from the one that varies slowest in memory to the fastest.

    ``Layout((0, 1))`` is row-major (NumPy's C order), ``Layout((1, 0))`` column-major. `tiling` and
    `sub_byte_element_size_in_bits` are what the compiler reports for accelerators and for packed elements.
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    @staticmethod
    def of(compiled: Any) -> Layout:
        """The layout that the compiler reports for an argument or result."""
        tiling = tuple(tuple(tile) for tile in compiled.tiling() or ())
        return Layout(tuple(compiled.minor_to_major())[::-1], tiling, compiled.element_size_in_bits())


@dataclasses.dataclass(frozen=True)
class Format:
    """How an array lies: its layout on each device, and its sharding over devices. None leaves the choice open."""

    layout: Layout | None = None
    sharding: Sharding | None = None
