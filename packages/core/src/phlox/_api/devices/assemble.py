"""Arrays assembled from parts, which are on devices already or which a function supplies for each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base import pytree
from ..._base.errors import ArgumentError, DeviceError, DtypeError, ShapeError, UnexpectedTracerError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._trace.trace import Tracer, typeof
from ..._xla import transfer
from ..._xla.array import Array, put, wrap
from ..._xla.devices import Device, process_count
from ..._xla.mesh import Mesh
from ..._xla.partition_spec import PartitionSpec
from ..._xla.placement import aval_of, placement_for
from ..._xla.sharding import NamedSharding, Sharding, one_device_in
from .meshes import named
from .transfers import device_put

if TYPE_CHECKING:
    from ..._xla.layout import Format


def _types(function: str, parts: Sequence[Any], dtype: Any) -> ShapedArray:
    """The type of the parts, not weak; its dtype is that of all parts. Raises `DtypeError` if dtypes differ."""
    if any(isinstance(x, Tracer) for x in parts):
        raise UnexpectedTracerError(f"{function}: a traced value has no elements to put on devices")
    target = dtypes.optional_dtype(dtype, function)
    if not parts:
        if target is None:
            raise ArgumentError(f"{function}: this process holds no part, so the dtype is unknown", instead="dtype=...")
        return shaped((), target)
    avals = [typeof(x) for x in parts]
    part_dtypes = {a.dtype for a in avals}
    if len(part_dtypes) > 1 or (target is not None and target not in part_dtypes):
        named_types = ", ".join(sorted(str(d) for d in part_dtypes))
        raise DtypeError(f"{function}: parts of dtype {named_types}" + (f", and dtype={target}" if target else ""))
    return avals[0].strong()


def _check_shapes(function: str, shape: tuple[int, ...], sharding: Sharding, parts: Sequence[Any]) -> tuple[int, ...]:
    each = sharding.shard_shape(shape)
    for part in parts:
        if typeof(part).shape != each:
            raise ShapeError(
                f"{function}: a part of type {typeof(part).short}, where {sharding} cuts {list(shape)} into parts of "
                f"shape {list(each)}",
                expected=each,
                got=typeof(part).shape,
            )
    return each


def _local(sharding: Sharding) -> list[Device]:
    return [d for d in sharding.devices if d in sharding.addressable_devices]


def _assemble(shape: tuple[int, ...], sharding: Sharding, parts: Sequence[Array], dtype: Any) -> Array:
    """One array from `parts` that are on their devices, in the order of the sharding's devices."""
    aval = shaped(shape, dtype)
    placement = placement_for(aval, sharding, True)
    # With one device the part is the array. The buffer is shared, as documented.
    if len(sharding.devices) == 1:
        return wrap(parts[0]._buf, aval_of(placement), placement)
    buf = transfer.assemble(aval.physical, sharding, [x._buf for x in parts])
    return wrap(buf, aval_of(placement), placement)


def _sharding_of_format(function: str, form: Any, ndim: int) -> Sharding:
    # A `Format`, whose class takes 3 ms to import.
    sharding = form.sharding_in_order(function, ndim) if hasattr(form, "layout") else form
    if not isinstance(sharding, Sharding):
        raise ArgumentError(f"{function}: {sharding!r} is no Sharding", instead="NamedSharding(mesh, spec)")
    return sharding


