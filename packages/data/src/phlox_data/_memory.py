"""Host memory for batches, used again as soon as nobody reads it.

A batch is written once, where the device can take it as it is: aligned as XLA wants it, and never written to while
anyone refers to it. New memory for each batch would come from the operating system page by page, which takes longer
than the copy.
"""

from __future__ import annotations

import math
from sys import getrefcount

import numpy as np

import phlox

_ALIGNMENT = 64  # of memory that XLA uses on a CPU without a copy
_MOST = 8  # pieces of one size to look through; a program that keeps more batches than these keeps their memory


class Memory:
    """The memory of the batches of one epoch."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: dict[int, list[np.ndarray]] = {}

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array with any contents, whose memory no other living array or device's buffer has."""
        piece = self._piece(math.prod(shape) * dtype.itemsize)
        return np.ndarray(shape, dtype, piece, -piece.ctypes.data % _ALIGNMENT)

    def copy(self, array: np.ndarray) -> np.ndarray:
        """A copy of an array, with the dtype that it has on devices."""
        copied = self.empty(array.shape, phlox.dtypes.canonicalize_dtype(array.dtype))
        np.copyto(copied, array, casting="unsafe")
        return copied

    def _piece(self, size: int) -> np.ndarray:
        pieces = self._pieces.setdefault(size, [])
        for i in range(len(pieces)):
            # The list and the call refer to a piece; each view of it, and each device that uses it, once more.
            if getrefcount(pieces[i]) == 2:
                return pieces[i]
        if len(pieces) == _MOST:
            del pieces[0]
        pieces.append(np.empty(size + _ALIGNMENT, np.uint8))
        return pieces[-1]
