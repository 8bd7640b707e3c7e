"""Batches of data sources of TensorFlow Datasets: random access to examples in files, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phlox.errors import ArgumentError
from phlox.tree_util import tree_leaves

from ._batches import Batches
from ._examples import Examples, collate, examples
from ._indexed import Indexed
from ._last import Last, check_mode


def from_tfds(
    source: Any,
    batch_size: int,
    *,
    seed: int | None = None,
    last: Last = "keep",
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
) -> Batches:
    """Batches of a data source of TensorFlow Datasets, put on devices while the program computes with earlier ones.

    Args:
      source: the result of ``tfds.data_source(...)``, ``builder.as_data_source(...)``, or one of `local_tfds`; or any
        sequence of examples that are trees of numbers and arrays.
      batch_size, seed, last, device, devices, prefetch: as for `batches`. The order is that of `batches` with the same
        seed.

    Returns `Batches` of trees with the structure of the examples, usually dicts.

    Raises the errors of `batches`; errors of single examples only in the loop, when they are read.

    >>> source = [{"x": np.float32(i), "y": i} for i in range(4)]
    >>> next(from_tfds(source, batch_size=2).epoch(0))
    {'x': Array([0., 1.], dtype=float32), 'y': Array([0, 1], dtype=int32)}
    """
    check_mode(last)
    if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")) or isinstance(source, Mapping):
        raise ArgumentError(
            f"from_tfds: {source!r} is no source of numbered examples",
            instead="tfds.data_source(name, split='train'), or from_tf for a tf.data.Dataset",
            value=source,
        )
    dtypes = _dtypes(source)

    def take(rows: slice | np.ndarray) -> Examples:
        numbers = list(range(rows.start, rows.stop)) if isinstance(rows, slice) else rows.tolist()
        read_many = getattr(source, "__getitems__", None)
        read = examples(collate(read_many(numbers) if read_many else [source[n] for n in numbers]), "the batch")
        if len(dtypes) == len(read.leaves):
            read.leaves[:] = [leaf.astype(dtype, copy=False) for leaf, dtype in zip(read.leaves, dtypes, strict=True)]
        return read

    indexed = Indexed(len(source), take, batch_size, seed, last)
    return Batches(indexed, last=last, device=device, devices=devices, prefetch=prefetch)


def _dtypes(source: Any) -> list[np.dtype]:
    """The dtypes of an example's leaves, if the source provides them: it returns scalars as Python numbers."""
    features = getattr(getattr(source, "dataset_info", None), "features", None)
    return [] if features is None else [info.np_dtype for info in tree_leaves(features.get_tensor_info())]
