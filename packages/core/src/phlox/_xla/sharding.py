"""Shardings: how an array is split over devices. Users see subclasses of `Sharding`, C++ code gets `NativeSharding`.

`NativeSharding` derives from jaxlib's Sharding class and defines every attribute that the C++ code reads. The real jax
attaches methods to that base class when it is imported; attributes of the subclass take precedence over them.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from .._base import config
from .._base.beside_jax import offered_to_jax
from .._base.errors import ArgumentError, DeviceError, OptionError, ShapeError, UnsupportedError
from .._base.native import hlo, native
from .._ir.avals import LAZY_ATTRIBUTES, ShapedArray, read_shardings_with
from .._ir.memory_spaces import space_of
from .._ir.sharding_types import Spec, entry_of, spec_over
from .devices import Device, first_device
from .mesh import AbstractMesh, Mesh
from .partition_spec import (
    UNCONSTRAINED,
    PartitionSpec,
    UnreducedKind,
    axes_of,
    check_spec,
    entries_for,
    reductions_in,
    tiles,
)

HloSharding = hlo.HloSharding
Index = tuple[slice, ...]


class NativeSharding(native.Sharding):  # type: ignore[misc]
    """A sharding for jaxlib's functions: a list of devices and an HloSharding. `public` is the `Sharding` it is for."""

    # A slot for each name: when the real jax is imported, it puts read-only properties of such names on jaxlib's class.
    # The slots of a subclass are found before them.
    __slots__ = (
        "__weakref__",
        "_device_assignment",
        "_internal_device_list",
        "_memory_kind",
        "device_set",
        "hlo",
        "memory_kind",
        "public",
    )

    def __init__(self, devices: tuple[Device, ...], hlo: Any, public: Sharding):
        super().__init__()
        self._internal_device_list = native.DeviceList(devices)
        # C++ reads these under several names, depending on the version.
        self._device_assignment = devices
        self.device_set = frozenset(devices)
        self.memory_kind = self._memory_kind = public.kind
        self.hlo = hlo
        self.public = public

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self.hlo

    def shard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.public.shard_shape(shape)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class Sharding:
    """How an array is split over devices: which devices, and which part of the array each one holds."""

    __slots__ = ("__weakref__", "_natives", "devices", "kind")

    #: all devices, in the order of the program's partitions
    devices: tuple[Device, ...]
    #: the kind of memory, where it is not the default of the devices
    kind: str | None

    def __init__(self, devices: tuple[Device, ...], memory_kind: str | None = None):
        self.devices = devices
        self.kind = None if memory_kind is None else _checked_kind(devices, memory_kind)
        # By number of axes: the HLO form of one spec depends on it.
        self._natives: dict[int, Any] = {}

    def __copy__(self) -> Self:
        return self  # shardings do not change, and their devices are those of the process

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def hlo(self, ndim: int) -> Any:
        """The HloSharding for arrays with `ndim` axes."""
        raise NotImplementedError

    def native(self, ndim: int) -> Any:
        """The `NativeSharding` for arrays with `ndim` axes, cached."""
        native_sharding = self._natives.get(ndim)
        if native_sharding is None:
            native_sharding = self._natives[ndim] = NativeSharding(self.devices, self.hlo(ndim), self)
        return native_sharding

    @property
    def _is_concrete(self) -> bool:
        """Raises. If the real jax reads it (in ``zeros_like``), the error says that it got an array of phlox."""
        raise offered_to_jax("an array", self, sys._getframe(1)) or AttributeError("_is_concrete")

    @property
    def device_set(self) -> frozenset[Device]:
        """The devices, without order."""
        return frozenset(self.devices)

    @property
    def has_addressable_devices(self) -> bool:
        """True when some of the devices belong to this process."""
        return bool(self.addressable_devices)

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory in which the devices hold the array, such as 'device' or 'pinned_host'."""
        return self.kind or self.devices[0].default_memory().kind

    def with_memory_kind(self, kind: str) -> Sharding:
        """The same sharding in memory of this kind. Raises `OptionError` for a kind that the devices do not have."""
        raise NotImplementedError

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self.devices)

    @property
    def addressable_devices(self) -> frozenset[Device]:
        """The devices that belong to this process."""
        return frozenset(d for d in self.devices if d.process_index == d.client.process_index())

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """`hlo`: JAX's private name."""
        return self.hlo(num_dimensions)

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """`devices`: JAX's private name."""
        return self.devices

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """`addressable_devices` in the order of `devices`: JAX's private name, by which orbax reads arrays."""
        local = self.addressable_devices
        return tuple(d for d in self.devices if d in local)

    @property
    def is_fully_addressable(self) -> bool:
        """True when all devices belong to this process."""
        return len(self.addressable_devices) == len(self.devices)

    @property
    def is_fully_replicated(self) -> bool:
        """True when every device holds the whole array."""
        raise NotImplementedError

    @property
    def is_unreduced(self) -> bool:
        """True when the devices hold partial results, which together are the array."""
        return False

    def tiles(self, ndim: int) -> list[int]:
        """The number of pieces into which each axis is split."""
        raise NotImplementedError

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part that each device holds.

        Args:
          global_shape: shape of the whole array.

        Returns:
          The shape of one part, with as many axes.

        Raises:
          ShapeError: an axis does not divide.

        >>> phlox.NamedSharding(phlox.make_mesh((1,), ("i",)), phlox.P("i")).shard_shape((4, 3))
        (4, 3)
        """
        pieces = self.tiles(len(global_shape))
        for axis, (size, count) in enumerate(zip(global_shape, pieces, strict=True)):
            if size % count:
                raise ShapeError(
                    f"axis {axis} of an array of shape {global_shape} cannot be split evenly over {count} devices",
                    instead=f"a length that is a multiple of {count}, or pad the array",
                    shape=global_shape,
                    sharding=self,
                )
        return tuple(size // count for size, count in zip(global_shape, pieces, strict=True))

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, Index]:
        """For each device, the slices of the array that it holds."""
        shard = self.shard_shape(global_shape)
        pieces = self.tiles(len(global_shape))
        result: dict[Device, Index] = {}
        for position, device in enumerate(self.devices):
            tile = self._tile_of(position, len(global_shape))
            result[device] = tuple(
                # As in JAX: an axis that is not split has the index ``slice(None)``.
                slice(None) if count == 1 else slice(i * size, (i + 1) * size)
                for i, size, count in zip(tile, shard, pieces, strict=True)
            )
        return result

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, Index]:
        """For each device of this process, the slices of the array that it holds."""
        local = self.addressable_devices
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if d in local}

    def _tile_of(self, position: int, ndim: int) -> tuple[int, ...]:
        """The index of the tile, along each axis, that device number `position` holds."""
        raise NotImplementedError

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """True when both shardings put the same parts of an array with `ndim` axes into the same memories."""
        return self.devices == other.devices and self.kind == other.kind and self.hlo(ndim) == other.hlo(ndim)


def _checked_kind(devices: tuple[Device, ...], kind: str) -> str | None:
    """`kind`, or None if it is the default of the devices. Raises `OptionError` if they have no such memory."""
    local = next((d for d in devices if d.process_index == d.client.process_index()), None)
    if local is None:  # only its own process knows the memories of a device
        return kind
    known = [memory.kind for memory in local.addressable_memories()]
    if kind not in known:
        raise OptionError(
            f"Could not find memory of kind {kind!r} addressable by {local}", instead=", ".join(map(repr, known))
        )
    # The default kind counts as no kind, so that shardings with and without its name are equal.
    return None if kind == local.default_memory().kind else kind


class SingleDeviceSharding(Sharding):
    """The whole array on one device."""

    __slots__ = ()

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        if type(device) is not Device:
            raise ArgumentError(f"SingleDeviceSharding: {device!r:.60} is no device", instead="phlox.devices()[0]")
        super().__init__((device,), memory_kind)

    # `__reduce__` and not slots: a device is found again by its number, and caches must not be pickled.
    def __reduce__(self) -> Any:
        return _single_device_sharding, (self.device, self.kind)

    @property
    def device(self) -> Device:
        """The device."""
        return self.devices[0]

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self.device, memory_kind=kind)

    def hlo(self, ndim: int) -> Any:
        return _replicated

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def tiles(self, ndim: int) -> list[int]:
        return [1] * ndim

    def _tile_of(self, position: int, ndim: int) -> tuple[int, ...]:
        return (0,) * ndim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self.devices == other.devices and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(self.devices)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self.device!r}{_kind_text(self)})"


class NamedSharding(Sharding):
    """The sharding of an array that is split over the axes of a mesh as a `PartitionSpec` describes.

    With an `AbstractMesh`, which has no devices, it describes a sharding, but no array can have it.

    >>> mesh = Mesh(np.array(phlox.devices()[:1]), "data")
    >>> NamedSharding(mesh, PartitionSpec("data")).shard_shape((4, 2))
    (4, 2)
    """

    __slots__ = ("mesh", "spec")

    def __init__(self, mesh: Any, spec: PartitionSpec | tuple[Any, ...], *, memory_kind: str | None = None):
        if isinstance(mesh, Mesh):
            super().__init__(tuple(mesh.devices.flat), memory_kind)
        elif isinstance(mesh, AbstractMesh):
            self.kind = memory_kind
        else:
            raise ArgumentError(f"NamedSharding: {mesh!r:.60} is no mesh", instead="phlox.make_mesh(shape, names)")
        # Not any iterable: the text 'xy' is no spec of two axes.
        if not isinstance(spec, PartitionSpec | tuple | list):
            raise ArgumentError(f"NamedSharding: {spec!r:.60} is no PartitionSpec", instead="phlox.P(...)")
        self.mesh: Mesh = mesh
        self.spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        check_spec(mesh, self.spec)

    def __getattr__(self, name: str) -> Any:
        # Slots that are not set raise AttributeError, which would tell users nothing.
        if name in ("devices", "_natives"):  # not set with an AbstractMesh
            raise DeviceError(f"{self} has no devices", instead="a NamedSharding of a phlox.sharding.Mesh")
        raise AttributeError(f"NamedSharding has no attribute {name!r}")

    def __reduce__(self) -> Any:
        return _named_sharding, (self.mesh, self.spec, self.kind)

    def update(self, mesh: Any = None, spec: Any = None, memory_kind: str | None = None) -> NamedSharding:
        """A copy with another mesh, spec or kind of memory."""
        return NamedSharding(
            self.mesh if mesh is None else mesh,
            self.spec if spec is None else spec,
            memory_kind=memory_kind or self.kind,
        )

    def _too_many_entries(self, ndim: int) -> ShapeError:
        return ShapeError(f"{self.spec} has more entries than the array has axes ({ndim})", spec=self.spec)

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh that the array is not split over, nor unreduced or reduced along."""
        split = {axis for entry in self.spec for axis in axes_of(entry)}
        return frozenset(self.mesh.axis_names) - split - self.spec.unreduced - self.spec.reduced

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises `ShapeError` if the spec has more entries than an array of this shape has axes."""
        if len(aval_shape) < len(self.spec):
            raise self._too_many_entries(len(aval_shape))

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def memory_kind(self) -> str | None:
        return self.kind if isinstance(self.mesh, AbstractMesh) else super().memory_kind

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def _tiling(self, ndim: int) -> tuple[list[int], list[int]]:
        """The numbers of pieces of each array axis, of replicas and of partial results; and the mesh axes in the order
        in which the pieces are numbered."""
        if len(self.spec) > ndim:
            raise self._too_many_entries(ndim)
        pieces = tiles(self.mesh, self.spec, ndim)
        names, sizes = self.mesh.axis_names, self.mesh.axis_sizes
        # Pieces are numbered by the mesh axes in the order in which the spec names them, partial results last.
        cutting = [names.index(axis) for entry in self.spec for axis in axes_of(entry)]
        partial = [i for i, name in enumerate(names) if name in self.spec.unreduced]
        rest = [i for i in range(len(names)) if i not in cutting and i not in partial]
        counts = [math.prod(sizes[i] for i in axes) for axes in (rest, partial)]
        return [*pieces, *counts], cutting + rest + partial

    def hlo(self, ndim: int) -> Any:
        if UNCONSTRAINED in self.spec:
            raise OptionError(
                f"Unconstrained dims are not allowed in the sharding of an array: {self.spec}",
                instead="UNCONSTRAINED only in phlox.lax.with_sharding_constraint",
            )
        # One form for all replicated shardings, or XLA would count equal ones as different.
        if self.is_fully_replicated:
            return _replicated
        (*pieces, replicas, partial), order = self._tiling(ndim)
        groups = {hlo.OpSharding.Type.REPLICATED: replicas, hlo.OpSharding.Type.UNREDUCED: partial}
        groups = {group: count for group, count in groups.items() if count > 1}
        # XLA's compact form: the devices in mesh order, reshaped to the mesh, transposed by `order`.
        result = HloSharding.iota_tile([*pieces, *groups.values()], list(self.mesh.axis_sizes), order, [*groups])
        if self.spec.unreduced_kind not in (None, UnreducedKind.sum):
            if not hasattr(result, "set_reduction_op"):
                raise UnsupportedError(f"{self.spec} with this jaxlib, which adds up partial results", instead="0.12")
            result.set_reduction_op(self.spec.unreduced_kind.value - UnreducedKind.sum.value)
        return result

    def tiles(self, ndim: int) -> list[int]:
        return self._tiling(ndim)[0][:-2]

    def _tile_of(self, position: int, ndim: int) -> tuple[int, ...]:
        sizes = self.mesh.axis_sizes
        in_mesh = np.unravel_index(position, sizes)
        tile = []
        for entry in entries_for(self.spec, ndim):
            index = 0
            for axis in axes_of(entry):
                i = self.mesh.axis_names.index(axis)
                # Several mesh axes on one array axis: the first is the major one, as digits of a number.
                index = index * sizes[i] + int(in_mesh[i])
            tile.append(index)
        return tuple(tile)

    @property
    def is_fully_replicated(self) -> bool:
        return not self.is_unreduced and all(count == 1 for count in tiles(self.mesh, self.spec, len(self.spec)))

    @property
    def is_unreduced(self) -> bool:
        return any(self.mesh.shape[axis] > 1 for axis in self.spec.unreduced)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NamedSharding)
            and self.mesh == other.mesh
            and self.spec == other.spec
            and self.kind == other.kind
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec!r}{_kind_text(self)})"


def _kind_text(sharding: Sharding) -> str:
    return "" if sharding.memory_kind is None else f", memory_kind={sharding.memory_kind}"


def spec_of(sharding: Any, ndim: int) -> Spec | None:
    """The spec in the types of arrays with this sharding: how they are split over the explicit axes of its mesh."""
    if not isinstance(sharding, NamedSharding) or not (explicit := sharding.mesh.explicit_axes):
        return None
    sharding.check_compatible_aval((0,) * ndim)
    # Only explicit axes are part of types: over others the compiler splits as it likes.
    split = [tuple([axis for axis in axes_of(entry) if axis in explicit]) for entry in entries_for(sharding.spec, ndim)]
    return spec_over(sharding.mesh.abstract_mesh, split, reductions_in(sharding.spec))


def sharding_of_result(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """The sharding as a program reports it of a result with `ndim` axes: over explicit axes each one has an entry."""
    if len(sharding.spec) >= ndim or not sharding.mesh.are_all_axes_explicit:
        return sharding
    return sharding.update(spec=sharding.spec.update(entries_for(sharding.spec, ndim)))


def partition_spec(spec: Spec) -> PartitionSpec:
    """The `PartitionSpec` of a type's spec."""
    unreduced, reduced, kind = spec.reductions
    of_kind = UnreducedKind[kind] if unreduced else None
    return PartitionSpec(*spec.partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=of_kind)


