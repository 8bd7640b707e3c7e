"""`local_tfds`: writes arrays as a dataset of TensorFlow Datasets (array_record), without TensorFlow and offline."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from phlox.errors import ArgumentError, AxisSizeError, DtypeError, PhloxError, ShapeError

from ._examples import Examples, examples
from ._extras import require

_VERSION = "1.0.0"
_EXAMPLES_IN_A_FILE = 10_000
# The files store int64 and float32 numbers: float64 would be rounded silently.
_STORED = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32")


def local_tfds(folder: str | os.PathLike[str], name: str, splits: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as a local dataset of TensorFlow Datasets: written at the first call, read at later ones.

    Args:
      folder: where datasets are kept; this one goes to ``folder/name/1.0.0``. Made if it is not there.
      name: of the dataset, in lower case with underscores.
      splits: for each split, such as ``"train"``, a dict of arrays (or of such dicts) with first axes of one length.

    Returns the data source of each split, for `from_tfds`, with the examples in the order of the arrays. Other programs
    open it with ``tfds.data_source(name, split="train", data_dir=folder)``.

    Several processes may do this at once: each writes to a folder of its own, and the first to finish wins.

    Raises `MissingExtraError` without tensorflow-datasets; `ArgumentError`, `AxisSizeError`, `ShapeError` and
    `DtypeError` (float64, for example) for what a dataset cannot hold; `PhloxError` when the folder holds other data
    under this name; `OSError` when it cannot be written.
    """
    tfds = require("tensorflow_datasets")
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ArgumentError(f"local_tfds: name={name!r}", instead="a name such as 'my_digits'", argument="name")
    if not splits:
        raise ArgumentError("local_tfds: no splits", instead="{'train': {'x': x, 'y': y}}", argument="splits")
    held = {split: examples(arrays, f"split {split!r}") for split, arrays in splits.items()}
    features = _common_features(tfds, held)
    mark = _fingerprint(held)
    final = os.path.join(os.fspath(folder), name, _VERSION)
    if not os.path.exists(final):
        _write(tfds, final, name, features, held, mark)
    builder = tfds.builder_from_directory(final)
    if (builder.info.metadata or {}).get("fingerprint") != mark:
        raise PhloxError(
            f"local_tfds: {final} holds other data than these arrays",
            instead="another name or folder; or delete it, if nobody needs it",
            path=final,
        )
    return {split: builder.as_data_source(split=split) for split in held}


def _common_features(tfds: Any, held: Mapping[str, Examples]) -> Any:
    """TFDS's description of an example. Raises if splits differ in it, or have arrays that it cannot describe."""
    features: dict[str, Any] = {}
    for split, rows in held.items():
        if not len(rows):
            raise AxisSizeError(f"split {split!r} has no examples", instead="leave it out", sizes=[("", 0, (0,))])
        features[split] = _features(tfds, rows.structure.unflatten(rows.leaves), f"split {split!r}")
    first, *others = features
    for other in others:
        if repr(features[other]) != repr(features[first]):
            raise ShapeError(
                f"examples of split {first!r} and split {other!r} are of different types:\n"
                f"    {features[first]!r}\n    {features[other]!r}",
                instead="one shape and dtype for each feature",
            )
    return features[first]


def _features(tfds: Any, tree: Any, path: str) -> Any:
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise ArgumentError(
            f"{path} is a {type(tree).__name__}, and features of datasets have names",
            instead="a dict of arrays: {'x': x, 'y': y}",
            path=path,
        )
    features = {}
    for key, value in tree.items():
        inner = f"{path}[{key!r}]"
        if not isinstance(value, np.ndarray):
            features[key] = _features(tfds, value, inner)
        elif value.dtype.name in _STORED:
            features[key] = tfds.features.Tensor(shape=value.shape[1:], dtype=value.dtype)
        else:
            raise DtypeError(
                f"{inner} has dtype {value.dtype}, which datasets cannot hold",
                instead="float32, or another of " + ", ".join(_STORED),
                path=inner,
                dtype=value.dtype,
            )
    return tfds.features.FeaturesDict(features)


def _fingerprint(held: Mapping[str, Examples]) -> str:
    """A hash of the arrays."""
    digest = hashlib.sha256()
    for split, rows in sorted(held.items()):
        digest.update(f"{split} {rows.structure}".encode())
        for leaf in rows.leaves:
            digest.update(f"{leaf.dtype} {leaf.shape}".encode())
            digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()


def _write(tfds: Any, final: str, name: str, features: Any, held: Mapping[str, Examples], mark: str) -> None:
    """Writes the dataset next to `final` and renames it, so that nobody reads an incomplete one."""
    folder = os.path.join(os.path.dirname(final), f".incomplete-{secrets.token_hex(8)}")
    os.makedirs(folder)
    try:
        info = tfds.core.DatasetInfo(
            builder=tfds.core.DatasetIdentity(
                name=name, version=tfds.core.Version(_VERSION), data_dir=folder, module_name=__name__
            ),
            description="Arrays stored by phlox_data.local_tfds.",
            features=features,
            disable_shuffling=True,  # informs readers that the order matters
            metadata=tfds.core.MetadataDict(fingerprint=mark),
        )
        # TFDS's builders print, show progress bars and search the network for the dataset; the writer does not.
        writer = tfds.core.SequentialWriter(info, _EXAMPLES_IN_A_FILE, file_format="array_record")
        writer.initialize_splits(list(held))
        for split, rows in held.items():
            writer.add_examples({split: _one_by_one(rows)})
        writer.close_all()
        os.rename(folder, final)
    except OSError:
        if not os.path.exists(final):  # otherwise another process has written it
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one_by_one(rows: Examples) -> Iterator[Any]:
    for i in range(len(rows)):
        yield rows.structure.unflatten([leaf[i] for leaf in rows.leaves])
