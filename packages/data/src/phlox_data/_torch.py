"""Batches of a PyTorch DataLoader."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from typing import Any

from phlox.extend import warn

from ._batches import Batches
from ._extras import require
from ._last import Last
from ._stream import Stream


def from_torch(
    loader: Any,
    *,
    last: Last = "keep",
    batch_size: int | None = None,
    device: Any = None,
    devices: Sequence[Any] | None = None,
    prefetch: int = 2,
) -> Batches:
    """Batches of a PyTorch `DataLoader`, put on devices while the program computes with earlier ones.

    Args:
      loader: a `DataLoader`, or a function that gets the epoch's number and returns one. Order and shuffling are its
        own; a loader itself is simply read from its beginning, whatever the number of the epoch. So that a stopped
        program can go on exactly, use a function that seeds the order of each epoch:
        ``lambda epoch: DataLoader(dataset, 128, shuffle=True, generator=torch.Generator().manual_seed(epoch))``.
      batch_size: how many examples a full batch has, if the loader does not say (as one made with a `batch_sampler`):
        otherwise the first batch of an epoch counts as full.
      last, device, devices, prefetch: as for `batches`.

    Returns `Batches` of trees as the loader makes them (lists, for datasets of tuples), with arrays for tensors.
    Tensors are copied, detached from their gradients, bfloat16 and float8 included. `start=n` of `Batches.epoch` reads
    n batches and passes over them; it is refused where another order would come.

    The loader runs in one thread of its own, `prefetch` batches ahead. If its workers are forked, a `RuntimeWarning`
    says so: phlox has threads, and forked processes lose them in the middle of what they do.

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
        shuffles=_shuffles,
        ordered="lambda epoch: DataLoader(..., shuffle=True, generator=torch.Generator().manual_seed(epoch))",
    )
    return Batches(source, last=last, device=device, devices=devices, prefetch=prefetch)


def _open(loader: Any) -> Iterator[Any]:
    workers = getattr(loader, "num_workers", 0)
    if workers:
        context = getattr(loader, "multiprocessing_context", None) or multiprocessing
        if context.get_start_method() == "fork":
            _warn_of_fork(workers)
    return iter(loader)


def _warn_of_fork(workers: int) -> None:
    warn(
        f"this DataLoader forks {workers} worker processes out of one in which phlox has threads. Workers that use "
        "phlox then hang, and others may. Instead: DataLoader(..., multiprocessing_context='forkserver')",
        RuntimeWarning,
    )


def _shuffles(loader: Any, for_one_epoch: bool) -> bool:
    data = require("torch").utils.data
    sampler = getattr(loader, "sampler", None)
    inner = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    random = (data.RandomSampler, data.SubsetRandomSampler, data.WeightedRandomSampler)
    # Of a generator the loader takes the next numbers in each epoch, so it fixes the order of one epoch alone.
    return any(
        isinstance(found, random) and not (for_one_epoch and found.generator is not None) for found in (sampler, inner)
    )


def _size(loader: Any) -> int | None:
    return getattr(loader, "batch_size", None)


def _count(loader: Any, last: Last) -> int | None:
    try:
        batches = len(loader)
        if last != "drop" or loader.drop_last:
            return batches
        # Without drop_last the loader counts the short batch as well, if there is one.
        return None if loader.batch_size is None else len(loader.sampler) // loader.batch_size
    except (TypeError, AttributeError):  # a dataset without length, a loader of another kind
        return None
