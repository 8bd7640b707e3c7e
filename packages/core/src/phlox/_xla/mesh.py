"""Meshes of devices with named axes (``jax.sharding``)."""

from __future__ import annotations

import enum
import functools
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import config
from .._base.errors import DeviceError, ShapeError


class AxisType(enum.Enum):
    """The type of a mesh axis: what decides how arrays are split over it.

    `Auto`: the compiler. `Explicit`: the types of arrays, as ``f32[8@x,4]``, which follow from those of the operands of
    an operation. `Manual`: the function inside of `shard_map`.
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class Axes:
    """Base class of `Mesh` and `AbstractMesh`: named axes with sizes and types."""

    __slots__ = ("axis_names", "axis_sizes", "axis_types")

    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """Size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Name and size of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """True when the mesh has no axes."""
        return not self.axis_names

    def _of(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type `Auto`."""
        return self._of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type `Explicit`."""
        return self._of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type `Manual`."""
        return self._of(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """True when the mesh has axes and all are of type `Auto`."""
        return not self.empty and all(t is AxisType.Auto for t in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        """True when the mesh has axes and all are of type `Explicit`."""
        return not self.empty and all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        """True when the mesh has axes and all are of type `Manual`."""
        return not self.empty and all(t is AxisType.Manual for t in self.axis_types)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """True when the mesh has axes and none is of type `Auto`."""
        return not self.empty and not self.auto_axes

    def __str__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"{type(self).__name__}({sizes or '()'}, axis_types={self.axis_types})"

    __repr__ = __str__


def _types_for(names: tuple[Any, ...], axis_types: AxisType | Sequence[AxisType] | None) -> tuple[AxisType, ...]:
    # As in JAX, a `Mesh` that is written out has Auto axes; those of `make_mesh` are Explicit.
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    types = (axis_types,) * len(names) if isinstance(axis_types, AxisType) else tuple(axis_types)
    if len(types) != len(names) or not all(isinstance(t, AxisType) for t in types):
        raise ShapeError(
            f"a mesh with axes {names} got axis_types={axis_types!r}", instead="one AxisType for each name"
        )
    return types


@dataclass(frozen=True)
class AbstractDevice:
    """A description of a kind of device."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self.fields_text()})"

    def fields_text(self) -> str:
        """The fields as they are printed, also in an `AbstractMesh`."""
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


@functools.cache
def _abstract_device(device: Any) -> AbstractDevice:
    cores = {"tpu": "num_cores", "gpu": "core_count"}.get(device.platform)
    return AbstractDevice(device.device_kind, getattr(device, cores, None) if cores else None, device.platform)


class AbstractMesh(Axes):
    """The axes of a mesh without its devices. `abstract_device` describes these, and does not count in comparisons.

    >>> AbstractMesh((2, 4), ("data", "model")).shape_tuple
    (('data', 2), ('model', 4))
    """

    __slots__ = ("abstract_device",)

    def __init__(
        self,
        axis_sizes: tuple[int, ...],
        axis_names: tuple[str, ...],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        self.axis_sizes = tuple(axis_sizes)
        self.axis_names = tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ShapeError(f"AbstractMesh: {len(self.axis_names)} names for axes of sizes {self.axis_sizes}")
        # Explicit by default, as in jax 0.12. Before that it was Auto.
        self.axis_types = _types_for(self.axis_names, AxisType.Explicit if axis_types is None else axis_types)
        self.abstract_device = abstract_device

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """This mesh."""
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None) -> AbstractMesh:
        """A copy with some attributes replaced."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=self.abstract_device,
        )

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """A copy with other types for the axes that are named."""
        kinds = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in kinds))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.abstract_device is None else f"{text[:-1]}, {self.abstract_device.fields_text()})"

    __repr__ = __str__


class Mesh(Axes):
    """An array of devices whose axes have names.

    Args:
      devices: array (or nested list) of devices; one axis for each name.
      axis_names: a name, or a tuple of names.
      axis_types: an `AxisType` for each axis; by default all are `Auto`.

    ``with mesh:`` sets the current mesh, as `phlox.set_mesh` does.

    >>> dict(Mesh(np.array(phlox.devices()[:1]), ("data",)).shape)
    {'data': 1}
    """

    __slots__ = ("_entered", "_hash", "devices")

    def __init__(self, devices: Any, axis_names: str | Sequence[Any], axis_types: Sequence[AxisType] | None = None):
        grid = np.array(devices, dtype=object)
        grid.flags.writeable = False  # the hash is that of these devices
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if grid.ndim != len(names):
            raise ShapeError(
                f"Mesh requires the ndim of its first argument, an array of devices of shape {grid.shape}, to be the "
                f"number of axis names {names}",
                instead="one name for each axis of the array of devices",
            )
        if len(set(names)) != len(names):
            raise ShapeError(f"Mesh: axis names {names} are not distinct")
        if None in names:
            raise ShapeError(f"Mesh: axis names {names}: None is no name, as P(None) names no axis")
        if grid.size == 0:
            raise DeviceError("Mesh: no devices")
        strangers = [d for d in grid.flat if not hasattr(d, "process_index")]
        if strangers and names:  # the empty mesh, that of no context, holds None
            raise DeviceError(f"Mesh: {strangers[0]!r:.60} is no device", instead="phlox.devices()")
        self.devices = grid
        self.axis_names = names
        self.axis_sizes = grid.shape
        self.axis_types = _types_for(names, axis_types)
        # Hashed once: meshes are in cache keys, and hashing devices takes time in proportion to their number.
        self._hash = hash((names, grid.shape, tuple(grid.flat), self.axis_types))
        self._entered: list[Any] = []

    def __repr__(self) -> str:
        types = "" if self.empty else f", axis_types={self.axis_types}"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}{types})"

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, in the shape of the mesh."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [] if self.empty else [d for d in self.devices.flat if d.process_index == d.client.process_index()]

    @property
    def local_mesh(self) -> Mesh:
        """The mesh of this process's devices. Raises `DeviceError` if they are not a rectangular block of this mesh."""
        mine = np.isin(self.device_ids, [d.id for d in self.local_devices])
        block = tuple(slice(at.min(), at.max() + 1) if at.size else slice(0) for at in np.nonzero(mine))
        if not mine[block].all():
            raise DeviceError(f"the devices {self.local_devices} are no block of {self}", mesh=self)
        return self.update(devices=self.devices[block])

    @property
    def is_multi_process(self) -> bool:
        """True when some devices belong to other processes."""
        return not self.empty and len(self.local_devices) != self.size

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes without the devices."""
        device = None if self.empty else _abstract_device(self.devices.flat[0])
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """A copy with some attributes replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        scope = config.scope(entered_mesh=self)
        scope.__enter__()
        # A stack, as the same mesh may be entered again inside of its own block.
        self._entered.append(scope)
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)

    def __eq__(self, other: object) -> bool:
        # Usually the same object, as meshes in shardings and settings are.
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and self.axis_names == other.axis_names
            and self.devices.shape == other.devices.shape
            and tuple(self.devices.flat) == tuple(other.devices.flat)
            and self.axis_types == other.axis_types
        )

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __copy__(self) -> Mesh:
        return self

    def __deepcopy__(self, memo: Any) -> Mesh:
        return self  # it does not change, and its devices are those of the process

    @property
    def is_scalar(self) -> bool:
        """True for one device without an axis."""
        return self.size == 1 and self.empty

    def is_equivalent_to(self, other: Mesh) -> bool:
        """True when axis names, sizes and devices are equal, so that equal specs are equal shardings on both meshes."""
        return self is other or (
            self.shape_tuple == other.shape_tuple and tuple(self.devices.flat) == tuple(other.devices.flat)
        )

    def __hash__(self) -> int:
        return self._hash


def current_mesh() -> Mesh | AbstractMesh | None:
    """The mesh for specs that are given without one: that of `set_mesh`, or of ``with mesh:``, or None. It is abstract
    inside of `use_abstract_mesh`."""
    settings = config.current()
    mesh: Mesh | AbstractMesh | None = settings.entered_mesh if settings.mesh is None else settings.mesh
    return mesh
