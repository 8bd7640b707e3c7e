"""Transfers of buffers: from host to device and back, between devices, and to other libraries by DLPack.

Works on jaxlib buffers and their physical types; `array.py` makes arrays of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._base.errors import DeviceError, UnsupportedError
from .._base.native import native
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from . import memory, transfer_guard
from .devices import Device
from .import_guard import no_jax
from .sharding import Sharding, one_device_in, single_device

# jaxlib copies the host's memory before `batched_device_put` returns, so that NumPy may change it right after.
_COPY = native.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_SHARE = native.HostBufferSemantics.ZERO_COPY
_ALWAYS_COPY = native.ArrayCopySemantics.ALWAYS_COPY
_HAS_DLPACK_VERSIONS = hasattr(native, "dlpack_version")  # from jaxlib 0.12
_HAS_DIRECT_READ = hasattr(native.ArrayImpl, "_to_np_array_did_copy")  # from jaxlib 0.11
# Until 0.10 the handler looks for a method that only jax adds to jaxlib's arrays, unless it is told not to check.
_CHECKS = "_skip_checks" in str(getattr(native.array_result_handler, "__nb_signature__", ""))  # until 0.10
_UNCHECKED = {"_skip_checks": True} if _CHECKS else {}
_batched_device_put = native.batched_device_put
#: `clean_bools` reads the bytes of so many elements by another function.
_FEW = 256


def result_handler(aval: ShapedArray, sharding: Sharding) -> Any:
    """The C++ object that makes a buffer from an output of this physical type and sharding."""
    return native.array_result_handler(aval, sharding.native(aval.ndim), True, **_UNCHECKED)


# --- host to device -------------------------------------------------------------------------------------


def put_buffer(x: Any, aval: ShapedArray, sharding: Sharding, share: bool = False) -> Any:
    """Copies host data to devices, laid out by `sharding`. The buffer shares memory with `x` only if `share` is set."""
    transfer_guard.check("host_to_device", aval, sharding)
    # The guard is asked here, outside of the cached function: its flags may change between two calls.
    return _host_to_device(aval, sharding, share)(np.asarray(x, aval.dtype))


def clean_bools(host: np.ndarray) -> np.ndarray:
    """A NumPy array of bools whose bytes are 0 and 1: `host` itself if all of its bytes are.

    NumPy takes each byte that is not 0 for true, and masks of image libraries have 255. XLA's programs compute with
    the bytes.
    """
    # `translate` takes 0.3 microseconds for few elements, where `max` takes 2.
    is_dirty = host.tobytes().translate(None, b"\0\1") if host.size <= _FEW else host.view(np.uint8).max() > 1
    return np.asarray(host.view(np.uint8) != 0) if is_dirty else host


def buffer_maker(aval: ShapedArray, sharding: Sharding, kind: Any, share: bool = False) -> Callable[[Any], Any]:
    """A faster `put_buffer` for many values of one kind: a class, or the dtype of NumPy arrays.

    It is valid while the settings of the transfer guard stay as they are.
    """
    # A guard that logs or forbids has to see each transfer, so nothing about it is decided here.
    if not transfer_guard.is_allowed("host_to_device"):
        return lambda x: put_buffer(x, aval, sharding, share)
    put = _host_to_device(aval, sharding, share)
    # The dtype is compared once here, so that calls need not convert.
    return put if isinstance(kind, np.dtype) and kind == aval.dtype else lambda x: put(np.asarray(x, aval.dtype))


@functools.lru_cache(4096)
def _host_to_device(aval: ShapedArray, sharding: Sharding, share: bool = False) -> Callable[[np.ndarray], Any]:
    """A function that copies NumPy arrays of this physical type to devices, laid out by `sharding`.

    With `share` one device takes the memory as it is, if it is a CPU's and aligned, or reads it while the program runs.
    """
    put = _put_function(aval, sharding, share)
    return (lambda host: put(clean_bools(host))) if aval.dtype == bool else put


def _put_function(aval: ShapedArray, sharding: Sharding, share: bool) -> Callable[[np.ndarray], Any]:
    devices = list(sharding.devices)
    if len(devices) == 1 and is_local(devices[0]) and sharding.kind is None:
        # One of jaxlib's own shardings: for phlox's, the C++ code would call Python methods.
        target = native.GSPMDSharding(devices, sharding.native(aval.ndim).hlo)
        mode = _SHARE if share else _COPY
        # The last argument is `enable_x64`. Without it jaxlib asks for a global setting that only jax sets, and raises.
        return lambda host: _batched_device_put(aval, target, [host], devices, True, False, mode, True)

    def put_parts(host: np.ndarray) -> Any:
        local, indices = _local_parts(sharding, aval.shape)
        # One copy for each device, because jaxlib fails if two devices get the same memory.
        parts = [host[index].copy() for index in indices]
        return _batched_device_put(aval, sharding.native(aval.ndim), parts, list(local), True, False, _COPY, True)

    return put_parts


@functools.lru_cache(4096)
def _local_parts(sharding: Sharding, shape: tuple[int, ...]) -> tuple[tuple[Device, ...], list[Any]]:
    """The devices of this process, and for each the slices of an array of this shape that it holds."""
    where = sharding.devices_indices_map(shape)
    devices = tuple(filter(is_local, sharding.devices))
    return devices, [where[d] for d in devices]


# --- device to host -------------------------------------------------------------------------------------


def buffer_to_numpy(buf: Any, aval: ShapedArray, sharding: Sharding) -> np.ndarray:
    """The elements of a buffer of this physical type, read-only. On the CPU they are not copied.

    Raises `DeviceError` if some elements are only in other processes.
    """
    # dtypes of ml_dtypes (bfloat16, float8, int4) are not builtin, and jaxlib's buffer protocol refuses them.
    if len(sharding.devices) == 1 and aval.dtype.isbuiltin == 1:
        try:
            # Not ``np.asarray(buf)``: if the protocol fails, NumPy makes an array of dtype object, without an error.
            return np.asarray(memoryview(buf))
        except (BufferError, RuntimeError):
            pass  # not in host memory, or not in this process
    read = _device_to_host(aval, sharding)
    if sharding.devices[0].platform != "cpu":
        transfer_guard.check("device_to_host", aval)
    try:
        # jaxlib before 0.11 looks for jax when it splits or reads a buffer, which costs a second where jax is
        # installed.
        with no_jax:
            value = read(buf)
    except native.JaxRuntimeError as error:
        memory.explain(error, memory.origin(buf))
        raise
    if aval.dtype == dtypes.float0:  # stored on the device as bool
        return np.zeros(aval.shape, dtypes.float0)
    return value if value.dtype == aval.dtype else value.view(aval.dtype)


def is_local(device: Device) -> bool:
    """Whether the device belongs to this process."""
    return device.process_index == device.client.process_index()


@functools.lru_cache(4096)
def is_whole(sharding: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether the devices of this process together hold all elements of an array of this shape. They do not if some
    combination of what they hold is the array."""
    if sharding.is_unreduced:
        return False
    # Slices are not hashable before Python 3.12, but their text is.
    all_parts = {str(index) for index in sharding.devices_indices_map(shape).values()}
    return all_parts == {str(index) for index in _local_parts(sharding, shape)[1]}


