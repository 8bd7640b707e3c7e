"""How the axes of the arrays of a gather or scatter correspond, and what indices out of bounds mean."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from ..._base.errors import OptionError
from ..._ir.avals import ShapedArray

Ints = tuple[int, ...]


class GatherScatterMode(enum.Enum):
    """How a gather or scatter treats indices that are out of bounds.

    CLIP clamps them to the nearest valid index; FILL_OR_DROP reads a fill value and drops writes; PROMISE_IN_BOUNDS
    assumes that there are none; ONE_HOT reads zeros and drops writes, like a product with rows of `phlox.nn.one_hot`.

    >>> jnp.arange(3).at[7].get(mode=GatherScatterMode.CLIP)
    Array(2, dtype=int32)
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode with this name, in any of the spellings that users may pass; None means 'fill'."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _WORDS:
            words = ", ".join(repr(word) for word in _WORDS if word)
            raise OptionError(f"Unknown gather mode {mode!r}", instead=f"one of {words}")
        return _WORDS[mode]

    def __str__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_WORDS = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and result of a gather correspond; see StableHLO's gather.

    >>> rows = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> phlox.lax.gather(jnp.eye(3), jnp.array([[2], [0]]), rows, slice_sizes=(1, 3))
    Array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """

    offset_dims: Ints
    collapsed_slice_dims: Ints
    start_index_map: Ints
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of operand, indices and updates of a scatter correspond; see StableHLO's scatter.

    The fields have the order and meaning of those of the gather that reads what the scatter writes.

    >>> rows = ScatterDimensionNumbers((1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> phlox.lax.scatter_add(jnp.zeros((2, 2)), jnp.array([[1]]), jnp.ones((1, 2)), rows)
    Array([[0., 0.],
           [1., 1.]], dtype=float32)
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    operand_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


def window_axes(operand: ShapedArray, numbers: ScatterDimensionNumbers) -> list[int]:
    """The axes of the operand that correspond to the `update_window_dims` of the updates."""
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    return [i for i in range(operand.ndim) if i not in dropped]


def window_sizes(operand: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers) -> Ints:
    """Lengths of the update windows along each axis of the operand."""
    windows = dict(zip(window_axes(operand, numbers), numbers.update_window_dims, strict=True))
    return tuple(updates.shape[windows[i]] if i in windows else 1 for i in range(operand.ndim))
