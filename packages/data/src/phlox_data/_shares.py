"""Several processes: each reads the examples of its own devices, and all together make global arrays of them.

A batch is that of one process with the same seed. Which of its rows a process reads follows from the sharding alone, so
the processes need not talk to each other, and every example of an epoch arrives exactly once.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import phlox
from phlox.errors import ArgumentError
from phlox.sharding import NamedSharding, PartitionSpec

from ._examples import Examples
from ._last import Last, Note, Padded
from ._memory import Memory

if TYPE_CHECKING:
    from ._indexed import Indexed


class Shares:
    """The shares of this process in batches that lie on devices of several processes.

    Args:
      sharding: of the global arrays.
    """

    def __init__(self, sharding: NamedSharding):
        self._sharding = sharding
        self._of_rows = of_rows(sharding)
        if not self._of_rows.addressable_devices:
            raise ArgumentError(
                f"device={sharding} has no device of process {phlox.process_index()}",
                instead="a mesh with devices of each process that reads",
                argument="device",
            )

    def rows(self, length: int) -> np.ndarray:
        """The positions in a batch of `length` examples that devices of this process hold, in ascending order."""
        return _rows(self._of_rows, length)

    def check(self, source: Any) -> None:
        """Raises `ArgumentError` for sources that cannot read examples by their numbers."""
        if not hasattr(source, "numbers"):
            raise ArgumentError(
                "this source gives whole batches, while device= spreads them over several processes, of which each "
                "must read its own share",
                instead="batches, from_tfds or from_huggingface, which read by number; or a loader of this process's "
                "share (DataLoader with a DistributedSampler, dataset.shard(process_count, process_index)) without "
                "device=, and phlox.make_array_from_process_local_data(sharding, batch) in the loop",
                argument="device",
            )

    def put(self, source: Any, epoch: int, start: int, last: Last, notes: deque[Note]) -> Iterator[Any]:
        """Yields the batches of an epoch as global arrays, as trees or as `Padded`; notes as those of `finish`."""
        indexed: Indexed = source  # see `check`
        size, memory = indexed.batch_size, Memory()
        for numbers in indexed.numbers(epoch, start):
            length = len(numbers)
            if length < size and last == "drop":
                continue
            rows = self.rows(size if last == "pad" else length)
            # Padding repeats the last example, as `Examples.filled_up` does.
            batch = indexed.take(numbers[np.minimum(rows, length - 1)], memory)
            notes.append(Note(length, None))
            if last != "pad":
                yield self._tree(batch, rows, length)
            else:
                mask = self._global(rows < length, rows, size, self._of_rows)
                yield Padded(self._tree(batch, rows, size), mask)

    def _tree(self, batch: Examples, rows: np.ndarray, length: int) -> Any:
        leaves = [
            np.array(leaf) if i in batch.host else self._global(leaf, rows, length, self._sharding)
            for i, leaf in enumerate(batch.leaves)
        ]
        return batch.structure.unflatten(leaves)

    @staticmethod
    def _global(held: np.ndarray, rows: np.ndarray, length: int, sharding: NamedSharding) -> Any:
        """The global array of which this process has these rows."""

        def part(index: tuple[slice, ...]) -> np.ndarray:
            first, end, _ = index[0].indices(length)
            # The rows of a device follow each other in the batch, hence also in what is held of it.
            at = int(np.searchsorted(rows, first))
            return held[(slice(at, at + end - first), *index[1:])]

        return phlox.make_array_from_callback((length, *held.shape[1:]), sharding, part)


def of_rows(sharding: NamedSharding) -> NamedSharding:
    """The sharding of arrays that have only the first axis."""
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[:1]))


@functools.lru_cache(16)
def _rows(sharding: NamedSharding, length: int) -> np.ndarray:
    held = [index[0].indices(length) for index in sharding.addressable_devices_indices_map((length,)).values()]
    rows = np.unique(np.concatenate([np.arange(first, end) for first, end, _ in held]))
    rows.flags.writeable = False
    return rows
