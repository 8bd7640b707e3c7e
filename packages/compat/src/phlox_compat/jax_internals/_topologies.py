"""``jax.experimental.topologies``: the devices that are there, as a description that a mesh is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from phlox import devices
from phlox.errors import UnsupportedError
from phlox.sharding import Mesh

from ..experimental import mesh_utils


class TopologyDescription:
    """A list of devices."""

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of a platform; None: the default one."""
    return TopologyDescription(devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **_options: Any) -> NoReturn:
    """Raises: programs are compiled for devices that are there."""
    raise UnsupportedError(
        f"get_topology_desc({topology_name!r}): programs are compiled for devices that are there",
        instead="topologies.get_attached_topology(), or jax.export for another platform",
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of the devices of a topology."""
    grid = mesh_utils.create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names)
