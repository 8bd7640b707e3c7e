"""Packing of texts into rows of one length, without attention across texts."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Any

import numpy as np

from phlox.errors import ArgumentError, DtypeError, ShapeError


def pack(texts: Iterable[Any], length: int, *, pad: int = 0, split: bool = True) -> dict[str, np.ndarray[Any, Any]]:
    """Texts of different lengths as rows of one length, several texts in a row, so that little is padding.

    Each text goes into the fullest row that has room for it. The result is a source for `batches`.

    Args:
      texts: sequences of tokens, each integers (any length,).
      length: the length of a row.
      pad: the token of padding.
      split: whether texts that are longer than a row are cut into several; otherwise they are an error.

    Returns:
      A dict of arrays int32 (rows, length): `tokens`; `segments`, the number of the text within its row, from 1 on, and
      0 for padding; `positions`, of each token in its text. ``segments > 0`` masks the loss, and `segment_mask` is the
      mask of attention. The target of a token is the next one, if that has the same segment.

    Raises:
      ArgumentError, DtypeError, ShapeError: a text is no sequence of integers, or too long.

    >>> rows = pack([[5, 6, 7], [8, 9], [3, 4, 3, 4]], length=5)
    >>> rows["tokens"]
    array([[5, 6, 7, 8, 9],
           [3, 4, 3, 4, 0]], dtype=int32)
    >>> rows["segments"]
    array([[1, 1, 1, 2, 2],
           [1, 1, 1, 1, 0]], dtype=int32)
    >>> rows["positions"]
    array([[0, 1, 2, 0, 1],
           [0, 1, 2, 3, 0]], dtype=int32)
    """
    if type(length) is not int or length < 1:
        raise ArgumentError(
            f"pack: the length of rows is {length!r}", instead="an integer from 1 on", argument="length"
        )
    rows: list[list[np.ndarray[Any, Any]]] = []
    spaces: list[tuple[int, int]] = []  # (free places, row), sorted, of rows that are not full
    for piece in _pieces(texts, length, split):
        at = bisect.bisect_left(spaces, (len(piece), -1))
        if at < len(spaces):
            free, row = spaces.pop(at)
        else:
            free, row = length, len(rows)
            rows.append([])
        rows[row].append(piece)
        if free > len(piece):
            bisect.insort(spaces, (free - len(piece), row))
    result = {name: np.zeros((len(rows), length), np.int32) for name in ("tokens", "segments", "positions")}
    result["tokens"][:] = pad
    for number, pieces in enumerate(rows):
        start = 0
        for segment, piece in enumerate(pieces, 1):
            place = number, slice(start, start + len(piece))
            result["tokens"][place], result["segments"][place] = piece, segment
            result["positions"][place] = np.arange(len(piece))
            start += len(piece)
    return result


def _pieces(texts: Iterable[Any], length: int, split: bool) -> Iterable[np.ndarray[Any, Any]]:
    """The texts as arrays of at most this length."""
    for number, text in enumerate(texts):
        tokens = np.asarray(text)
        if tokens.ndim != 1:
            raise ShapeError(f"pack: text {number} has shape {tokens.shape}", instead="tokens of shape (length,)")
        if len(tokens) and not np.issubdtype(tokens.dtype, np.integer):
            raise DtypeError(
                f"pack: text {number} has elements of {tokens.dtype}", instead="integers, from a tokenizer"
            )
        if len(tokens) > length and not split:
            raise ArgumentError(
                f"pack: text {number} has {len(tokens)} tokens, a row has {length}",
                instead="split=True, or longer rows",
            )
        for start in range(0, len(tokens), length):
            yield tokens[start : start + length]


def segment_mask(segments: Any) -> Any:
    """The mask of attention for packed texts: tokens attend only to those of their own text.

    Args:
      segments: integers (..., length), as `pack` makes them; NumPy arrays or arrays of phlox.

    Returns bools (..., length, length), false where the token of the row does not attend to that of the column. Padding
    attends only to itself. Causal models mask what comes later by themselves.

    >>> segment_mask(np.array([1, 1, 2])).astype(int)
    array([[1, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    same = segments[..., :, None] == segments[..., None, :]
    return same & ((segments[..., :, None] > 0) | np.eye(segments.shape[-1], dtype=bool))
