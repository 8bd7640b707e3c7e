"""How the arguments and results of an exported function are split over devices.

The devices of a mesh belong to a process. An exported function keeps the axes of its meshes, and each call brings
devices for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..._base.errors import DeviceError
from ..._base.pytree import flatten
from ..._ir.avals import ShapedArray
from ..._xla.device_assignment import assign_devices, concrete_sharding, mesh_of
from ..._xla.mesh import AbstractMesh, Mesh
from ..._xla.placement import is_committed, sharding_of
from ..._xla.sharding import NamedSharding, Sharding
from ..jit.stages import Traced


class Shardings(NamedTuple):
    """The shardings of arguments and results over `devices` devices; None for an array of which nothing is known."""

    devices: int
    arguments: tuple[NamedSharding | None, ...]
    results: tuple[NamedSharding | None, ...]

    def without_devices(self) -> Shardings:
        """The same over the axes of the meshes alone."""
        return Shardings(self.devices, *(tuple(map(_abstract, part)) for part in self[1:]))


def shardings_of(traced: Traced) -> Shardings:
    """Where the traced function would run for its arguments, apart from arrays that it closes over."""
    placements = traced._call.placements
    results = [struct.sharding for struct in flatten(traced.out_info)[0]]
    required = [None if type(p) is ShapedArray else sharding_of(p) for p in placements]
    arguments = [a or b for a, b in zip(traced._described, required, strict=True)]
    meshes = {s.mesh if isinstance(s, NamedSharding) else None for s in (*arguments, *results) if s is not None}
    # Over an `AbstractMesh` alone no devices are needed: each call brings its own.
    if len(meshes) == 1 and isinstance(mesh := meshes.pop(), AbstractMesh):
        return Shardings(mesh.size, tuple(map(_named, arguments)), tuple(map(_named, results)))
    assignment = assign_devices(placements, mesh=mesh_of(traced.jaxpr.jaxpr), out_shardings=results)
    if len(assignment.devices) == 1:
        return Shardings(1, (None,) * len(placements), (None,) * len(results))
    arguments = [s if is_committed(p) else None for p, s in zip(placements, assignment.shardings, strict=True)]
    return Shardings(
        len(assignment.devices),
        tuple(map(_named, arguments)),
        tuple(_named(s and concrete_sharding(s, assignment)) for s in results),
    )


def _named(sharding: Sharding | None) -> NamedSharding | None:
    # Other classes of shardings name devices, and mean nothing in another process.
    return sharding if isinstance(sharding, NamedSharding) else None


def _abstract(sharding: NamedSharding | None) -> NamedSharding | None:
    return sharding and sharding.update(mesh=sharding.mesh.abstract_mesh)


def over_mesh(shardings: Sequence[NamedSharding | None], mesh: Mesh) -> tuple[NamedSharding | None, ...]:
    """The shardings over the devices of `mesh`, which has the axes of their own."""
    for sharding in shardings:
        if sharding is not None and sharding.mesh != mesh.abstract_mesh:
            raise DeviceError(
                f"{mesh} does not match the mesh used for export, {sharding.mesh}",
                instead="a mesh with the same names, sizes and types of axes",
                mesh=mesh,
            )
    return tuple(s and s.update(mesh=mesh) for s in shardings)
