"""``r_`` and ``c_``, which concatenate what they are indexed with; unravel_index and mask_indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._base.errors import ArgumentError, DtypeError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import check, check_one, type_of
from ...typing import ArrayLike, Shape
from .._creation.fill import ones
from .._creation.from_data import asarray
from .._creation.grids import progression
from .._elementwise.choose import where
from .._elementwise.comparisons import greater, less
from .._elementwise.integers import divmod
from .._manipulation.joining import concatenate
from .._manipulation.shapes import expand_dims, moveaxis
from .places import nonzero


class _Join:
    """The class of ``r_`` and ``c_``. `front`: the position of an operand's axes among the new ones; -1: after them."""

    def __init__(self, name: str, axis: int, rank: int, front: int):
        self.name, self.axis, self.rank, self.front = name, axis, rank, front

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, rank, front = self.axis, self.rank, self.front
        new: int | None = None  # the axis that the directives 'r' and 'c' add to a vector
        if items and isinstance(items[0], str):
            words = items.pop(0)
            if words in ("r", "c"):
                new = 0 if words == "r" else 1
            else:
                try:
                    numbers = [int(word) for word in words.split(",")]
                except ValueError:
                    raise ArgumentError(
                        f"could not understand directive {words!r}", instead="'axis,rank,place', 'r' or 'c'"
                    ) from None
                axis, rank, front = (*numbers[:3], *(axis, rank, front)[len(numbers) :])
        if any(isinstance(item, str) for item in items):
            raise ArgumentError("string directive must be placed at the beginning")
        joined = concatenate([self._operand(item, rank, front) for item in items], axis)
        return joined if new is None or type_of(joined).ndim != 1 else expand_dims(joined, new)

    def _operand(self, item: Any, rank: int, front: int) -> Any:
        x = progression(self.name, item) if isinstance(item, slice) else asarray(item)
        count = type_of(x).ndim
        if count == 0:
            x, count = expand_dims(x, 0), 1
        new = rank - count
        if new <= 0:
            return x
        x = expand_dims(x, tuple(range(new)))
        at = front if front >= 0 else front + new + 1
        return moveaxis(x, tuple(range(new, rank)), tuple(range(at, at + count)))


r_ = _Join("r_", 0, 1, -1)
c_ = _Join("c_", -1, 2, 0)
s_, index_exp = np.s_, np.index_exp


def unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Any, ...]:
    """Flat indices into an array of `shape`, converted to indices along each axis (as ``numpy.unravel_index``).

    Args:
      indices: integer array of any shape, or a number: indices into the flattened array. Negative ones count from the
        end; those out of bounds are moved to the nearest end.
      shape: shape of the array: a sequence of integers, or one integer; they may be traced.

    Returns:
      A tuple of index arrays of the shape of `indices`, one for each axis.

    Raises:
      ShapeError: a length is not a scalar.
      DtypeError: a length is not an integer.

    >>> jnp.unravel_index(jnp.array([5, -1]), (2, 3))
    (Array([1, 1], dtype=int32), Array([2, 2], dtype=int32))
    """
    flat = check_one("unravel_index", indices)
    axis_lengths: Any = shape
    try:
        each = list(axis_lengths)
    except TypeError:  # one number, not a sequence
        each = [axis_lengths]
    lengths = check("unravel_index", *each)
    for length in lengths:
        if type_of(length).shape:
            raise ShapeError("unravel_index: shape should be a scalar or 1D sequence", shapes=[type_of(length).shape])
        if dtypes.kind(type_of(length).dtype) not in "iu":
            raise DtypeError(f"unravel_index: shape holds {type_of(length).short}", instead="integers")
    coordinates = []
    for length in reversed(lengths):
        flat, inside = divmod(flat, length)
        coordinates.append(inside)
    # The remaining quotient is nonzero for positions out of bounds: > 0 after the end, < -1 before the beginning.
    before = np.False_ if dtypes.kind(type_of(flat).dtype) == "u" else less(flat, -1)
    behind = greater(flat, 0)
    pairs = zip(lengths, reversed(coordinates), strict=True)
    return tuple(where(behind, length - 1, where(before, 0, i)) for length, i in pairs)


def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Any, Any]:
    """The indices where ``mask_func(x, k)`` of an n by n matrix of ones is not zero (as ``numpy.mask_indices``).

    Args:
      n: number of rows and columns.
      mask_func: function of a matrix and of `k`, for example `triu` or `tril`.
      k: second argument of `mask_func`, as the number of a diagonal.
      size: number of indices to return; required in traced functions.

    Returns:
      Two integer vectors: row and column indices of the nonzero elements.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns
