"""Batches of TensorFlow Datasets: random access to examples in files, without TensorFlow where the format allows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from phlox.errors import ArgumentError
from phlox.tree_util import tree_leaves

from ._batches import Batches, whole_number
from ._examples import Examples, collated, examples
from ._extras import require
from ._host import Names, check_names
from ._indexed import Indexed
from ._last import Last, check_mode
from ._memory import Memory
from ._steps import read_one
from ._tf import from_tf

_BUFFER = 10_000  # examples among which a dataset without random access is shuffled


def from_tfds(
    source: Any,
    batch_size: int,
    *,
    split: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    last: Last = "keep",
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches of TensorFlow Datasets, put on devices while the program computes with earlier ones.

    Args:
      source: the name of a dataset, such as ``"mnist"`` or ``"mnist:3.0.1"``; or the result of
        ``tfds.data_source(...)``, ``builder.as_data_source(...)``, or one of `local_tfds`; or any sequence of examples
        that are trees of numbers and arrays.
      split: with a name, the part to read: ``"train"``, ``"train[:10%]"``.
      data_dir: with a name, the folder of datasets; by default that of TFDS. A dataset that is not there is downloaded,
        and stored as array_record.
      batch_size, seed, last, device, devices, prefetch, host: as for `batches`. The order is that of `batches` with the
        same seed.

    Files of array_record are read without TensorFlow, in any order. A dataset that is stored as tfrecord is read by
    `from_tf` with TensorFlow: from the beginning, and shuffled in a buffer of 10,000 examples.

    Returns `Batches` of trees with the structure of the examples, usually dicts.

    Raises the errors of `batches`; errors of single examples only in the loop, when they are read; with a name,
    `MissingExtraError` without tensorflow-datasets, or without TensorFlow for tfrecord, and the errors of TFDS.

    >>> source = [{"x": np.float32(i), "y": i} for i in range(4)]
    >>> next(from_tfds(source, batch_size=2).epoch(0))
    {'x': Array([0., 1.], dtype=float32), 'y': Array([0, 1], dtype=int32)}
    """
    check_mode(last)
    if isinstance(source, str):
        if split is None:
            raise ArgumentError(f"from_tfds: which part of {source!r}?", instead="split='train'", argument="split")
        source = _named(source, split, data_dir)
    elif split is not None or data_dir is not None:
        raise ArgumentError(
            "from_tfds: split and data_dir belong to a name",
            instead="from_tfds('mnist', split='train')",
            argument="split",
        )
    if callable(source):  # the tf.data.Dataset of an epoch
        datasets = _shuffled(source, whole_number(batch_size, "batch_size", 1), seed)
        options = {"last": last, "device": device, "devices": devices, "prefetch": prefetch, "host": host}
        return from_tf(datasets, batch_size=batch_size, **options)
    if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")) or isinstance(source, Mapping):
        raise ArgumentError(
            f"from_tfds: {source!r} is no source of numbered examples",
            instead="tfds.data_source(name, split='train'), or from_tf for a tf.data.Dataset",
            value=source,
        )
    names = check_names(host)
    dtypes = _dtypes(source)

    def take(rows: slice | np.ndarray, memory: Memory) -> Examples:
        numbers = list(range(rows.start, rows.stop)) if isinstance(rows, slice) else rows.tolist()
        read_many = getattr(source, "__getitems__", None)
        records = read_many(numbers) if read_many else [read_one(source.__getitem__, n) for n in numbers]
        read = examples(collated(records, names, memory.empty), "the batch", names, final=True)
        if len(dtypes) == len(read.leaves):
            read.leaves[:] = [
                leaf if i in read.host else leaf.astype(dtype, copy=False)
                for i, (leaf, dtype) in enumerate(zip(read.leaves, dtypes, strict=True))
            ]
        return read

    indexed = Indexed(len(source), take, batch_size, seed, last)
    return Batches(indexed, last=last, device=device, devices=devices, prefetch=prefetch)


def _named(name: str, split: str, data_dir: str | os.PathLike[str] | None) -> Any:
    """The data source of a dataset that is stored in a format with random access; else a function that reads it."""
    tfds = require("tensorflow_datasets")
    builder = tfds.builder(name, data_dir=data_dir)
    if not builder.is_prepared():
        builder = tfds.builder(name, data_dir=data_dir, file_format="array_record")
        builder.download_and_prepare()
    if builder.info.file_format in tfds.core.FileFormat.with_random_access():
        return builder.as_data_source(split=split)
    require("tensorflow")
    return lambda: builder.as_dataset(split=split, shuffle_files=False)


def _shuffled(read: Callable[[], Any], batch_size: int, seed: int | None) -> Callable[[int], Any]:
    def epoch_of(epoch: int) -> Any:
        dataset = read()
        if seed is not None:
            # One number of both: dataset.shuffle takes no pair.
            mixed = np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0] >> np.uint64(1)
            dataset = dataset.shuffle(_BUFFER, seed=int(mixed))
        return dataset.batch(batch_size)

    return epoch_of


def _dtypes(source: Any) -> list[np.dtype]:
    """The dtypes of an example's leaves, if the source provides them: it returns scalars as Python numbers."""
    features = getattr(getattr(source, "dataset_info", None), "features", None)
    return [] if features is None else [info.np_dtype for info in tree_leaves(features.get_tensor_info())]
