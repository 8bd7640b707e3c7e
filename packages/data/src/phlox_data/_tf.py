"""Batches of a tf.data.Dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from phlox.errors import ArgumentError

from ._batches import Batches
from ._extras import require
from ._last import Last
from ._stream import Stream


def from_tf(
    dataset: Any,
    *,
    last: Last = "keep",
    batch_size: int | None = None,
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
) -> Batches:
    """Batches of a `tf.data.Dataset`, put on devices while the program computes with earlier ones.

    Args:
      dataset: a batched dataset, or a function that gets the epoch's number and returns one. Order and shuffling are
        its own; a dataset itself is simply read from its beginning, whatever the number of the epoch. So that a stopped
        program can go on exactly, use a function that seeds the order of each epoch:
        ``lambda epoch: dataset.shuffle(10_000, seed=epoch).batch(128)``.
      batch_size: how many examples a full batch has, if the dataset does not say (it does with
        ``drop_remainder=True``): otherwise the first batch of an epoch counts as full.
      last, device, devices, prefetch: as for `batches`.

    Returns `Batches` of trees with the structure of the dataset's elements. `start=n` of `Batches.epoch` reads n
    batches and passes over them; it is refused where another order would come.

    TensorFlow reserves all memory of all GPUs when it first uses one. If it is not imported yet, it is imported here
    with the GPUs hidden from it; a program that imports it itself does well to begin with
    ``tf.config.set_visible_devices([], "GPU")``.

    Raises `MissingExtraError` without TensorFlow, and in the loop what the dataset raises, and what `batches` raises
    for arrays that no device can hold.
    """
    require("tensorflow")
    source = Stream(
        "from_tf",
        dataset,
        open=_open,
        batch_size=batch_size,
        size=_size,
        count=_count,
        shuffles=_shuffles,
        ordered="lambda epoch: dataset.shuffle(10_000, seed=epoch).batch(128)",
    )
    return Batches(source, last=last, device=device, devices=devices, prefetch=prefetch)


def _checked(dataset: Any) -> Any:
    if not isinstance(dataset, require("tensorflow").data.Dataset):
        raise ArgumentError(f"from_tf: {dataset!r} is no tf.data.Dataset", instead="a dataset, batched", value=dataset)
    return dataset


def _open(dataset: Any) -> Iterator[Any]:
    return _checked(dataset).as_numpy_iterator()


def _shuffles(dataset: Any, for_one_epoch: bool) -> bool:
    """Whether a step of the pipeline is a shuffle without a seed, or one that goes on with its numbers."""
    if "ShuffleDataset" in type(dataset).__name__:
        seeded = any(int(getattr(dataset, name, 0)) for name in ("_seed", "_seed2"))
        if not seeded or (not for_one_epoch and getattr(dataset, "_reshuffle_each_iteration", True)):
            return True
    return any(_shuffles(before, for_one_epoch) for before in dataset._inputs())


def _size(dataset: Any) -> int | None:
    """The length that all batches have, where the dataset's types say it."""
    specs = require("tensorflow").nest.flatten(_checked(dataset).element_spec)
    shapes = [getattr(spec, "shape", None) for spec in specs]
    lengths = {shape[0] if shape is not None and shape.rank else None for shape in shapes}
    return lengths.pop() if len(lengths) == 1 else None


def _count(dataset: Any, last: Last) -> int | None:
    count = int(_checked(dataset).cardinality())
    if count < 0:  # infinite, or not known
        return None
    # The dataset counts a short batch as well, if there is one; it has none where its types give the length.
    return count if last != "drop" or _size(dataset) is not None else None
