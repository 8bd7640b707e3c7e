"""`ds`: an index of a start, which may be traced, and a static size.

An index with such an entry becomes a window of the array (read by `dynamic_slice`), and an index into that window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._base.errors import OptionError
from ..._base.pytree import register_pytree_node
from ..._ir import dtypes
from ..._operands.checks import integer, type_of
from ..._operands.indices import from_front
from ..._operands.promotion import to_dtype
from ..._ops.elementwise.logic import select
from ..._ops.structure.shape import broadcast_in_dim
from ..._ops.structure.slicing import dynamic_slice, dynamic_update_slice
from .plan import complete


class Slice:
    """`size` elements beginning at `start`, `stride` apart. Made by `ds`."""

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1):
        if stride < 0:
            raise OptionError(f"ds: stride={stride} is negative", instead="a stride of at least 0")
        self.start, self.size, self.stride = start, size, stride

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.start, self.size, self.stride

    def __repr__(self) -> str:
        return f"Slice(start={self.start}, size={self.size}, stride={self.stride})"


def _flatten(x: Slice) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    # A start that is known is static data, so that it stays known under jit. Any other start is a leaf.
    known = isinstance(x.start, int)
    return (() if known else (x.start,)), (x.start if known else None, x.size, x.stride)


def _unflatten(aux: tuple[Any, ...], children: Any) -> Slice:
    start, size, stride = aux
    return Slice(start if start is not None else next(iter(children)), size, stride)


register_pytree_node(Slice, _flatten, _unflatten)


def ds(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """An index of `size` elements from `start` on, `stride` apart, as in ``x[ds(i, 3)]``.

    ``ds(None)`` is ``:`` and ``ds(n)`` is ``:n``.

    Args:
      start: position of the first element, an integer, or an integer array of shape (), which may be traced.
      size: number of elements, a Python integer; with None, `start` is the number of elements, from index 0 on.
      stride: step between the elements, a Python integer; None means 1.

    Returns:
      A `Slice` for use in an index, or a Python slice for ``ds(None)``.

    Raises:
      OptionError: `stride` is negative, or not a Python number.
      ArgumentError: `size` is not an integer.

    >>> jnp.arange(10)[ds(jnp.array(4), 2)]
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    if stride is not None and not isinstance(stride, int):
        raise OptionError(f"ds: stride={stride!r} is no Python number")
    if size is None:
        start, size = 0, start
    return Slice(start, integer("ds", "size", size), 1 if stride is None else stride)


class Window(NamedTuple):
    """A part of an array: its start and its length along each axis, and the index to apply to it."""

    starts: tuple[Any, ...]
    sizes: tuple[int, ...]
    rest: tuple[Any, ...]

    def read(self, x: Any) -> Any:
        """The window of `x`."""
        return dynamic_slice(x, *self.starts, slice_sizes=self.sizes)

    def write(self, x: Any, part: Any, clip: bool) -> Any:
        """`x` with the window replaced. A window out of bounds is moved to the edge (`clip`), or not written."""
        changed = dynamic_update_slice(x, part, *self.starts)
        if clip:
            return changed
        inside: Any = True
        for start, size, n in zip(self.starts, self.sizes, type_of(x).shape, strict=True):
            inside = (start >= 0) & (start <= n - size) & inside
        shape = type_of(x).shape
        return select(broadcast_in_dim(inside, shape=shape, broadcast_dimensions=()), changed, x)


def _width(part: Any) -> int:
    """The number of axes that an entry of an index consumes."""
    if part is None or isinstance(part, bool | np.bool_):
        return 0
    return part.ndim if hasattr(part, "ndim") and part.dtype == np.bool_ else 1


def window(index: Any, shape: tuple[int, ...]) -> Window:
    """An index with `Slice` entries, into an array of this shape, as a window."""
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = complete(parts, sum(_width(p) for p in parts if p is not Ellipsis), shape)
    starts: list[Any] = [np.int32(0)] * len(shape)
    sizes = list(shape)
    axis = 0
    for i, part in enumerate(parts):
        if type(part) is Slice:
            # The window reaches from the first to the last element. A slice of the window then applies the stride.
            sizes[axis] = max(0, (part.size - 1) * part.stride + 1) if part.size else 0
            starts[axis] = to_dtype(from_front(part.start, shape[axis]), dtypes.int32)
            parts[i] = slice(None, None, part.stride)
        axis += _width(part)
    return Window(tuple(starts), tuple(sizes), tuple(parts))


def is_window(index: Any) -> bool:
    """Whether an index has an entry made by `ds`."""
    if type(index) is tuple:
        return any(type(part) is Slice for part in index)
    return type(index) is Slice
