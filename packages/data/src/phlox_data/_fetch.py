"""Batches of a DataLoader without worker processes, made in less time: equal ones, in the same order.

Its time goes into examples: indexing tensors one by one, and turning arrays into tensors, of which this package makes
arrays again. Both are unnecessary where the dataset and the collate function are PyTorch's own. The loader itself is not
changed, only the iterator that was made for one epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._examples import plain_columns
from ._extras import require


def shorten(batches: Iterator[Any]) -> Iterator[Any]:
    """`batches`, the iterator of a DataLoader, with a shorter way to the same batches where there is one."""
    fetcher = getattr(batches, "_dataset_fetcher", None)  # private: without it, everything stays as it is
    collate = getattr(fetcher, "collate_fn", None)
    data = require("torch").utils.data
    if collate is not data.default_collate or not getattr(fetcher, "auto_collation", False):
        return batches
    if getattr(batches, "_pin_memory", False):
        return batches
    fetcher.collate_fn = _collate
    tensors = _tensors(getattr(fetcher, "dataset", None))
    if tensors is not None:
        fetcher.fetch = lambda numbers: _rows(tensors, numbers)
    return batches


def _tensors(dataset: Any) -> Sequence[Any] | None:
    """The tensors of a `TensorDataset`, if each has plain memory on the host."""
    torch = require("torch")
    if type(dataset) is not torch.utils.data.TensorDataset:
        return None
    plain = all(
        type(tensor) is torch.Tensor and tensor.layout is torch.strided and tensor.device.type == "cpu"
        for tensor in dataset.tensors
    )
    return dataset.tensors if plain else None


def _rows(tensors: Sequence[Any], numbers: Sequence[int]) -> list[Any]:
    """What `default_collate` makes of these rows of all tensors."""
    torch = require("torch")
    rows = torch.as_tensor(numbers)
    return [tensor.detach()[rows] for tensor in tensors]


def _collate(records: Sequence[Any]) -> Any:
    """What `default_collate` makes of examples, as arrays where it makes tensors of arrays and numbers."""
    columns = plain_columns(records)
    if columns is None:
        return require("torch").utils.data.default_collate(records)
    return list(columns) if type(columns) is tuple else columns
