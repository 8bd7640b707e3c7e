"""The placement of batches: on one device, by a sharding, or split into equal parts for the devices of a pmap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import phlox
from phlox.errors import ArgumentError, AxisSizeError
from phlox.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from ._examples import Examples
from ._last import Padded
from ._memory import Memory
from ._shares import Shares, of_rows


class Placement:
    """Copies batches to devices.

    Attributes:
      parts: the number of devices for which batches are split, or None if batches keep their shape.
      shares: how this process reads its share, if the devices belong to several processes.
    """

    __slots__ = ("_on_one", "_tiles", "parts", "shares", "target")

    def __init__(self, device: Any, devices: Sequence[Any] | None):
        if device is not None and devices is not None:
            raise ArgumentError("device and devices were both given", instead="one of them", argument="devices")
        if not (device is None or isinstance(device, phlox.Device | Sharding)):
            raise ArgumentError(
                f"device={device!r} is neither a device nor a sharding", instead="phlox.devices()[0]", argument="device"
            )
        self.target: Any = device
        self.parts: int | None = None
        self.shares: Shares | None = None
        self._tiles = of_rows(device).tiles(1)[0] if isinstance(device, NamedSharding) else 1
        if isinstance(device, Sharding) and not device.is_fully_addressable:
            if not isinstance(device, NamedSharding):
                raise ArgumentError(
                    f"device={device!r} spreads batches over several processes and is no NamedSharding",
                    instead='NamedSharding(mesh, P("data"))',
                    argument="device",
                )
            self.shares = Shares(device)
        if devices is not None:
            row = list(devices) if isinstance(devices, Sequence) else []
            if not row or not all(isinstance(d, phlox.Device) for d in row):
                raise ArgumentError(
                    f"devices={devices!r} is no list of devices", instead="phlox.local_devices()", argument="devices"
                )
            if any(d.process_index != phlox.process_index() for d in row):
                raise ArgumentError(
                    "devices has some of other processes, whose batches this one cannot split",
                    instead='device=NamedSharding(mesh, P("data")), for one program over all processes',
                    argument="devices",
                )
            # The sharding that pmap needs for its arguments, so that it copies nothing.
            self.target = NamedSharding(Mesh(np.array(row), ("pmap",)), PartitionSpec("pmap"))
            self.parts = len(row)
        self._on_one = not isinstance(self.target, Sharding) or len(self.target.device_set) == 1

    def check(self, length: int, what: str) -> None:
        """Raises `AxisSizeError` if a batch of this length cannot be split into equal parts; `what` describes it."""
        parts = self._tiles if self.parts is None else self.parts
        if length % parts:
            over = f"{parts} devices" if self.parts else f"the {parts} parts of device={self.target.spec}"
            raise AxisSizeError(
                f"{what} of {length} examples cannot be split evenly over {over}",
                instead=f"a batch size that is a multiple of {parts}; last='drop' or 'pad' for the last batch",
                sizes=[("", 0, (length,))],
                devices=parts,
            )

    def put(self, pairs: Iterator[tuple[Examples, np.ndarray | None]]) -> Iterator[Any]:
        """Yields the batches on their devices, as trees, or as `Padded` if there is a mask."""
        memory = Memory()
        for batch, mask in pairs:
            self.check(len(batch), "a batch")
            rows = enumerate(batch.leaves)
            put = iter(self._put([leaf for i, leaf in rows if i not in batch.host], None if batch.final else memory))
            leaves = [
                self._split(np.array(leaf)) if i in batch.host else next(put) for i, leaf in enumerate(batch.leaves)
            ]
            tree = batch.structure.unflatten(leaves)
            yield tree if mask is None else Padded(tree, self._put([mask])[0])

    def _split(self, leaf: np.ndarray) -> np.ndarray:
        return leaf if self.parts is None else leaf.reshape(self.parts, len(leaf) // self.parts, *leaf.shape[1:])

    def _put(self, leaves: list[np.ndarray], memory: Memory | None = None) -> Any:
        """The leaves on their devices. Those that somebody may write to, as loaders do, come with memory for a copy."""
        if self.parts is not None:
            leaves = [self._split(leaf) for leaf in leaves]
        if not self._on_one:  # device_put makes copies then, one for each device
            return phlox.device_put(leaves, self.target)
        if memory is not None:
            leaves = [memory.copy(leaf) for leaf in leaves]
        return phlox.device_put(leaves, self.target, may_alias=True)
