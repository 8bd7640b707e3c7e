"""Batches of any iterable of trees, among them pipelines of this package and of WebDataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._batches import Batches
from ._host import Names
from ._last import Last
from ._pipeline import Pipeline
from ._stream import Opened, Position, Stream


def from_iterable(
    iterable: Any,
    *,
    last: Last = "keep",
    batch_size: int | None = None,
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches that an iterable holds, put on devices while the program computes with earlier ones.

    Args:
      iterable: an iterable of batches, each a tree of arrays or tensors, or a function that gets the epoch's number and
        returns one. A `Pipeline` that ends with `batch`, a list, a pipeline of WebDataset that ends with
        ``.batched(128)``. An iterable is read from its beginning, whatever the number of the epoch, but for a
        `Pipeline`, which has epochs of its own.
      batch_size: the length of a full batch; without it that of the `Pipeline`, or else of an epoch's first batch.
      last, device, devices, prefetch, host: as for `batches`.

    Returns `Batches` of trees with the structure of the iterable's. `start=n` of `Batches.epoch` and `Batches.restore`
    read and skip n batches, which a `Pipeline` does without reading them where its steps allow. They raise where
    nothing is known of an iterable's order. A function declares that what it returns depends only on its argument:
    ``from_iterable(lambda epoch: shards(seed=epoch))``, or ``lambda epoch: iterable``.

    Raises `ArgumentError` for iterators, which can be read only once, and in the loop what the iterable raises, and
    what `batches` raises for arrays that no device can hold.

    >>> import numpy as np
    >>> [batch.tolist() for batch in from_iterable([np.array([1, 2]), np.array([3, 4])])]
    [[1, 2], [3, 4]]
    """
    source = Stream(
        "from_iterable",
        iterable,
        open=_open,
        batch_size=batch_size,
        size=lambda batches: batches._step.batch_size if isinstance(batches, Pipeline) else None,
        count=_count,
        unsteady=_unsteady,
        ordered="lambda epoch: ...",
        host=host,
    )
    return Batches(source, last=last, device=device, devices=devices, prefetch=prefetch)


def _open(batches: Any, at: Position) -> Opened:
    if isinstance(batches, Pipeline):
        return Opened(batches.epoch(at.epoch, at.batch))
    return Opened(iter(batches), at.batch)


def _count(batches: Any, last: Last) -> int | None:
    if last == "drop":  # whether a short batch is among them is not known
        return None
    try:
        return len(batches)
    except TypeError:
        return None


def _unsteady(batches: Any, again: Any) -> str | None:
    if isinstance(batches, Pipeline):
        return batches._step.unsteady
    if again is not None or isinstance(batches, list | tuple):
        return None
    return f"nothing is known of the order of a {type(batches).__name__}"
