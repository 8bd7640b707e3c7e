"""Where a program runs: its devices and the shardings of its arguments, chosen from the placements of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._base.errors import DeviceError
from .._ir.jaxpr import Jaxpr, JaxprEqn, jaxprs_in, memoized
from .devices import Device, default_device
from .mesh import AbstractMesh, Mesh
from .partition_spec import PartitionSpec
from .placement import Placement, aval_of, context_mesh, is_committed, sharding_of
from .sharding import (
    CompilerSharding,
    HloSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    from_hlo,
    interned,
    one_device_in,
    single_device,
)


class DeviceAssignment(NamedTuple):
    """The devices of a program, whether they are committed, the sharding of each argument, and the mesh (or None)."""

    devices: tuple[Device, ...]
    committed: bool
    shardings: tuple[Sharding, ...]
    mesh: Mesh | None


def assign_devices(
    placements: Sequence[Placement],
    *,
    device: Device | None = None,
    mesh: Mesh | AbstractMesh | None = None,
    shardings: Sequence[Sharding | None] | None = None,
    out_shardings: Sequence[Sharding | None] | None = None,
    num_consts: int = 0,
) -> DeviceAssignment:
    """Chooses the devices of a program, and the shardings of its arguments, from the placements of the arguments.

    `device`, `mesh`, `shardings` and `out_shardings` (one for each argument or result, or None) are requirements of the
    program; arguments with a sharding are moved to it. They and the committed arguments must agree on the devices, else
    a `DeviceError` is raised. Without either the program runs on the default device, to which uncommitted arguments are
    moved, as in JAX. An `AbstractMesh`, of the program or of results, gets these devices. The first `num_consts`
    arguments are closed over: they decide only if nothing else does, and are moved otherwise.
    """
    # An explicit device overrides everything: committed arguments are moved to it, as in JAX.
    if device is not None:
        return DeviceAssignment((device,), True, (single_device(device),) * len(placements), None)
    requirements: Sequence[Sharding | None] = shardings or [None] * len(placements)
    results = [s for s in out_shardings or () if s is not None]
    abstract_meshes = [abstract for s in results if (abstract := _abstract_mesh(s))]
    results = [s for s in results if not _abstract_mesh(s)]
    if isinstance(mesh, AbstractMesh):
        abstract_meshes, mesh = [mesh, *abstract_meshes], None
    required_devices = _required_devices(placements, requirements, results, mesh, num_consts)
    # The mesh of the context is for programs without committed arguments and requirements.
    if required_devices is None and (mesh := context_mesh()) is not None:
        required_devices = tuple(mesh.devices.flat)
    devices = (default_device(),) if required_devices is None else required_devices
    for abstract in abstract_meshes:
        if abstract.size != len(devices):
            raise DeviceError(
                f"{abstract} has no devices of its own, and the arguments are on {len(devices)}",
                instead=f"phlox.set_mesh(mesh) around the call, or arguments on {abstract.size} devices",
                mesh=abstract,
            )
    if mesh is not None and mesh.is_scalar:  # the device is chosen, and there are no axes
        mesh = None
    is_mesh_required = mesh is not None or bool(abstract_meshes)
    if mesh is None:
        # The first mesh names the axes of the program: of requirements, then arguments, then results.
        shardings = (*requirements, *map(sharding_of, placements), *results)
        named = (s for s in shardings if isinstance(s, NamedSharding) and s.devices == devices)
        mesh = next((s.mesh for s in named), None)
        if abstract_meshes:
            mesh = with_devices(abstract_meshes[0], devices, mesh)
    if len(devices) == 1:
        in_shardings = [r or sharding_of(placement) for placement, r in zip(placements, requirements, strict=True)]
        # A memory kind, such as pinned host memory, stays only if the argument is on this device already.
        kinds = [s.kind if s.devices == devices else None for s in in_shardings]
        on_device = tuple(one_device_in(devices[0], kind) for kind in kinds)
        # Nothing is split on one device; the mesh only names the shardings of the results.
        return DeviceAssignment(devices, required_devices is not None, on_device, mesh)
    in_shardings = _in_shardings(placements, requirements, devices, mesh, is_mesh_required)
    return DeviceAssignment(devices, True, tuple(in_shardings), mesh)


def _required_devices(
    placements: Sequence[Placement],
    requirements: Sequence[Sharding | None],
    results: Sequence[Sharding],
    mesh: Mesh | None,
    num_consts: int,
) -> tuple[Device, ...] | None:
    """The devices on which the program, its committed arguments and its results agree; None without any of these."""
    required: dict[tuple[Device, ...], str] = {}
    closed_over: dict[tuple[Device, ...], str] = {}
    for i, (placement, requirement) in enumerate(zip(placements, requirements, strict=True)):
        if requirement is not None:
            required.setdefault(requirement.devices, "the program")
        elif is_committed(placement):
            named = closed_over if i < num_consts else required
            named.setdefault(sharding_of(placement).devices, aval_of(placement).short)
    for sharding in results:
        required.setdefault(sharding.devices, "the results")
    if mesh is not None:
        required.setdefault(tuple(mesh.devices.flat), "the program")
    required = required or closed_over
    if len(required) > 1:
        where = "; ".join(f"{who} on {list(devices)}" for devices, who in required.items())
        raise DeviceError(
            f"arguments are committed to different devices: {where}",
            instead="device_put all of them to one place first",
            devices=list(required),
        )
    return next(iter(required), None)


def _in_shardings(
    placements: Sequence[Placement],
    requirements: Sequence[Sharding | None],
    devices: tuple[Device, ...],
    mesh: Mesh | None,
    is_mesh_required: bool,
) -> list[Sharding]:
    """The sharding of each argument over several devices, expressed by the axes of the mesh if possible."""
    replicated: Sharding = (
        interned(NamedSharding(mesh, PartitionSpec()))
        if mesh is not None
        else interned(CompilerSharding(devices, HloSharding.replicate()))
    )
    shardings = []
    for placement, requirement in zip(placements, requirements, strict=True):
        current = sharding_of(placement)
        target = requirement if requirement is not None else current if current.devices == devices else replicated
        expressed = express_over(mesh, target, aval_of(placement).physical.ndim)
        # A required mesh names all shardings of the program. A sharding that its axes cannot express is replicated.
        shardings.append(replicated if expressed is None and is_mesh_required else expressed or target)
    return shardings


def _abstract_mesh(sharding: Sharding) -> AbstractMesh | None:
    """The mesh of the sharding if it is an `AbstractMesh`, which has no devices; else None."""
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    return mesh if isinstance(mesh, AbstractMesh) else None


def concrete_sharding(sharding: Sharding, assignment: DeviceAssignment) -> Sharding:
    """`sharding`, whose `AbstractMesh`, if it has one, gets the devices of the program."""
    abstract = _abstract_mesh(sharding)
    if abstract is None or not isinstance(sharding, NamedSharding):
        return sharding
    return interned(sharding.update(mesh=with_devices(abstract, assignment.devices, assignment.mesh)))


def with_devices(abstract: AbstractMesh, devices: tuple[Device, ...], known: Mesh | None) -> Mesh:
    """The mesh `known` if it has the axes of `abstract`, else `abstract` over the devices in their order."""
    if known is not None and known.shape_tuple == abstract.shape_tuple:
        return known
    grid = np.array(devices, dtype=object).reshape(abstract.axis_sizes)
    return Mesh(grid, abstract.axis_names, abstract.axis_types)


def express_over(mesh: Mesh | None, sharding: Sharding, ndim: int) -> NamedSharding | None:
    """Expresses a sharding by the axes of `mesh`, as programs for Shardy have one mesh; None if it cannot be."""
    if mesh is None:
        return None
    if isinstance(sharding, NamedSharding) and sharding.mesh.is_equivalent_to(mesh):
        return sharding
    equivalent = from_hlo(sharding.devices, sharding.hlo(ndim), ndim, mesh)
    if not isinstance(equivalent, NamedSharding):
        return None
    # The HLO form does not say the kind of memory.
    return equivalent if sharding.kind is None else equivalent.with_memory_kind(sharding.kind)


def _mesh_of_target(eqn: JaxprEqn) -> Mesh | None:
    """The mesh, without axes, of the one device on which an equation puts its operand."""
    target = eqn.params.get("target")
    return Mesh(np.array(target.devices[0], object), ()) if isinstance(target, SingleDeviceSharding) else None


def mesh_of(jaxpr: Jaxpr) -> Mesh | AbstractMesh | None:
    """The first mesh among the parameters of the equations of `jaxpr`, at any depth, with devices if there is one.

    A value that is put on one device counts as a mesh of this device. Raises `DeviceError` if two of the meshes have
    other devices.
    """

    def find() -> Mesh | AbstractMesh | None:
        concrete = abstract = None
        for eqn in jaxpr.eqns:
            inner = jaxprs_in(eqn.params) if eqn.primitive.holds_programs else ()
            for candidate in (eqn.params.get("mesh"), _mesh_of_target(eqn), *map(mesh_of, inner)):
                if not isinstance(candidate, Mesh):
                    abstract = abstract or candidate
                elif concrete is None:
                    concrete = candidate
                elif candidate is not concrete and {*concrete.devices.flat} != {*candidate.devices.flat}:
                    raise DeviceError(
                        f"one program over different devices: {list(concrete.devices.flat)} and "
                        f"{list(candidate.devices.flat)}",
                        instead="two programs, and phlox.device_put between them",
                        mesh=candidate,
                    )
        return concrete or abstract

    # On the Jaxpr, as inner programs occur in many outer ones, and each lowering asks for the mesh.
    return memoized(jaxpr, "mesh", find)
