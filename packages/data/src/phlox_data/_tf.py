"""Batches of a tf.data.Dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from phlox.errors import ArgumentError

from ._batches import Batches
from ._extras import require
from ._host import Names
from ._last import Last
from ._stream import Opened, Position, Stream


def from_tf(
    dataset: Any,
    *,
    last: Last = "keep",
    batch_size: int | None = None,
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches of a `tf.data.Dataset`, put on devices while the program computes with earlier ones.

    Args:
      dataset: a batched dataset, or a function that gets the epoch's number and returns one. Order and shuffling are
        its own; a dataset itself is read from its beginning, whatever the number of the epoch. To continue a stopped
        program exactly, use a function that seeds the order of each epoch:
        ``lambda epoch: dataset.shuffle(10_000, seed=epoch).batch(128)``.
      batch_size: the length of a full batch, if the dataset does not provide it (it does with
        ``drop_remainder=True``); without it the first batch of an epoch counts as full.
      last, device, devices, prefetch, host: as for `batches`.

    Returns `Batches` of trees with the structure of the dataset's elements. `start=n` of `Batches.epoch` reads and
    skips n batches, and so does `Batches.restore`. They raise if the order may differ: for shuffles without a seed, for
    seeded ones that are not made by a function for each epoch, because their state advances, and for
    ``deterministic=False``.

    TensorFlow reserves all memory of all GPUs when it first uses one, so they are hidden from it here, also if the
    program has imported it. If it has used a GPU already, there is a `RuntimeWarning`.

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
        unsteady=_unsteady,
        ordered="lambda epoch: dataset.shuffle(10_000, seed=epoch).batch(128)",
        host=host,
    )
    return Batches(source, last=last, device=device, devices=devices, prefetch=prefetch)


def _checked(dataset: Any) -> Any:
    if not isinstance(dataset, require("tensorflow").data.Dataset):
        raise ArgumentError(f"from_tf: {dataset!r} is no tf.data.Dataset", instead="a dataset, batched", value=dataset)
    return dataset


def _open(dataset: Any, at: Position) -> Opened:
    return Opened(_checked(dataset).as_numpy_iterator(), at.batch)


def _unsteady(dataset: Any, again: Any) -> str | None:
    if _checked(dataset).options().deterministic is False:
        return "its options say deterministic=False"
    steps = list(_steps(dataset))
    others = [] if again is None else list(_steps(_checked(again)))
    for step in steps:
        kind = type(step).__name__.strip("_")
        seeds = _seeds(step)
        if seeds == (0, 0) or any(pair == (0, 0) for pair in _inner_seeds(step)):
            return f"a {kind} in it has no seed"
        if getattr(step, "_deterministic", None) == "false":
            return f"a {kind} in it says deterministic=False"
        goes_on = getattr(step, "_reshuffle_each_iteration", False) or getattr(step, "_rerandomize", False)
        if seeds and goes_on and (again is None or any(step is other for other in others)):
            return f"a {kind} in it is not made for this epoch, and goes on with its numbers"
    # With tf.random.set_seed, implicit seeds depend on all operations that were created before.
    if again is not None and [*map(_seeds, steps)] != [*map(_seeds, others)]:
        return "its seeds are others each time it is made"
    return None


def _steps(dataset: Any) -> Iterator[Any]:
    """The dataset, and all datasets from which it is derived."""
    yield dataset
    for before in dataset._inputs():
        yield from _steps(before)


def _seeds(step: Any) -> tuple[int, int] | None:
    """The two seeds of a random step, zeros if none were given; None for other steps."""
    if not hasattr(step, "_seed2"):
        return None
    return int(step._seed), int(step._seed2)


def _inner_seeds(step: Any) -> Iterator[tuple[Any, Any]]:
    """The seeds of datasets that a step's function creates, as in `interleave`; None for seeds that are computed."""
    value = require("tensorflow").get_static_value
    for function in step._functions():
        for operation in function.function.graph.get_operations():
            if operation.type.startswith(("ShuffleDataset", "RandomDataset", "ShuffleAndRepeatDataset")):
                seeds = [x for x in operation.inputs if x.op.name.rpartition("/")[2].startswith("seed")]
                yield tuple(None if value(x) is None else int(value(x)) for x in seeds)  # type: ignore[misc]


def _size(dataset: Any) -> int | None:
    """The length of all batches, if it is static in the dataset's types."""
    specs = require("tensorflow").nest.flatten(_checked(dataset).element_spec)
    shapes = [getattr(spec, "shape", None) for spec in specs]
    lengths = {shape[0] if shape is not None and shape.rank else None for shape in shapes}
    return lengths.pop() if len(lengths) == 1 else None


def _count(dataset: Any, last: Last) -> int | None:
    count = int(_checked(dataset).cardinality())
    if count < 0:  # infinite or unknown
        return None
    # The dataset's count includes a short batch. There is none if the batch length is static.
    return count if last != "drop" or _size(dataset) is not None else None