def make_array_from_callback(
    shape: Sequence[int], sharding: Sharding | Format, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Array:
    """An array whose parts a function supplies: ``data_callback(index)`` for each device of this process.

    Args:
      shape: shape of the whole array.
      sharding: the sharding of the whole array, or a `Format` with it.
      data_callback: takes the index (a tuple of slices) of a part in the whole array and returns that part. If all
        devices hold the whole array, it is called once.
      dtype: checked against the dtype of the parts; needed when this process holds no part.

    Returns:
      An array of this shape, of the dtype of the parts.

    Raises:
      ArgumentError: `sharding` is no `Sharding`; or this process holds no part, and `dtype` is None.
      DtypeError: parts have different dtypes, or another one than `dtype`.
      ShapeError: the shape of a part does not match its index.
      UnexpectedTracerError: a part is a traced value.

    >>> place = phlox.device_put(0).sharding
    >>> make_array_from_callback((3,), place, lambda index: np.arange(3.0)[index])
    Array([0., 1., 2.], dtype=float32)
    """
    function = "make_array_from_callback"
    if not isinstance(sharding, Sharding):
        sharding = _sharding_of_format(function, sharding, len(shape))
    whole = tuple(shape)
    where = sharding.devices_indices_map(whole)
    devices = _local(sharding)
    if sharding.is_fully_replicated:
        # One call for all devices, as in JAX.
        parts = [data_callback((slice(None),) * len(whole))] * len(devices) if devices else []
    else:
        parts = [data_callback(where[d]) for d in devices]
    aval = _types(function, parts, dtype)
    _check_shapes(function, whole, sharding, parts)
    placed = [device_put(x, one_device_in(d, sharding.kind)) for x, d in zip(parts, devices, strict=True)]
    return _assemble(whole, sharding, placed, aval.dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: Any = None
) -> Array:
    """One array whose parts are given as arrays on single devices.

    Args:
      shape: shape of the whole array.
      sharding: the sharding of the whole array.
      arrays: the parts, one on each device of this process, in any order.
      dtype: checked against the dtype of the parts; needed when this process holds no part.

    Returns:
      An array of this shape, of the dtype of the parts, whose memory it shares.

    Raises:
      ArgumentError: `arrays` is no list or tuple of arrays; or it is empty, and `dtype` is None.
      DeviceError: there is not exactly one part on each device of `sharding` that belongs to this process.
      DtypeError: parts have different dtypes, or another one than `dtype`.
      ShapeError: the shape of a part does not match `sharding`.

    >>> x = phlox.device_put(np.ones(2, np.float32), phlox.devices()[0])
    >>> make_array_from_single_device_arrays((2,), x.sharding, [x])
    Array([1., 1.], dtype=float32)
    """
    function = "make_array_from_single_device_arrays"
    if not isinstance(arrays, list | tuple) or not all(isinstance(x, Array) for x in arrays):
        raise ArgumentError(f"{function}: arrays={arrays!r} is no list of arrays", instead="arrays from device_put")
    aval = _types(function, arrays, dtype)
    devices = _local(sharding)
    if len(arrays) != len(devices):
        raise DeviceError(f"{function}: {len(arrays)} parts for the {len(devices)} devices of {sharding}")
    whole = tuple(shape)
    _check_shapes(function, whole, sharding, arrays)
    by_device = {}
    for part in arrays:
        if len(part.sharding.devices) != 1:
            raise DeviceError(f"{function}: a part of type {part.aval.short} lies on {len(part.devices())} devices")
        by_device[part.sharding.devices[0]] = part
    if set(by_device) != set(devices):
        raise DeviceError(f"{function}: parts on {list(by_device)}, where {sharding} has {devices}")
    return _assemble(whole, sharding, [by_device[d] for d in devices], aval.dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Global arrays from the data of several processes, each of which passes the data for its own devices.

    With one process this is `device_put`.

    Args:
      sharding: the shardings of the global arrays: a `Sharding`, a `PartitionSpec` of the mesh of the context, or a
        tree of those that is a prefix of `local_data`.
      local_data: a tree of NumPy arrays: the parts of this process, concatenated in the order of their positions.
      global_shape: shapes of the global arrays (a tuple, or a tree of tuples). Along an axis where global and local
        lengths are equal, every process passes the whole axis. By default the data of the processes is concatenated.

    Returns:
      A tree like `local_data` of arrays of the global shapes and of the dtypes of the data.

    Raises:
      ShapeError: the shape of local data does not match the global shape.

    >>> make_array_from_process_local_data(phlox.device_put(0).sharding, np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    function = "make_array_from_process_local_data"
    leaves, tree = pytree.flatten(local_data)
    shardings = [named(function, s) for s in pytree.spread(f"{function} sharding", sharding, local_data)]

    def is_shape(x: Any) -> bool:
        return x is None or isinstance(x, tuple)

    shapes = pytree.spread(f"{function} global_shape", global_shape, local_data, is_shape)
    return tree.unflatten([_from_local(function, *each) for each in zip(leaves, shardings, shapes, strict=True)])


def _from_local(function: str, data: Any, sharding: Sharding, shape: tuple[int, ...] | None) -> Array:
    local = typeof(data).shape
    if process_count() == 1:
        if shape is not None and tuple(shape) != local:
            raise ShapeError(f"{function}: global_shape={shape} for data of shape {local}, with one process")
        return device_put(data, sharding)
    # For each axis: the sorted positions of this process's parts, and the length of all processes' data concatenated.
    counts = sharding.tiles(len(local))
    numbers = {d: sharding._tile_of(i, len(local)) for i, d in enumerate(sharding.devices)}
    devices = _local(sharding)
    mine = [sorted({numbers[d][axis] for d in devices}) for axis in range(len(local))]
    side_by_side = tuple(n * count // len(held) for n, count, held in zip(local, counts, mine, strict=True))
    whole = side_by_side if shape is None else tuple(shape)
    each = sharding.shard_shape(whole)
    parts = []
    for device in devices:
        index = []
        for axis, (size, n) in enumerate(zip(whole, local, strict=True)):
            if size not in (n, side_by_side[axis]):
                raise ShapeError(
                    f"{function}: axis {axis} of global_shape={whole} is neither that of the local data, {n}, "
                    f"nor that of all processes together, {side_by_side[axis]}"
                )
            at = numbers[device][axis]
            # If this process passes the whole axis, parts are counted in all of it, else among the parts of this
            # process.
            at = at if size == n else mine[axis].index(at)
            index.append(slice(at * each[axis], (at + 1) * each[axis]))
        parts.append(_on(one_device_in(device, sharding.kind), np.asarray(data)[tuple(index)]))
    return _assemble(whole, sharding, parts, parts[0].dtype)


def _on(sharding: Sharding, data: np.ndarray) -> Array:
    aval = typeof(data)
    # `typeof` gives the dtype that an array has under the flags: without `enable_x64`, float64 data become float32.
    return put(data.astype(aval.dtype), aval, sharding, committed=True)


def _over(devices: Sequence[Device]) -> NamedSharding:
    """A sharding that splits the first axis over the devices."""
    if not devices:
        raise ArgumentError("no devices to put arrays on", argument="devices", value=devices)
    return NamedSharding(Mesh(np.array(devices), ("devices",)), PartitionSpec("devices"))


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """Stacks trees of arrays, one for each device, along a new first axis over the devices.

    JAX had this function until 0.9; code that uses `pmap` still calls it.

    Args:
      shards: trees of one structure, whose arrays have equal shapes and dtypes: the first for the first device, and so
        on.
      devices: as many devices as shards.

    Returns:
      A tree of arrays of shape ``(len(devices), *shape)``; row i is on device i.

    Raises:
      ArgumentError: the numbers of shards and devices differ, or there are none.

    >>> device_put_sharded([jnp.zeros(2)], phlox.devices()[:1]).shape
    (1, 2)
    """
    if len(shards) != len(devices):
        raise ArgumentError(f"device_put_sharded: {len(shards)} shards for {len(devices)} devices", argument="shards")
    where = _over(devices)

    def joined(*parts: Any) -> Array:
        # On the host, where a new axis costs nothing. `device_put` then makes the only copy.
        rows = [part[None] if dtypes.is_extended(typeof(part).dtype) else np.asarray(part)[None] for part in parts]
        each = [device_put(row, device) for row, device in zip(rows, devices, strict=True)]
        return make_array_from_single_device_arrays((len(rows), *rows[0].shape[1:]), where, each)

    return pytree.tree_map(joined, *shards)


def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """Copies a tree of arrays to each device, along a new first axis over the devices.

    JAX had this function until 0.9; code that uses `pmap` still calls it.

    Args:
      x: array or number, or a tree of those.
      devices: the devices that get a copy.

    Returns:
      A tree like `x` of arrays of shape ``(len(devices), *shape)``; row i is on device i.

    Raises:
      ArgumentError: there are no devices.

    >>> device_put_replicated(jnp.arange(2), phlox.devices()[:1])
    Array([[0, 1]], dtype=int32)
    """
    return device_put_sharded([x] * len(devices), devices)