@functools.lru_cache(4096)
def _device_to_host(aval: ShapedArray, sharding: Sharding) -> Callable[[Any], np.ndarray]:
    """A function that reads buffers of this physical type and sharding as NumPy arrays."""
    if sharding.is_unreduced:
        raise UnsupportedError(
            f"reading an array of type {aval.short}, of which the devices hold partial results: {sharding}",
            instead="phlox.reshard(x, phlox.P(...)) first, which combines them",
        )
    if not is_whole(sharding, aval.shape):
        raise DeviceError(
            f"an array of type {aval.short} cannot be read: it spans devices of other processes, {sharding}",
            instead="phlox.experimental.multihost_utils.process_allgather(x, tiled=True), in all processes, "
            "or x.addressable_shards, the parts of this one",
            aval=aval,
            sharding=sharding,
        )
    # `_to_np_array_did_copy` assembles shards by itself, if all of them are in this process.
    if len(sharding.devices) > 1 and not (_HAS_DIRECT_READ and sharding.is_fully_addressable):
        return lambda buf: _assemble_on_host(buf, aval, sharding)
    if _HAS_DIRECT_READ:
        return lambda buf: buf._to_np_array_did_copy()[0]
    return lambda buf: buf._single_device_array_to_np_array_did_copy()[0]


def _assemble_on_host(buf: Any, aval: ShapedArray, sharding: Sharding) -> np.ndarray:
    out = np.empty(aval.shape, aval.dtype)
    part = shaped(sharding.shard_shape(aval.shape), aval.dtype)
    indices = sharding.devices_indices_map(aval.shape)
    done: set[str] = set()
    for device, piece in pieces(buf, part, sharding):
        if str(indices[device]) not in done:  # replicas are read once
            done.add(str(indices[device]))
            out[indices[device]] = buffer_to_numpy(piece, part, single_device(device))
    # Read-only, as arrays of one device are, whose memory is shared with the reader.
    out.flags.writeable = False
    return out


def pieces(buf: Any, part: ShapedArray, sharding: Sharding) -> list[tuple[Device, Any]]:
    """(device, buffer) for each part of `buf` that this process holds; `part` is the physical type of the parts."""
    local = list(filter(is_local, sharding.devices))
    if len(sharding.devices) == 1:
        return [(device, buf) for device in local]
    with no_jax:
        parts = buf._arrays
    return [
        # A shard without a sharding of phlox's would make jaxlib ask jax for one.
        (device, piece._rewrap_with_aval_and_sharding(part, one_device_in(device, sharding.kind).native(part.ndim)))
        for device, piece in zip(local, parts, strict=True)
    ]


