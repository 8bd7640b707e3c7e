"""`device_put`, `device_get`, `block_until_ready` and `copy_to_host_async`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.errors import ArgumentError, OptionError
from ..._ir import dtypes
from ..._ir.avals import typeof_value
from ..._ir.memory_spaces import Space
from ..._ops.spmd.reshard import apply_sharding, sharding_behind, to_memory, transfer
from ..._ops.structure.shape import copy
from ..._trace.trace import Tracer, not_an_array
from ..._xla.array import Array, ArrayImpl, block_until_ready as wait, put
from ..._xla.devices import Device, default_backend, default_device
from ..._xla.host_values import as_array, as_numpy
from ..._xla.mesh import AbstractMesh
from ..._xla.moves import move
from ..._xla.sharding import Sharding, single_device
from ..._xla.transfer_guard import explicit
from .meshes import named


def _sharding(device: Any, x: Any = None) -> Sharding | None:
    device = named("device_put", device)
    if device is None or isinstance(device, Sharding):
        return device
    if type(device) is Device:
        return single_device(device)
    if isinstance(device, Space):
        return _sharding_in(device, x)
    from ..._xla.layout import Format  # rare, and made of dataclasses, which take their time to define

    if isinstance(device, Format):
        return device.sharding_in_order("device_put", np.ndim(x))
    raise ArgumentError(
        f"device_put: Received invalid value {device!r}, which is neither a device nor a sharding",
        instead="phlox.devices()[0]",
    )


def _sharding_in(space: Space, x: Any) -> Sharding | None:
    """The sharding of `x` in memory of this kind."""
    if space is Space.Any:
        return None
    # An array keeps its devices, and only the kind of memory changes.
    here = x.sharding if type(x) is ArrayImpl else single_device(default_device())
    default = here.devices[0].default_memory().kind
    return here.with_memory_kind(default if space is Space.Device else "pinned_host")


def _put(x: Any, sharding: Sharding | None, fresh: bool, share: bool, binds: bool = True) -> Any:
    if isinstance(x, Tracer):
        return copy(x) if sharding is None else _put_tracer(x, sharding, binds)
    if type(x) is ArrayImpl:
        there = x if sharding is None else move(x, sharding)
        # `fresh` promises memory of its own, and a move to the same place copies nothing.
        return there.__deepcopy__({}) if fresh else there
    aval = typeof_value(x)
    if aval is None:
        # Objects of other libraries that convert to NumPy, once and not in a loop.
        if hasattr(x, "__array__") and not isinstance(x, np.ndarray | np.generic):
            return _put(np.asarray(x), sharding, fresh, share)
        raise not_an_array(x, "a leaf given to device_put")
    if aval.dtype == dtypes.float0:  # tangents of integers, which no device can hold
        return x
    # As in JAX: `device_put` without a device puts on the default device also inside of `set_mesh`.
    place = single_device(default_device()) if sharding is None else sharding  # not the mesh of the context
    if place.is_unreduced:
        return move(as_array(x), place)
    return put(as_numpy(x, aval.dtype), aval, place, committed=sharding is not None, share=share)


def _put_tracer(x: Tracer, sharding: Sharding, binds: bool) -> Any:
    """A traced value with this sharding. Unless it `binds`, as a `Device` does not, a program may run elsewhere."""
    if not sharding.is_unreduced and sharding_behind(x) is not None:
        return transfer.bind(x, target=sharding, source=None)
    # As in JAX, an argument that `in_shardings` puts into host memory has a type of the device's.
    if sharding.kind is None and (x.aval.memory_space is not Space.Device or default_backend() != "cpu"):
        x = to_memory(x, memory_kind=None)
    if binds:
        return apply_sharding(x, sharding)
    return x if sharding.kind is None else to_memory(x, memory_kind=sharding.kind)


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Copies a tree of arrays to a device, or distributes it over several.

    Args:
      x: array or number, or a tree of those.
      device: a `Device`, a `Sharding`, a `PartitionSpec` (of the mesh of the context, see `set_mesh`), a
        `memory.Space`, an `experimental.layout.Format` whose layout is None or has the axes in order, or a tree of
        those that is a prefix of `x`. With None, arrays stay where they are and everything else goes to the default
        device.
      src: not used; accepted as in JAX.
      donate: True (or a tree of bools) if `x` is not used afterwards, which allows to reuse its memory. No platform
        does so; the arrays stay valid.
      may_alias: False (or a tree of bools) if the result must not share memory with `x`, even on the same device. True
        if it may share that of NumPy arrays, which must not be written to afterwards: a CPU uses memory that is aligned
        to 64 bytes as it is, other devices copy it while the program goes on. With None NumPy arrays are copied first.

    Returns:
      A tree like `x` of arrays of the same shapes and dtypes. If `device` is given, they are committed: computations
      with them run on that device.

    Raises:
      ArgumentError: a leaf of `x` is no array, or a leaf of `device` is neither a device nor a sharding.
      DeviceError: a `PartitionSpec` is given without a mesh in the context.
      OptionError: a leaf has both `donate` and `may_alias`, or the layout of a `Format` has another order of axes.
      ShapeError: the layout of a `Format` has another number of axes than the array.
      TreeError: the tree of `device`, `donate` or `may_alias` is no prefix of `x`.

    >>> device_put(np.ones(2, np.float32), phlox.devices()[0])
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = pytree.flatten(x)

    def spread(what: str, prefix: Any) -> list[Any]:
        if prefix is None or isinstance(prefix, bool):
            return [prefix] * len(leaves)
        return pytree.spread(f"device_put {what}", prefix, x, pytree.is_none)

    # One place for all leaves is the common case, and needs no tree.
    if device is None or type(device) is Device or isinstance(device, Sharding):
        shardings = [_sharding(device)] * len(leaves)
        binds = [type(device) is not Device] * len(leaves)
    else:
        devices = spread("device", device)
        shardings = [_sharding(d, leaf) for d, leaf in zip(devices, leaves, strict=True)]
        binds = [not isinstance(d, Device | Space) for d in devices]
    donated, shared = spread("donate", donate), spread("may_alias", may_alias)
    if any(d and a for d, a in zip(donated, shared, strict=True)):
        raise OptionError("device_put: may_alias and donate cannot be True at the same time.", instead="one of them")
    # `may_alias=False` asks for a copy, unless the argument is given away.
    fresh = [a is not None and not a and not d for d, a in zip(donated, shared, strict=True)]
    share = [bool(a) for a in shared]
    # The transfer guard lets explicit transfers pass.
    with explicit():
        return tree.unflatten([_put(*each) for each in zip(leaves, shardings, fresh, share, binds, strict=True)])


def device_get(x: Any) -> Any:
    """Converts a tree of arrays to NumPy arrays. Objects with ``__array__`` are converted too; other leaves are kept.

    Args:
      x: tree of arrays. Arrays of PRNG keys, for which NumPy has no dtype, stay as they are.

    Returns:
      A tree like `x`; the NumPy arrays have the shapes and dtypes of the arrays.

    >>> device_get({"a": jnp.arange(2)})
    {'a': array([0, 1], dtype=int32)}
    """

    def get(leaf: Any) -> Any:
        if type(leaf) is ArrayImpl and dtypes.is_extended(leaf.dtype):
            return leaf
        return np.asarray(leaf) if hasattr(leaf, "__array__") and not isinstance(leaf, Tracer) else leaf

    with explicit():
        return pytree.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays of a tree are computed; returns the tree. Other leaves with this method are called, too.

    Errors of the computations are raised here.

    Args:
      x: tree of arrays. Leaves without a method ``block_until_ready``, and tracers, are skipped.

    Returns:
      `x` itself.

    >>> block_until_ready(jnp.ones(1))
    Array([1.], dtype=float32)
    """
    arrays: list[Array] = []
    for leaf in pytree.tree_leaves(x):
        if type(leaf) is ArrayImpl:
            arrays.append(leaf)
        elif not isinstance(leaf, Tracer):
            # Other libraries have arrays with this method as well.
            _ask(leaf, "block_until_ready")
    if arrays:
        wait(arrays)
    return x


