"""Placements of arrays, their part in the cache keys of compiled programs: a type, or a `Placed` with a sharding.

Placements are interned, as avals are, so that they hash and compare by address.
"""

from __future__ import annotations

from typing import Any

from .._base import config
from .._base.interning import Interned
from .._ir.avals import ShapedArray
from .devices import default_device
from .mesh import Mesh
from .partition_spec import PartitionSpec
from .sharding import (
    NamedSharding,
    NativeSharding,
    Sharding,
    default_sharding,
    interned,
    sharding_of_result,
    single_device,
    type_with_sharding,
)


class Placed:
    """The placement of an array that does not simply lie uncommitted on the first device.

    A computation runs on the devices of its committed arguments; an uncommitted array may be moved.
    """

    __slots__ = ("__weakref__", "aval", "committed", "sharding")

    def __init__(self, aval: ShapedArray, sharding: Sharding, committed: bool):
        self.aval = aval
        self.sharding = sharding
        self.committed = committed

    def __repr__(self) -> str:
        return f"{self.aval.short} on {self.sharding}"


Placement = ShapedArray | Placed
_placed: Interned[Placed] = Interned()


def placement_for(aval: ShapedArray, sharding: Sharding, committed: bool) -> Placement:
    """The placement of arrays with this type and sharding; equal placements are one object.

    An uncommitted array on the first device, as nearly all arrays are, has its type as placement. The type in a
    placement says how the sharding splits the array over explicit axes.
    """
    # Equal shardings are one object from here on, so that placements can be looked up by identity.
    sharding = interned(sharding)
    # Only these have axes, or another memory than that of the device, that a type could name.
    if aval.annotated or type(sharding) is NamedSharding or sharding.kind is not None:
        aval = type_with_sharding(aval, sharding)
    # The plain type as placement: nearly all arrays then need no further object, and eager and jitted calls share it.
    if not committed and sharding is default_sharding():
        return aval
    full = (aval, sharding, committed)
    placement = _placed.get(full)
    if placement is None:
        placement = _placed.add(full, lambda: Placed(*full))
    return placement


def context_mesh() -> Mesh | None:
    """The mesh set by `set_mesh`. New arrays are replicated over it; programs with uncommitted arguments run on it.

    None without such a mesh, and for a mesh of several processes.
    """
    mesh = config.current().device_context
    # Over several processes, each new array would be a collective operation.
    if type(mesh) is not Mesh or len(mesh.local_devices) != mesh.size:
        return None
    return mesh


def sharding_of_new(ndim: int = 0) -> tuple[Sharding, bool]:
    """The sharding of a new array, and whether it is committed: that of the mesh of the context, with an entry for each
    of `ndim` axes, or else of the default device."""
    mesh = context_mesh()
    if mesh is None:
        return single_device(default_device()), False
    return sharding_of_result(NamedSharding(mesh, PartitionSpec()), ndim), True


def aval_of(placement: Placement) -> ShapedArray:
    """The type of arrays with this placement."""
    return placement if type(placement) is ShapedArray else placement.aval  # type: ignore[union-attr]


def sharding_of(placement: Placement) -> Sharding:
    """The sharding of arrays with this placement."""
    return default_sharding() if type(placement) is ShapedArray else placement.sharding


def sharding_of_buffer(buf: Any) -> Sharding | None:
    """The sharding of a buffer, as users see it; None for buffers that are not phlox's.

    Those of the real jax have its own types. If phlox stands in the place of jax, jaxlib takes the types of copies on
    the host, which it makes by itself, from the modules of phlox, and their shardings are public ones.
    """
    placed = buf._sharding
    if type(buf.aval) is not ShapedArray or isinstance(placed, Sharding):
        return None
    return placed.public if isinstance(placed, NativeSharding) else single_device(placed._devices[0])


def is_committed(placement: Placement) -> bool:
    """Whether arrays with this placement are committed to their devices."""
    return type(placement) is not ShapedArray and placement.committed  # type: ignore[union-attr]
