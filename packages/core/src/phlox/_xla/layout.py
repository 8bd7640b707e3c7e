"""Layouts: the order of an array's elements in memory, for the API of compiled programs and of foreign functions."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from .._base.errors import ArgumentError, OptionError, ShapeError
from .sharding import Sharding


class AutoLayout:
    """The class of `Layout.AUTO`, of which there is one."""

    def __repr__(self) -> str:
        return "AutoLayout"

    # Pickled as a global name, so that it is the same object afterwards.
    def __reduce__(self) -> str:
        return "AUTO"


AUTO = AutoLayout()


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of an array's axes in memory, from the axis that varies slowest to the fastest.

    ``Layout((0, 1))`` is row-major (NumPy's C order), ``Layout((1, 0))`` column-major; `Layout.AUTO` leaves the choice
    to the compiler. `tiling` and `sub_byte_element_size_in_bits` are what the compiler reports for accelerators and for
    packed elements.
    """

    AUTO: ClassVar[AutoLayout] = AUTO

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    @staticmethod
    def of(compiled: Any) -> Layout:
        """The layout that the compiler reports for an argument or result."""
        tiling = tuple(tuple(tile) for tile in compiled.tiling() or ())
        # XLA names the fastest axis first, phlox and JAX the slowest.
        return Layout(tuple(compiled.minor_to_major())[::-1], tiling, compiled.element_size_in_bits())


@dataclasses.dataclass(frozen=True)
class Format:
    """The layout of an array on each device, and its sharding over devices. None leaves the choice to the compiler."""

    layout: Layout | AutoLayout | None = None
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.layout, Layout | AutoLayout | None):
            raise ArgumentError(f"Format: {self.layout!r} is no layout", instead="Layout((0, 1)), or Layout.AUTO")
        if not isinstance(self.sharding, Sharding | None):
            raise ArgumentError(f"Format: {self.sharding!r} is no sharding", instead="x.sharding")
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise OptionError(
                f"Format: a layout without a sharding: {self.layout}",
                instead="Format(layout, x.sharding), or Format() for a layout that the compiler chooses",
            )

    def sharding_in_order(self, function: str, ndim: int, *, is_for_compiler: bool = False) -> Sharding | None:
        """The sharding of an array of `ndim` axes. Raises if the layout is not that of all arrays here.

        Arrays of phlox have their axes in order, so another order would be a promise that no operation keeps. With
        `is_for_compiler` the layout may be `Layout.AUTO`.
        """
        if isinstance(self.layout, AutoLayout):
            if is_for_compiler:
                return self.sharding
            raise ArgumentError(
                f"{function}: sharding and layout should be concrete, got {self}",
                instead="a sharding; Layout.AUTO is for in_shardings and out_shardings of phlox.jit",
            )
        order = None if self.layout is None else tuple(self.layout.major_to_minor)
        if order is not None and len(order) != ndim:
            raise ShapeError(
                f"{function}: the layout {self.layout} has {len(order)} axes, the array {ndim}",
                instead=f"Layout({tuple(range(ndim))})",
            )
        if order is not None and order != tuple(range(ndim)):
            raise OptionError(
                f"{function}: arrays have their axes in order, not as in {self.layout}",
                instead=f"Layout({tuple(range(ndim))}), or the transposed array",
            )
        return self.sharding
