"""Batches of Hugging Face's `datasets`: Arrow files on disk, memory-mapped, or streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phlox.errors import ArgumentError

from ._batches import Batches, whole_number
from ._examples import Examples, examples
from ._extras import require
from ._host import Names, check_names
from ._indexed import Indexed
from ._last import Last, check_mode
from ._memory import Memory
from ._stream import Opened, Position, Stream


def from_huggingface(
    dataset: Any,
    batch_size: int,
    *,
    seed: int | None = None,
    last: Last = "keep",
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches of a dataset of Hugging Face, put on devices while the program computes with earlier ones.

    Args:
      dataset: a ``datasets.Dataset``, from which batches are read in any order, or a ``datasets.IterableDataset``, not
        batched. ``dataset.select_columns`` chooses columns; a format or transform that was set on a `Dataset` is kept,
        else columns are read as NumPy arrays.
      batch_size, last, device, devices, prefetch, host: as for `batches`. Columns of strings need `host`.
      seed: shuffles each epoch of a `Dataset`, in the order of `batches` with the same seed. This reads faster than
        ``dataset.shuffle``, after which examples are looked up one by one. An `IterableDataset` is shuffled by its own
        ``shuffle(seed, buffer_size)``; each epoch then has another order.

    Returns `Batches` of dicts with an array for each column. Images are decoded by `datasets`, and must be of one size.
    `start=n` of `Batches.epoch` and `Batches.restore` begin at once in a `Dataset`; in an `IterableDataset` they read
    and skip n batches, because the library's own state forgets what is in its shuffle buffer.

    Raises `MissingExtraError` without `datasets`; `ArgumentError` for a `seed` with an `IterableDataset`; in the loop
    what `batches` raises for columns that no device can hold.
    """
    datasets = require("datasets")
    check_mode(last)
    names = check_names(host)
    if isinstance(dataset, datasets.Dataset):
        # dtype=None keeps the columns' own types, which this format would else widen or narrow.
        read = dataset.with_format("numpy", dtype=None) if dataset.format["type"] is None else dataset

        def take(rows: slice | np.ndarray, memory: Memory) -> Examples:
            return examples(read[rows], "the batch", names)

        indexed = Indexed(len(dataset), take, batch_size, seed, last)
        return Batches(indexed, last=last, device=device, devices=devices, prefetch=prefetch)
    if not isinstance(dataset, datasets.IterableDataset):
        raise ArgumentError(
            f"from_huggingface: a {type(dataset).__name__} is no dataset",
            instead="one of its splits: dataset['train']" if isinstance(dataset, dict) else "a datasets.Dataset",
            value=dataset,
        )
    if seed is not None:
        raise ArgumentError(
            "from_huggingface: an IterableDataset cannot be read in any order",
            instead=f"dataset.shuffle(seed={seed}, buffer_size=10_000), without seed here",
            argument="seed",
        )
    size = whole_number(batch_size, "batch_size", 1)
    stream = Stream(
        "from_huggingface",
        dataset,
        open=lambda dataset, at: _open(dataset, size, at),
        batch_size=size,
        size=lambda _: None,
        count=lambda dataset, last: None,
        unsteady=lambda dataset, again: None,  # shuffled by a seed that it keeps, and the epoch's number
        ordered="",
        host=names,
    )
    return Batches(stream, last=last, device=device, devices=devices, prefetch=prefetch)


def _open(dataset: Any, size: int, at: Position) -> Opened:
    batched = dataset.with_format("numpy").batch(size)  # an object of its own, whose epoch is nobody else's
    batched.set_epoch(at.epoch)
    dtypes = {name: _dtype(feature) for name, feature in (dataset.features or {}).items()}
    return Opened(
        ({name: _cast(column, dtypes.get(name)) for name, column in batch.items()} for batch in batched), at.batch
    )


def _dtype(feature: Any) -> np.dtype | None:
    """The dtype of a column of numbers, or of lists of them."""
    while getattr(feature, "feature", None) is not None:
        feature = feature.feature
    try:
        return np.dtype(getattr(feature, "dtype", None) or "O")
    except TypeError:
        return None


def _cast(column: Any, dtype: np.dtype | None) -> Any:
    numbers = "iufb"
    if (
        dtype is None
        or dtype.kind not in numbers
        or not isinstance(column, np.ndarray)
        or column.dtype.kind not in numbers
    ):
        return column
    return column.astype(dtype, copy=False)
