"""Batches of Grain, whose datasets shuffle, read in parallel and resume by themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from phlox.errors import ArgumentError

from ._batches import Batches
from ._extras import require
from ._host import Names
from ._last import Last
from ._stream import Opened, Position, Stream


def from_grain(
    dataset: Any,
    *,
    last: Last = "keep",
    batch_size: int | None = None,
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches of Grain, put on devices while the program computes with earlier ones.

    Args:
      dataset: a batched ``grain.MapDataset``, ``grain.IterDataset`` or ``grain.DataLoader``, or a function that gets
        the epoch's number and returns one. A `MapDataset` itself has epochs: epoch n is what its ``repeat()`` gives the
        nth time, so ``grain.MapDataset.source(x).seed(0).shuffle().batch(128)`` is shuffled anew in each. The others
        are read from their beginning, whatever the number of the epoch.
      batch_size: the length of a full batch; without it the first batch of an epoch counts as full.
      last, device, devices, prefetch, host: as for `batches`.

    Returns `Batches` of trees with the structure of the dataset's elements. `Batches.state` holds the state of Grain's
    iterator, and `Batches.restore` reads nothing twice; `start=n` of `Batches.epoch` reads and skips n batches. The
    length is that of a `MapDataset`; others have none. Worker processes of Grain need the program to parse flags of
    absl: ``absl.app.run(main)``.

    Raises `MissingExtraError` without Grain, and in the loop what the dataset raises, and what `batches` raises for
    arrays that no device can hold.
    """
    require("grain")
    source = Stream(
        "from_grain",
        dataset,
        open=_open,
        batch_size=batch_size,
        size=lambda _: None,
        count=_count,
        unsteady=lambda dataset, again: None,  # Grain draws nothing without a seed
        ordered="a dataset of Grain",
        host=host,
    )
    return Batches(source, last=last, device=device, devices=devices, prefetch=prefetch)


def _open(dataset: Any, at: Position) -> Opened:
    grain = require("grain")
    if not isinstance(dataset, grain.MapDataset | grain.IterDataset | grain.DataLoader):
        raise ArgumentError(
            f"from_grain: {dataset!r} is no dataset of Grain", instead="a grain.MapDataset, batched", value=dataset
        )
    if isinstance(dataset, grain.MapDataset):
        first = at.epoch * len(dataset)
        batches = iter(dataset.repeat(at.epoch + 1) if at.epoch else dataset)
        if at.epoch and at.state is None:
            batches.set_state({"next_index": first})
    else:
        batches = iter(dataset)
    if at.state is not None:
        batches.set_state(at.state.encode() if isinstance(at.state, str) else at.state)
    return Opened(_closing(batches), 0 if at.state is not None else at.batch, lambda: _state(batches))


def _state(batches: Any) -> Any:
    state = batches.get_state()
    return state.decode() if isinstance(state, bytes) else state  # the loader's is JSON as bytes


def _closing(batches: Any) -> Iterator[Any]:
    """The batches; the threads and processes that prepare them end with the loop."""
    try:
        yield from batches
    finally:
        if hasattr(batches, "close"):
            batches.close()


def _count(dataset: Any, last: Last) -> int | None:
    if last == "drop" or not isinstance(dataset, require("grain").MapDataset):
        return None
    return len(dataset) if len(dataset) < sys.maxsize else None