# --- device to device -----------------------------------------------------------------------------------


def move_buffer(buf: Any, aval: ShapedArray, here: Sharding, there: Sharding) -> Any:
    """Copies a buffer from sharding `here` to `there`: directly between two local devices, else through the host."""
    transfer_guard.check("device_to_device", aval, there, here)
    both = (*here.devices, *there.devices)
    # Clients do not share memory: between two of them, as CPU and GPU, the host is the only way.
    if len(both) == 2 and both[0].client is both[1].client and all(map(is_local, both)):
        return _copy_to(buf, there.native(aval.ndim))
    return put_buffer(buffer_to_numpy(buf, aval, here), aval, there)


def copy(buf: Any, aval: ShapedArray, sharding: Sharding) -> Any:
    """A copy of a buffer that shares no memory with it. (jaxlib's own copy to the same device shares memory.)"""
    if is_whole(sharding, aval.shape):
        return put_buffer(buffer_to_numpy(buf, aval, sharding), aval, sharding)
    part = shaped(sharding.shard_shape(aval.shape), aval.dtype)
    # With shards in other processes there is no way over the host; each process copies its own.
    held = [(piece, one_device_in(device, sharding.kind)) for device, piece in pieces(buf, part, sharding)]
    return assemble(aval, sharding, [copy(piece, part, where) for piece, where in held])


def _copy_to(buf: Any, target: Any) -> Any:
    lists = [target._internal_device_list]
    return native.batched_copy_array_to_devices_with_sharding([buf], lists, [target], [_ALWAYS_COPY])[0]


def assemble(aval: ShapedArray, sharding: Sharding, parts: list[Any]) -> Any:
    """One buffer made of the buffers of its parts, which are in the order of the sharding's devices."""
    # The checks need methods that only jax adds to jaxlib's classes.
    return native.ArrayImpl(aval, sharding.native(aval.ndim), parts, True, _skip_checks=True)


# --- DLPack ---------------------------------------------------------------------------------------------

#: DLPack's numbers of the types of devices (`DLDeviceType` in dlpack.h)
_DLPACK_DEVICE = {"cpu": 1, "cuda": 2, "gpu": 2, "rocm": 10}


def one_device(sharding: Sharding) -> Device:
    """The only device of `sharding`. Raises `DeviceError` if there are more, or if it belongs to another process."""
    if len(sharding.devices) != 1:
        raise DeviceError(
            f"this array lies on {len(sharding.devices)} devices; DLPack and pointers speak of one",
            instead="array.addressable_data(0)",
        )
    (device,) = sharding.devices
    if not is_local(device):
        raise DeviceError(f"this array lies on {device}, which process {device.process_index} drives")
    return device


def dlpack_device(sharding: Sharding) -> tuple[int, int]:
    """(device type, device number) in DLPack's terms."""
    device = one_device(sharding)
    return _DLPACK_DEVICE[device.platform], 0 if device.platform == "cpu" else device.local_hardware_id


def to_dlpack(buf: Any, max_version: tuple[int, int] | None, is_copy: bool) -> Any:
    """A DLPack capsule of the buffer, of at most this version; None stands for the version before 1.0."""
    if max_version is not None and max_version < (0, 5):
        raise BufferError(f"DLPack before 0.5 is not written: max_version is {max_version}")
    # Consumers get a pointer, and may read it before the program that computes the values has ended.
    buf.block_until_ready()
    if not _HAS_DLPACK_VERSIONS:
        return native.buffer_to_dlpack_managed_tensor(buf, None)
    # Since 1.0 the capsule says that the memory must not be written to.
    return native.buffer_to_dlpack_managed_tensor(buf, None, max_version, is_copy)


def from_dlpack(capsule: Any, device: Device) -> tuple[Any, ShapedArray]:
    """A buffer with the capsule's contents, and its type. Memory is shared with the capsule's owner if its alignment
    allows, and if the bytes of bools are 0 and 1."""
    with no_jax:
        buf = native.dlpack_managed_tensor_to_buffer(capsule, device, None)
        try:
            host = np.asarray(memoryview(buf))
        except (BufferError, TypeError):
            # bfloat16 and the like, which the buffer protocol refuses.
            host = buf._single_device_array_to_np_array_did_copy()[0]
    aval = shaped(host.shape, host.dtype)
    if host.dtype == bool and (clean := clean_bools(host)) is not host:
        # Bytes other than 0 and 1 in bools, as other libraries may write them, cannot be shared.
        return put_buffer(clean, aval, single_device(device)), aval
    # In place of the aval that jaxlib would ask of jax.
    return buf._rewrap_with_aval_and_sharding(aval, single_device(device).native(aval.ndim)), aval


def pointer(buf: Any) -> int:
    """The address of the memory of a buffer on one device."""
    with no_jax:
        return int(buf.unsafe_buffer_pointer())
