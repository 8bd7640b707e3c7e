"""Batches of a PyTorch DataLoader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from phlox.extend import warn

from ._batches import Batches
from ._extras import require
from ._fetch import shorten
from ._host import Names
from ._last import Last
from ._stream import Opened, Position, Stream


def from_torch(
    loader: Any,
    *,
    last: Last = "keep",
    batch_size: int | None = None,
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
    host: Names = (),
) -> Batches:
    """Batches of a PyTorch `DataLoader`, put on devices while the program computes with earlier ones.

    Args:
      loader: a `DataLoader`, or a function that gets the epoch's number and returns one. Order and shuffling are its
        own; a loader itself is read from its beginning, whatever the number of the epoch. To continue a stopped program
        exactly, use a function that seeds the order of each epoch:
        ``lambda epoch: DataLoader(dataset, 128, shuffle=True, generator=torch.Generator().manual_seed(epoch))``.
        ``lambda epoch: loader`` declares that the order of a loader with your own sampler or iterable dataset is the
        same each time.
      batch_size: the length of a full batch, if the loader does not provide it (with a `batch_sampler`, for example);
        without it the first batch of an epoch counts as full.
      last, device, devices, prefetch, host: as for `batches`.

    Returns `Batches` of trees as the loader makes them (lists, for datasets of tuples), with arrays for tensors.
    Tensors are copied, detached from their gradients, bfloat16 and float8 included. `start=n` of `Batches.epoch` reads
    and skips n batches, and so does `Batches.restore`. They raise if the order may differ: for random samplers, unless
    a function makes them with a seeded generator, and for loaders whose order is unknown. A `StatefulDataLoader` of
    torchdata is restored by its own state instead, whatever its order, and reads nothing twice.

    The loader runs in its own thread, `prefetch` batches ahead, or in that of the loop where this takes less time. If
    its workers are forked, there is a `RuntimeWarning`: phlox has threads, and in forked processes these do not exist
    although they may hold locks.

    Raises `MissingExtraError` without torch, and in the loop what the loader raises, and what `batches` raises for
    arrays that no device can hold.
    """
    require("torch")
    source = Stream(
        "from_torch",
        loader,
        open=_open,
        batch_size=batch_size,
        size=_size,
        count=_count,
        unsteady=_unsteady,
        ordered=_ordered,
        host=host,
    )
    return Batches(source, last=last, device=device, devices=devices, prefetch=prefetch)


def _open(loader: Any, at: Position) -> Opened:
    workers = getattr(loader, "num_workers", 0)
    if workers:
        import multiprocessing

        context = getattr(loader, "multiprocessing_context", None) or multiprocessing
        if context.get_start_method() == "fork":
            _warn_of_fork(workers)
    if not (hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")):
        batches = iter(loader)
        shorter = shorten(batches)
        return Opened(batches if shorter is None else shorter, at.batch, final=shorter is not None)
    if at.state is not None:
        loader.load_state_dict(at.state)
    batches = iter(loader)
    # Bound to this iterator where it has a state of its own: the loader's is that of the latest iterator.
    state = getattr(batches, "state_dict", loader.state_dict)
    return Opened(_leaving(loader, batches), 0 if at.state is not None else at.batch, state)


def _leaving(loader: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The batches. Such a loader keeps its iterator, with which its workers would outlive the loop."""
    try:
        yield from batches
    finally:
        if not getattr(loader, "persistent_workers", False):
            loader.load_state_dict({})


def _warn_of_fork(workers: int) -> None:
    warn(
        f"this DataLoader forks {workers} worker processes out of one in which phlox has threads. Workers that use "
        "phlox then hang, and others may. Instead: DataLoader(..., multiprocessing_context='forkserver')",
        RuntimeWarning,
    )


def _unsteady(loader: Any, again: Any) -> str | None:
    data = require("torch").utils.data
    random = (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
    drawn = [sampler for sampler in _samplers(loader) if isinstance(sampler, random)]
    if drawn and again is None:
        return "its sampler draws another order each time"
    if any(sampler.generator is None for sampler in drawn):
        return "its sampler draws another order each time, without a generator that says which"
    # Each epoch advances a generator, so its seed does not determine the order of a later epoch alone.
    others = [getattr(sampler, "generator", None) for sampler in _samplers(again)]
    if any(sampler.generator is other for sampler in drawn for other in others):
        return "its generator is not made for this epoch, and goes on with its numbers"
    return _unknown(loader) if again is None else None


def _ordered(loader: Any) -> str:
    # The order of such a dataset is the user's, who declares by a function that it is the same each time.
    if isinstance(getattr(loader, "dataset", None), require("torch").utils.data.IterableDataset):
        return "lambda epoch: loader"
    return "lambda epoch: DataLoader(..., shuffle=True, generator=torch.Generator().manual_seed(epoch))"


def _samplers(loader: Any) -> list[Any]:
    """All objects that influence the order: samplers, and the samplers inside of them."""
    samplers: list[Any] = []
    waiting = [getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)]
    while waiting:
        sampler = waiting.pop()
        if sampler is not None and not any(sampler is known for known in samplers):
            samplers.append(sampler)
            waiting.append(getattr(sampler, "sampler", None))
    return samplers


def _unknown(loader: Any) -> str | None:
    """The part of a loader because of which its order is not reproducible, or None."""
    torch = require("torch")
    data = torch.utils.data
    steady = (data.SequentialSampler, data.BatchSampler, data.DistributedSampler)  # subclasses may be random
    if isinstance(getattr(loader, "dataset", None), data.IterableDataset):
        return f"nothing is known of the order of a dataset of class {type(loader.dataset).__name__}"
    parts = [loader] if getattr(loader, "sampler", None) is None else _samplers(loader)
    for part in parts:
        if not isinstance(part, Sequence | np.ndarray | torch.Tensor) and type(part) not in steady:
            return f"nothing is known of the order of a {type(part).__name__}"
    return None


def _size(loader: Any) -> int | None:
    return getattr(loader, "batch_size", None)


def _count(loader: Any, last: Last) -> int | None:
    try:
        batches = len(loader)
        if last != "drop" or loader.drop_last:
            return batches
        # Without drop_last the loader's length includes the short batch, if there is one.
        return None if loader.batch_size is None else len(loader.sampler) // loader.batch_size
    except (TypeError, AttributeError):  # a dataset without length, or another class of loader
        return None
