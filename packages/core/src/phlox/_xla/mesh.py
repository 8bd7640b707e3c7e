"""Meshes of devices with named axes, and which axis of an array goes along which (``jax.sharding``)."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import numpy as np

from .._base.errors import DeviceError, ShapeError


class Mesh:
    """An array of devices whose axes have names.

    Args:
      devices: array (or nested list) of devices; one axis for each name.
      axis_names: a name, or a tuple of names.

    >>> import phlox
    >>> dict(Mesh(np.array(phlox.devices()[:1]), ("data",)).shape)
    {'data': 1}
    """

    __slots__ = ("_hash", "axis_names", "devices")

    def __init__(self, devices: Any, axis_names: str | tuple[Any, ...]):
        grid = np.asarray(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(names):
            raise ShapeError(
                f"Mesh: {len(names)} axis names {names} for an array of devices of shape {grid.shape}",
                instead="one name for each axis of the array of devices",
            )
        if len(set(names)) != len(names):
            raise ShapeError(f"Mesh: axis names {names} are not distinct")
        if grid.size == 0:
            raise DeviceError("Mesh: no devices")
        self.devices = grid
        self.axis_names = names
        self._hash = hash((names, grid.shape, tuple(grid.flat)))

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """Size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.devices.size

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes, in order."""
        return self.devices.shape

    @property
    def empty(self) -> bool:
        """False: a mesh has at least one device."""
        return False

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and self.axis_names == other.axis_names
            and self.devices.shape == other.devices.shape
            and tuple(self.devices.flat) == tuple(other.devices.flat)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"Mesh({sizes})"


class PartitionSpec(tuple[Any, ...]):
    """For each axis of an array, the mesh axis (or tuple of them) it is split over, or None.

    >>> PartitionSpec("data", None)
    PartitionSpec('data', None)
    """

    __slots__ = ()

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        return super().__new__(cls, (tuple(p) if isinstance(p, list) else p for p in partitions))

    def __repr__(self) -> str:
        return "PartitionSpec" + (f"({self[0]!r},)" if len(self) == 1 else super().__repr__())

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)


P = PartitionSpec


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The mesh axes that one entry of a PartitionSpec names."""
    if entry is None:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def check_spec(mesh: Mesh, spec: PartitionSpec) -> None:
    """Raises `ShapeError` when `spec` names an axis twice or one that `mesh` has not."""
    named = [axis for entry in spec for axis in axes_of(entry)]
    unknown = [axis for axis in named if axis not in mesh.axis_names]
    if unknown or len(set(named)) != len(named):
        why = f"has no axis {unknown[0]!r}" if unknown else "may use each axis once"
        raise ShapeError(f"{spec} does not fit {mesh}, which {why}", mesh=mesh, spec=spec)


def tiles(mesh: Mesh, spec: PartitionSpec, ndim: int) -> list[int]:
    """How many pieces each of `ndim` axes is cut into."""
    sizes = mesh.shape
    entries = (*spec, *((None,) * (ndim - len(spec))))
    return [math.prod(sizes[axis] for axis in axes_of(entry)) for entry in entries]
