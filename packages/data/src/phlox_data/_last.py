"""The last batch of an epoch, which is short if the examples do not divide evenly: dropped, padded or kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from phlox.errors import ArgumentError, AxisSizeError

from ._examples import Examples

Last: TypeAlias = Literal["drop", "pad", "keep"]
MODES = ("drop", "pad", "keep")


class Padded(NamedTuple):
    """A batch with ``last="pad"``: always of full size, with a mask that is true for real examples.

    All batches of such an epoch have this form, full ones with a mask that is true everywhere. Padding repeats the last
    example, so that results for it are nan only if those for the real example are.

    Attributes:
      batch: the tree of arrays of shape ``(batch_size, ...)``, or ``(devices, per_device, ...)``.
      mask: bool array of shape ``(batch_size,)``, or ``(devices, per_device)``.

    >>> import phlox_data as data
    >>> batch, mask = list(data.batches(np.arange(3.0), batch_size=2, last="pad"))[1]
    >>> batch, mask
    (Array([2., 2.], dtype=float32), Array([ True, False], dtype=bool))
    """

    batch: Any
    mask: Any


def check_mode(last: str) -> None:
    """Raises `ArgumentError` if `last` is not one of the modes."""
    if last not in MODES:
        raise ArgumentError(f"last={last!r} says nothing", instead="last='drop', 'pad' or 'keep'", argument="last")


class Reading(NamedTuple):
    """An epoch that a source has begun to read.

    Attributes:
      batches: the batches.
      size: the length of a full batch; None: that of the first batch.
      skip: the number of batches that `finish` must skip.
      state: the state of a reader that can go on from it, after the batch that it has read last.
    """

    batches: Iterator[Examples]
    size: int | None
    skip: int
    state: Callable[[], Any] | None = None


class Note(NamedTuple):
    """What is known of a batch beside its contents: how many examples are in it, and the reader's state after it."""

    examples: int
    reader: dict[str, Any] | None


def finish(reading: Reading, last: Last, notes: deque[Note]) -> Iterator[tuple[Examples, np.ndarray | None]]:
    """Drops, pads or keeps the short batch; yields pairs of batch and mask, which is None unless `last` is "pad".

    A note on each batch is added to `notes` before it is yielded.
    """
    _, size, skip, state = reading
    for batch in reading.batches:
        if not len(batch):
            continue
        size = len(batch) if size is None else size
        if len(batch) > size:
            raise AxisSizeError(
                f"a batch of {len(batch)} examples, where the full size is {size}",
                instead=f"batch_size={len(batch)}, or batches of one size",
                sizes=[("", 0, leaf.shape) for leaf in batch.leaves],
            )
        short = len(batch) < size
        if short and last == "drop":
            continue
        if skip:
            skip -= 1
            continue
        # The full size is part of the state: the first batch after it may be the short one.
        notes.append(Note(len(batch), None if state is None else {"size": size, "state": state()}))
        if last == "pad":
            yield batch.filled_up(size) if short else batch, np.arange(size) < len(batch)
        else:
            yield batch, None