def type_with_sharding(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """`aval` as the type of arrays with this sharding."""
    return aval.with_spec(spec_of(sharding, aval.ndim)).in_space(space_of(sharding.kind))


def _sharding_in_type(aval: ShapedArray) -> NamedSharding:
    """The attribute `sharding` of types. A mesh without axes means in JAX that the type does not name a sharding."""
    if aval.spec is None:
        context = config.current().mesh
        mesh = AbstractMesh((), ()) if context is None else context.abstract_mesh
        return NamedSharding(mesh, PartitionSpec(*(None,) * aval.ndim))
    return NamedSharding(aval.spec.mesh, partition_spec(aval.spec))


# Types are of a lower layer, which cannot import shardings.
LAZY_ATTRIBUTES["sharding"] = _sharding_in_type
read_shardings_with(spec_of)


class CompilerSharding(Sharding):
    """A sharding that the compiler chose and that no `NamedSharding` was found for."""

    __slots__ = ("_hlo",)

    def __init__(self, devices: tuple[Device, ...], hlo: Any, memory_kind: str | None = None):
        super().__init__(devices, memory_kind)
        self._hlo = hlo

    def __reduce__(self) -> Any:
        return CompilerSharding, (self.devices, self._hlo, self.kind)

    def with_memory_kind(self, kind: str) -> CompilerSharding:
        return CompilerSharding(self.devices, self._hlo, kind)

    def hlo(self, ndim: int) -> Any:
        return self._hlo

    @property
    def is_fully_replicated(self) -> bool:
        return self._hlo.is_replicated()

    def tiles(self, ndim: int) -> list[int]:
        # The dimensions may be followed by one for replicas.
        return [1] * ndim if self.is_fully_replicated else list(self._hlo.tile_assignment_dimensions())[:ndim]

    def _tile_of(self, position: int, ndim: int) -> tuple[int, ...]:
        if self.is_fully_replicated:
            return (0,) * ndim
        shape = list(self._hlo.tile_assignment_dimensions())
        order = list(self._hlo.tile_assignment_devices())
        # The list has the devices in the order of their tiles. A last dimension for replicas is cut off.
        return tuple(int(i) for i in np.unravel_index(order.index(position), shape)[:ndim])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CompilerSharding)
            and self.devices == other.devices
            and self._hlo == other._hlo
            and self.kind == other.kind
        )

    def __hash__(self) -> int:
        return hash((self.devices, hash(self._hlo)))

    def __repr__(self) -> str:
        return f"CompilerSharding({self._hlo!r}{_kind_text(self)})"


