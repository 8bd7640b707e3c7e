"""``phlox.experimental.multihost_utils``: communication between processes, as in ``jax.experimental.multihost_utils``.

All processes must call the same function, with trees of equal structure and types; a call waits for those of the other
processes. The data is exchanged by programs that run on one device of each process.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._api.devices.assemble import make_array_from_single_device_arrays
from .._api.devices.process_parts import of_this_process, over_all_processes
from .._api.jit.jit import jit
from .._base import pytree
from .._base.errors import DeviceError, OptionError, ProcessFailureError
from .._base.public_names import publish
from .._trace.trace import typeof
from .._xla import preemption
from .._xla.array import Array, logical, physical, put
from .._xla.devices import Device, devices, local_devices, process_count, process_index
from .._xla.mesh import Mesh
from .._xla.moves import move, replicated
from .._xla.partition_spec import PartitionSpec
from .._xla.sharding import NamedSharding, single_device

__all__ = [
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Gathers the arrays of all processes in each process, as NumPy arrays.

    Args:
      in_tree: a tree of arrays; each has the same type in all processes.
      tiled: False stacks the processes' arrays along a new first axis, True concatenates them along their first axis
        (arrays without axes are stacked in either case). Arrays that are distributed over several processes are
        returned whole, and need True.

    Returns:
      A tree like `in_tree`, equal in all processes: arrays of shape ``(processes, *shape)``, or with `tiled`
      ``(processes * shape[0], *shape[1:])``, of the same dtypes.

    Raises:
      OptionError: an array is distributed over several processes, and `tiled` is False.

    >>> process_allgather({"loss": np.float32(0.5)})
    {'loss': array([0.5], dtype=float32)}
    """
    return pytree.tree_map(lambda x: _gathered(x, tiled), in_tree)


