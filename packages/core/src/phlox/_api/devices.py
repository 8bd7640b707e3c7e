"""Putting arrays on devices and taking them off: device_put, device_get, block_until_ready."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import pytree
from .._base.errors import ArgumentError, DeviceError
from .._ir.avals import typeof_value
from .._ops.shape import copy
from .._trace.trace import Tracer, not_an_array
from .._xla.array import Array, block_until_ready as wait, move, physical, put
from .._xla.devices import Device
from .._xla.mesh import PartitionSpec
from .._xla.permission import asked
from .._xla.sharding import Sharding, single_device


def _sharding(device: Any) -> Sharding | None:
    if device is None or isinstance(device, Sharding):
        return device
    if type(device) is Device:
        return single_device(device)
    if isinstance(device, PartitionSpec):
        raise DeviceError(f"device_put: {device} alone names no devices", instead="NamedSharding(mesh, spec)")
    raise ArgumentError(f"device_put: {device!r} is neither a device nor a sharding", instead="phlox.devices()[0]")


def _put(x: Any, sharding: Sharding | None) -> Any:
    if isinstance(x, Tracer):
        return copy(x)
    if type(x) is Array:
        return x if sharding is None else move(x, sharding)
    aval = typeof_value(x)
    if aval is None:
        if hasattr(x, "__array__") and not isinstance(x, np.ndarray | np.generic):
            return _put(np.asarray(x), sharding)
        raise not_an_array(x, "a leaf given to device_put")
    return put(np.asarray(x, aval.dtype), aval, sharding, committed=sharding is not None)


def device_put(x: Any, device: Any = None) -> Any:
    """Copies a tree of arrays to a device, or lays it out over several.

    Args:
      x: array, number, or a tree of those.
      device: a `Device`, a `Sharding`, or a tree of those that is a prefix of `x`. Without one, arrays stay where they
        are and everything else goes to the default device.

    The result is committed: computations with it run where it lies.

    >>> import phlox
    >>> device_put(np.ones(2, np.float32), phlox.devices()[0])
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = pytree.flatten(x)
    if device is None or type(device) is Device or isinstance(device, Sharding):
        places = [_sharding(device)] * len(leaves)
    else:
        places = [_sharding(d) for d in pytree.broadcast_prefix(device, x, is_leaf=pytree.is_none)]
    with asked():
        return tree.unflatten([_put(leaf, place) for leaf, place in zip(leaves, places, strict=True)])


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays; other leaves stay as they are.

    >>> import phlox.numpy as jnp
    >>> device_get({"a": jnp.arange(2)})
    {'a': array([0, 1], dtype=int32)}
    """

    def get(leaf: Any) -> Any:
        return np.asarray(physical(leaf)) if type(leaf) is Array else leaf

    with asked():
        return pytree.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays of a tree are computed; returns the tree.

    Errors of the computations are raised here.

    >>> import phlox.numpy as jnp
    >>> block_until_ready(jnp.ones(1))
    Array([1.], dtype=float32)
    """
    arrays = [leaf for leaf in pytree.tree_leaves(x) if type(leaf) is Array]
    if arrays:
        wait(arrays)
    return x


def copy_to_host_async(x: Any) -> Any:
    """Starts copying all arrays of a tree to the host; returns the tree.

    >>> copy_to_host_async([1.0])
    [1.0]
    """
    for leaf in pytree.tree_leaves(x):
        if type(leaf) is Array:
            leaf.copy_to_host_async()
    return x