# Pickles call these by their names: the classes take the kind of memory by keyword.


def _single_device_sharding(device: Device, kind: str | None) -> SingleDeviceSharding:
    return SingleDeviceSharding(device, memory_kind=kind)


def _named_sharding(mesh: Any, spec: PartitionSpec, kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=kind)


_replicated = HloSharding.replicate()


_single: dict[Device, SingleDeviceSharding] = {}


def single_device(device: Device) -> SingleDeviceSharding:
    """The unique `SingleDeviceSharding` of `device`, in its default memory."""
    sharding = _single.get(device)
    # setdefault is atomic, so two threads get the same object.
    return _single.setdefault(device, SingleDeviceSharding(device)) if sharding is None else sharding


def one_device_in(device: Device, kind: str | None) -> SingleDeviceSharding:
    """The `SingleDeviceSharding` of `device` in memory of this kind; None for its default."""
    return single_device(device) if kind is None else SingleDeviceSharding(device, memory_kind=kind)


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays on one device.

    Args:
      device: the device.
      memory_kind: the kind of its memory, such as 'pinned_host'; None for its default.

    Returns:
      A `SingleDeviceSharding`.

    Raises:
      OptionError: the device has no memory of this kind.

    >>> make_single_device_sharding(phlox.devices()[0]).num_devices
    1
    """
    sharding = SingleDeviceSharding(device, memory_kind=memory_kind)
    return sharding if sharding.kind else single_device(device)


# A cache by equality whose value is its first key. The least recently used ones are dropped, which costs a miss only.
@functools.lru_cache(4096)
def interned(sharding: Sharding) -> Sharding:
    """The first sharding that was passed here and equals this one, so that caches can compare shardings by identity."""
    if isinstance(sharding, SingleDeviceSharding) and sharding.kind is None:
        return single_device(sharding.device)
    return sharding


def default_sharding() -> SingleDeviceSharding:
    """The sharding of arrays whose placement is their type: the first device."""
    return single_device(first_device())


def from_hlo(devices: tuple[Device, ...], hlo: Any, ndim: int, mesh: Mesh | None) -> Sharding:
    """The sharding for an HloSharding of a compiled program: a `NamedSharding` of `mesh` if a simple spec fits."""
    if len(devices) == 1 and mesh is None:
        return single_device(devices[0])
    if mesh is not None:
        # After the axes of the array there may be one for replicas.
        pieces = [1] * ndim if hlo.is_replicated() else list(hlo.tile_assignment_dimensions())[:ndim]
        # Meshes have few axes, so that few specs are tried.
        for spec in _specs_with(mesh, pieces):
            candidate = NamedSharding(mesh, spec)
            if candidate.hlo(ndim) == hlo:
                return interned(candidate)
    return interned(CompilerSharding(devices, hlo))


def _specs_with(mesh: Mesh, pieces: list[int]) -> Iterator[PartitionSpec]:
    """The specs by which the axes of an array are split into these numbers of pieces."""
    # Trailing axes that are not split are left out, as users write specs.
    while pieces and pieces[-1] == 1:
        pieces = pieces[:-1]
    for entries in _splits(dict(mesh.shape), pieces):
        yield PartitionSpec(*map(entry_of, entries))


def _splits(sizes: dict[Any, int], pieces: list[int]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """For each number of pieces, mesh axes whose lengths have this product; no mesh axis is used twice."""
    if not pieces:
        yield ()
        return
    # An axis of length 1 splits nothing, and would only multiply the candidates.
    longer = [name for name, size in sizes.items() if size > 1]
    for count in range(len(longer) + 1) if pieces[0] > 1 else (0,):
        for names in itertools.permutations(longer, count):
            if math.prod(sizes[name] for name in names) == pieces[0]:
                rest = {name: size for name, size in sizes.items() if name not in names}
                for others in _splits(rest, pieces[1:]):
                    yield (names, *others)