def _gathered(x: Any, tiled: bool) -> np.ndarray:
    if isinstance(x, Array):
        x = physical(x)
    if _is_shared(x):
        if not tiled:
            raise OptionError(
                f"process_allgather: parts of an array of type {x.aval.short} are in several processes already",
                instead="tiled=True, which gives the whole array",
            )
        return np.asarray(move(x, replicated(x.sharding)))
    mine = _host(x)
    if mine.ndim == 0 or not tiled:
        mine = mine[None]
    if process_count() == 1:
        return mine
    joined = _side_by_side(mine)
    return np.asarray(move(joined, replicated(joined.sharding)))


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Copies the arrays of one process to all processes, bit for bit, as NumPy arrays.

    Args:
      in_tree: a tree of arrays; the other processes pass arrays of the same types.
      is_source: whether this process is the source; None makes process 0 the source.

    Returns:
      A tree like `in_tree` of arrays of the same shapes and dtypes.

    >>> broadcast_one_to_all({"seed": np.int32(3)})
    {'seed': array(3, dtype=int32)}
    """
    if is_source is None:
        is_source = process_index() == 0

    def spread(x: Any) -> np.ndarray:
        mine = _host(physical(x) if isinstance(x, Array) else x)
        if process_count() == 1:
            return mine
        # The sum of the processes' bytes, all zero except those of the source: exact for every dtype, nan and -0.0.
        octets = np.ascontiguousarray(mine).reshape(-1).view(np.uint8)
        joined = _side_by_side((octets if is_source else np.zeros_like(octets))[None])
        total = _total(move(joined, replicated(joined.sharding)))
        return np.asarray(total).view(mine.dtype).reshape(mine.shape)

    return pytree.tree_map(spread, in_tree)


@jit
def _total(x: Any) -> Any:
    return x.sum(0, dtype=x.dtype)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have called it.

    Args:
      name: a name for this synchronization point, which must be equal in all processes.

    Returns:
      None, when all processes have called it.

    Raises:
      AssertionError: another process passed another name.

    >>> sync_global_devices("all data is there")
    """
    assert_equal(np.uint32(zlib.crc32(name.encode())), f"sync_global_devices({name!r}): another name elsewhere")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises `AssertionError`, in all processes, unless all processes pass equal values. A nan is equal to itself.

    Args:
      in_tree: a tree of arrays. Arrays that are distributed over several processes are not compared.
      fail_message: the beginning of the error message.

    Raises:
      AssertionError: the values differ. All processes raise it.

    >>> assert_equal({"steps": np.int32(100)}, "another length of training")
    """
    for path, x in pytree.tree_leaves_with_path(in_tree):
        if not _is_shared(x):
            every = process_allgather(x)
            if not all(np.array_equal(every[0], one) or every[0].tobytes() == one.tobytes() for one in every):
                where = pytree.keystr(path)
                raise AssertionError(f"{fail_message}: the processes differ{where and ' at ' + where}: {every}")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Global arrays over the devices of all processes, from the local arrays of each process.

    Along axes that are split between processes, the local arrays are concatenated. Along other axes, all processes must
    pass the same elements. The inverse is `global_array_to_host_local_array`.

    Args:
      local_inputs: a tree of arrays, whose elements go to the devices of this process. Arrays that are distributed over
        several processes already are returned unchanged.
      global_mesh: a mesh in which the devices of each process are a block.
      pspecs: the specs of the global arrays: a `PartitionSpec`, or a tree of those that is a prefix of `local_inputs`.

    Returns:
      A tree like `local_inputs` of arrays of the same dtypes, longer along the axes that are split between processes.

    >>> mesh = phlox.make_mesh((1,), ("i",))
    >>> host_local_array_to_global_array(np.arange(2), mesh, phlox.P("i"))
    Array([0, 1], dtype=int32)
    """

    return _map_with_specs("host_local_array_to_global_array", over_all_processes, local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The elements of global arrays that are on the devices of this process.

    Args:
      global_inputs: a tree of arrays. Arrays that are on this process's devices only are returned unchanged.
      global_mesh: a mesh in which the devices of each process are a block.
      pspecs: the specs of the global arrays: a `PartitionSpec`, or a tree of those that is a prefix of `global_inputs`.

    Returns:
      A tree like `global_inputs` of arrays of the same dtypes, shorter along the axes that are split between processes.

    >>> mesh = phlox.make_mesh((1,), ("i",))
    >>> global_array_to_host_local_array(jnp.arange(2), mesh, phlox.P("i"))
    Array([0, 1], dtype=int32)
    """

    def own(x: Any, sharding: NamedSharding) -> Any:
        return of_this_process(logical(move(physical(x), sharding), x.aval)) if _is_shared(x) else x

    return _map_with_specs("global_array_to_host_local_array", own, global_inputs, global_mesh, pspecs)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are at the step at which they should save their state, because one of them has to end.

    A cluster that takes a machine away sends SIGTERM to its processes. The processes then agree on a step that none of
    them has reached yet. All begin at the same step and call this function at every step, from the first on, which
    begins to listen for the signal: it no longer ends the process by itself.

    Args:
      step_id: number of the step.

    Returns:
      True at the step that the processes have agreed upon. False without `phlox.distributed.initialize`.

    >>> reached_preemption_sync_point(0)
    False
    """
    return preemption.is_last_step(step_id)


@contextmanager
def live_devices(devices: Sequence[Device]) -> Iterator[list[Device]]:
    """A context for programs on those of the devices whose processes are alive.

    All processes that have some of the devices enter it together and get equal lists, and leave it together: if one of
    them fails inside of it, the others get the same error. A process that fails ends the whole program unless the
    connection is one that survives it.

    Args:
      devices: devices, among them some of this process.

    Returns:
      A context manager, which gives the list of devices that are alive, by their ids.

    Raises:
      DeviceError: the program was not started with `phlox.distributed.initialize`, or no device is of this process.
      OptionError: no device is given.
      ProcessFailureError: a process failed inside of the context.

    >>> with live_devices(phlox.devices()) as alive:
    ...     mesh = phlox.sharding.Mesh(alive, "i")
    Traceback (most recent call last):
    DeviceError: ...
    """
    if not len(devices):
        raise OptionError("live_devices: no devices are given", instead="phlox.devices()")
    before = _alive(devices)
    try:
        yield sorted(before, key=lambda device: device.id)
    except Exception as error:
        # An error inside may come from a process that failed: the survivors raise that cause.
        _check_alive(before, devices, error)
        raise
    _check_alive(before, devices, None)


def _alive(devices: Sequence[Device]) -> dict[Device, int]:
    """The devices of processes that are alive, with a number that changes when a process is restarted."""
    processes = {device.process_index for device in devices}
    # The processes of these devices wait for each other, and this one must be among them.
    if process_index() not in processes:
        raise DeviceError("live_devices: none of the devices is of this process", instead="phlox.devices()")
    incarnations = preemption.alive(processes)
    if incarnations is None:
        raise DeviceError(
            "live_devices: there are no other processes", instead="phlox.distributed.initialize() before it"
        )
    return {device: incarnations[device.process_index] for device in devices if device.process_index in incarnations}


def _check_alive(before: dict[Device, int], devices: Sequence[Device], cause: Exception | None) -> None:
    after = _alive(devices)
    failed = {device for device, start in before.items() if after.get(device) != start}
    if failed:
        names = ", ".join(sorted(map(str, failed)))
        raise ProcessFailureError(f"the processes of these devices failed: {names}", failed_devices=failed) from cause


def _map_with_specs(function: str, lay: Any, tree: Any, mesh: Mesh, pspecs: Any) -> Any:
    leaves, structure = pytree.flatten(tree)
    specs = pytree.spread(f"{function} pspecs", pspecs, tree, pytree.is_none)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise OptionError(f"{function}: pspecs has {spec!r}", instead="PartitionSpec(), for what is not cut")
    return structure.unflatten([lay(x, NamedSharding(mesh, s)) for x, s in zip(leaves, specs, strict=True)])


def _is_shared(x: Any) -> bool:
    """Whether parts of the array are on devices of other processes."""
    return isinstance(x, Array) and not x.is_fully_addressable


def _host(x: Any) -> np.ndarray:
    """`x` as a NumPy array, of the dtype that it has on devices."""
    return np.asarray(x, typeof(x).dtype)


def _side_by_side(mine: np.ndarray) -> Array:
    """The arrays of all processes concatenated along the first axis; each is on the first device of its process."""
    count = process_count()
    # Reversed, so that the first device of each process is the one that stays in the dict.
    first = {d.process_index: d for d in reversed(devices())}
    mesh = Mesh(np.array([first[i] for i in range(count)]), ("processes",))
    part = put(mine, typeof(mine), single_device(local_devices()[0]), committed=True)
    shape = (count * mine.shape[0], *mine.shape[1:])
    return make_array_from_single_device_arrays(shape, NamedSharding(mesh, PartitionSpec("processes")), [part])


publish(__name__)
