"""Batches of a DataLoader without worker processes, made in less time: equal ones, in the same order.

Its time goes into examples: indexing tensors one by one, and turning arrays into tensors, of which this package makes
arrays again. Both are unnecessary where the dataset and the collate function are PyTorch's own. The loader itself is
not changed, only the iterator that was made for one epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._examples import as_numpy, plain_columns
from ._extras import require


def shorten(batches: Iterator[Any]) -> Iterator[Any]:
    """`batches`, the iterator of a DataLoader, with a shorter way to the same batches where there is one."""
    fetcher: Any = getattr(batches, "_dataset_fetcher", None)  # private: without it, everything stays as it is
    collate = getattr(fetcher, "collate_fn", None)
    data = require("torch").utils.data
    if collate is not data.default_collate or not getattr(fetcher, "auto_collation", False):
        return batches
    if getattr(batches, "_pin_memory", False):
        return batches
    fetcher.collate_fn = _collate
    arrays = _arrays(getattr(fetcher, "dataset", None))
    if arrays is not None:
        # By NumPy: PyTorch starts threads to index a batch, and waits for them longer than the copy takes.
        fetcher.fetch = lambda numbers: [array[np.asarray(numbers)] for array in arrays]
    return batches


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


def _collate(records: Sequence[Any]) -> Any:
    """What `default_collate` makes of examples, as arrays where it makes tensors of arrays and numbers."""
    columns = plain_columns(records)
    if columns is None:
        return require("torch").utils.data.default_collate(records)
    return list(columns) if type(columns) is tuple else columns
