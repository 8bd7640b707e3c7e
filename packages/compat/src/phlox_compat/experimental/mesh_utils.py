"""``phlox.experimental.mesh_utils``: arrays of devices for meshes, as in ``jax.experimental.mesh_utils``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from phlox import devices as _devices
from phlox.errors import DeviceError, OptionError
from phlox.extend import publish

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """The devices as an array of this shape, for `phlox.sharding.Mesh`.

    Args:
      mesh_shape: length of each axis of the mesh.
      devices: the devices; None for all of the default platform.
      contiguous_submeshes, allow_split_physical_axes: accepted as in JAX; they concern networks of TPUs.

    Returns:
      An array of devices, in row-major order.

    Raises:
      DeviceError: the number of devices is not the product of `mesh_shape`.

    >>> create_device_mesh((1, 1), phlox.devices()[:1]).shape
    (1, 1)
    """
    mesh_devices = list(_devices() if devices is None else devices)
    shape = tuple(int(n) for n in mesh_shape)
    if math.prod(shape) != len(mesh_devices):
        raise DeviceError(
            f"Number of devices {len(mesh_devices)} must equal the product of mesh_shape {shape}",
            instead=f"a shape with the product {len(mesh_devices)}, or devices=phlox.devices()[:{math.prod(shape)}]",
        )
    return _array(mesh_devices, shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """The devices of several groups, which a slower network connects, as an array for `phlox.sharding.Mesh`.

    Args:
      mesh_shape: length of each axis within a group.
      dcn_mesh_shape: number of groups along each axis.
      devices: the devices; None for all of the default platform.
      process_is_granule: whether the devices of a process form a group, as they must here.
      should_sort_granules_by_key: accepted as in JAX; groups are always sorted.
      allow_split_physical_axes: accepted as in JAX; it concerns networks of TPUs.

    Returns:
      An array of devices, whose shape is the product of both shapes.

    Raises:
      OptionError: `process_is_granule` is False: there are no slices of TPUs.
      DeviceError: the groups are not as many, or not as large, as the shapes say.

    >>> create_hybrid_device_mesh((1, 1), (1, 1), phlox.devices()[:1], process_is_granule=True).shape
    (1, 1)
    """
    if not process_is_granule:
        raise OptionError(
            "create_hybrid_device_mesh: devices here do not have the attribute slice_index",
            instead="process_is_granule=True",
        )
    groups: dict[int, list[Any]] = {}
    for device in _devices() if devices is None else devices:
        groups.setdefault(device.process_index, []).append(device)
    if math.prod(dcn_mesh_shape) != len(groups):
        raise DeviceError(
            f"Number of slices {len(groups)} must equal the product of dcn_mesh_shape {tuple(dcn_mesh_shape)}",
            instead="a process for each group",
        )
    meshes = [create_device_mesh(mesh_shape, groups[key]) for key in sorted(groups)]
    outer = np.empty(len(meshes), object)
    outer[:] = meshes
    return np.block(outer.reshape(tuple(dcn_mesh_shape)).tolist())


def _array(devices: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    result = np.empty(len(devices), object)
    result[:] = devices
    return result.reshape(shape)


publish(__name__)
