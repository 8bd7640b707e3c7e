"""Shape arithmetic of sliding windows, for convolutions and windowed reductions.

Along each axis an array is dilated (gaps between elements) and padded, and a window moves over it in strides.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._base.errors import ArgumentError, PaddingError, ShapeError
from ..._ir.dimensions import as_length, max_dim

Ints = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


def dilated(length: int, factor: int) -> int:
    """The length of an axis with ``factor - 1`` gaps between its elements."""
    return 0 if length == 0 else (length - 1) * factor + 1


def positions(length: int, window: int, stride: int) -> int:
    """The number of positions of a window on an axis of this (padded) length."""
    return max_dim((length - window) // stride + 1, 0)


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The (low, high) padding along each axis that 'VALID', 'SAME' or 'SAME_LOWER' means (as
    ``jax.lax.padtype_to_pads``).

    'VALID' pads nothing. 'SAME' gives as many places as strides fit in the axis, rounded up; an odd element goes to the
    end ('SAME_LOWER': to the start).

    Args:
      in_shape, window_shape, window_strides: length of the array, length of the window, and how far it moves, along
        each axis.
      padding: one of these words, in capitals or not.

    Returns:
      A list of pairs (low, high), one for each axis.

    Raises:
      ArgumentError: `padding` is no string.
      PaddingError: `padding` is another word.
      ShapeError: a stride is not positive, or the arguments have different lengths.

    >>> from phlox import lax
    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    if not isinstance(padding, str):
        raise ArgumentError(f"padding must be a word, got {padding!r}", instead="'VALID', 'SAME' or 'SAME_LOWER'")
    word = padding.upper()
    if word == "VALID":
        return [(0, 0)] * len(in_shape)
    if word not in ("SAME", "SAME_LOWER"):
        raise PaddingError(f"unknown padding {padding!r}", instead="'VALID', 'SAME' or 'SAME_LOWER'")
    if any(stride < 1 for stride in window_strides):
        raise ShapeError(f"padding {padding!r}: strides must be positive, got {tuple(window_strides)}")
    if not len(in_shape) == len(window_shape) == len(window_strides):
        raise ShapeError(
            f"padding {padding!r}: the shape {tuple(in_shape)}, the window {tuple(window_shape)} and the strides "
            f"{tuple(window_strides)} must have one number for each axis",
            shapes=[tuple(in_shape)],
        )
    pads = []
    for length, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = (-(-length // stride) - 1) * stride + window - length
        # A stride longer than the window passes over elements at the end, and `total` may be negative.
        total = total if window >= stride else max_dim(total, 0)
        half = as_length(total // 2)
        other = as_length(total - half)
        pads.append((half, other) if word == "SAME" else (other, half))
    return pads


def input_pads(
    in_shape: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    out_shape: Sequence[int],
    padding: Pads,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Pads:
    """The padding of the result's cotangent, dilated by `strides`, for the convolution that computes the input's."""
    pads = []
    for n, k, s, out, (low, _), b, d in zip(
        in_shape, window, strides, out_shape, padding, base_dilation, window_dilation, strict=True
    ):
        # The window reaches back to the first element from all results that contain it: its length less one, less the
        # padding.
        before = dilated(k, d) - low - 1
        pads.append((before, dilated(n, b) + dilated(k, d) - 1 - dilated(out, s) - before))
    return tuple(pads)
