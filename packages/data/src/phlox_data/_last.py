"""The last batch of an epoch, which is short when the examples do not divide evenly: dropped, padded or kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from phlox.errors import ArgumentError, AxisSizeError

from ._examples import Examples

Last: TypeAlias = Literal["drop", "pad", "keep"]
MODES = ("drop", "pad", "keep")


class Padded(NamedTuple):
    """A batch as ``last="pad"`` gives it: always of full size, with a mask that says which examples are real.

    All batches of such an epoch come in this form, the full ones with a mask that is true everywhere. Rows that are
    none of the source's repeat its last example, so that nothing computed of them is nan where real ones are not.

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
    """Raises `ArgumentError` for a way to treat the last batch that there is not."""
    if last not in MODES:
        raise ArgumentError(f"last={last!r} says nothing", instead="last='drop', 'pad' or 'keep'", argument="last")


class Reading(NamedTuple):
    """An epoch as a source begins to read it.

    Attributes:
      batches: the batches.
      size: the length of a full one; if it is None, that of the first.
      skip: how many of those that `finish` yields come before the one asked for.
    """

    batches: Iterator[Examples]
    size: int | None
    skip: int


def finish(reading: Reading, last: Last) -> Iterator[tuple[Examples, np.ndarray | None]]:
    """Treats short batches as `last` says; yields pairs of batch and mask, which is None unless they are padded."""
    _, size, skip = reading
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
        elif last == "pad":
            yield batch.filled_up(size) if short else batch, np.arange(size) < len(batch)
        else:
            yield batch, None