def _ask(x: Any, method: str) -> None:
    """Calls the method of `x` with this name, if there is one."""
    called = getattr(x, method, None)
    if called is not None:
        called()


def copy_to_host_async(x: Any) -> Any:
    """Starts copying all arrays of a tree to the host; returns the tree. Other leaves with this method are called, too.

    Args:
      x: tree of arrays. Leaves without a method ``copy_to_host_async``, and tracers, are skipped.

    Returns:
      `x` itself, without waiting. A later `device_get` uses the copies.

    >>> copy_to_host_async([1.0])
    [1.0]
    """
    for leaf in pytree.tree_leaves(x):
        if not isinstance(leaf, Tracer):
            _ask(leaf, "copy_to_host_async")
    return x


def place(device: Any) -> Sharding | None:
    """The sharding for a user's argument ``device``, or None."""
    if device is None or isinstance(device, Sharding):
        # As `_sharding`, without the places that only `device_put` takes.
        return device
    if type(device) is Device:
        return single_device(device)
    raise ArgumentError(f"{device!r} is neither a device nor a sharding", instead="phlox.devices()[0]")


def own_sharding(x: Any, shape: tuple[int, ...]) -> Sharding | None:
    """The sharding that an array of `shape` made after `x`, an array or description, has: that of `x`, if it is
    committed and has this shape or lies on one device."""
    # A `ShapeDtypeStruct` is not uncommitted: its sharding is what the user has said.
    if isinstance(x, Tracer) or not getattr(x, "committed", True):
        return None
    where = getattr(x, "sharding", None)
    if not isinstance(where, Sharding) or isinstance(getattr(where, "mesh", None), AbstractMesh):
        return None
    # On one device any shape has the same sharding; a split array fixes the shape.
    return where if x.shape == shape or where.num_devices == 1 else None


def placed(x: Any, device: Any) -> Any:
    """`x` on the device or with the sharding of a user's argument ``device``."""
    where = place(device)
    if where is None:
        return x
    return move(x, where) if type(x) is ArrayImpl else device_put(x, device)
