"""Batches of a DataLoader without worker processes, made in less time: equal ones, in the same order.

Its time goes into examples: indexing tensors one by one, and turning arrays into tensors, of which this package makes
arrays again. Both are unnecessary where the dataset and the collate function are PyTorch's own. Batches are written
where devices can use them as they are. The loader itself is not changed, only the iterator that was made for one epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._examples import as_numpy, plain_columns, take_rows
from ._extras import require
from ._memory import Memory


def shorten(batches: Iterator[Any]) -> Iterator[Any] | None:
    """A shorter way to the batches of a DataLoader's iterator, if there is one, else None.

    Nobody writes to a batch any more that it has made.
    """
    fetcher: Any = getattr(batches, "_dataset_fetcher", None)  # private: without it, everything stays as it is
    collate = getattr(fetcher, "collate_fn", None)
    data = require("torch").utils.data
    if collate is not data.default_collate or not getattr(fetcher, "auto_collation", False):
        return None
    if getattr(batches, "_pin_memory", False) or not _collates_by_itself():
        return None
    memory = Memory()
    fetcher.collate_fn = lambda records: _collate(records, memory)
    numbers = getattr(batches, "_sampler_iter", None)
    if numbers is None or type(fetcher) is not getattr(data._utils.fetch, "_MapDatasetFetcher", None):
        return batches
    arrays = _arrays(fetcher.dataset)
    if arrays is None:
        return map(fetcher.fetch, numbers)
    # By NumPy: PyTorch starts threads to index a batch, and waits for them longer than the copy takes.
    return ([_rows(array, np.asarray(rows), memory) for array in arrays] for rows in numbers)


def _collates_by_itself() -> bool:
    """Whether `default_collate` calls no functions of users, who may have registered some for their own types."""
    functions = getattr(require("torch").utils.data._utils.collate, "default_collate_fn_map", {})
    return all(function.__module__.startswith("torch.") for function in functions.values())


def _rows(array: np.ndarray, numbers: np.ndarray, memory: Memory) -> np.ndarray:
    if numbers.ndim != 1 or numbers.dtype.kind != "i" or not len(numbers):
        return array[numbers]
    if numbers.min() < 0 or numbers.max() >= len(array):  # counted from the end, or an error
        return array[numbers]
    return take_rows(array, numbers, memory)


def _arrays(dataset: Any) -> list[np.ndarray] | None:
    """The tensors of a `TensorDataset` as arrays that share their memory, or None."""
    torch = require("torch")
    if type(dataset) is not torch.utils.data.TensorDataset or not all(map(_is_plain, dataset.tensors)):
        return None
    return [as_numpy(tensor, "a tensor") for tensor in dataset.tensors]


def _is_plain(tensor: Any) -> bool:
    torch = require("torch")
    plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and tensor.device.type == "cpu"
    known = not tensor.dtype.is_complex and not tensor.is_quantized and not tensor.is_neg()
    return plain and known


def _collate(records: Sequence[Any], memory: Memory) -> Any:
    """What `default_collate` makes of examples, as arrays where it makes tensors of arrays and numbers."""
    columns = plain_columns(records, memory.empty)
    if columns is None:
        return require("torch").utils.data.default_collate(records)
    return list(columns) if type(columns) is tuple else columns
