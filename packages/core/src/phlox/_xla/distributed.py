"""Distributed programs: the connection of this process to the others.

Process 0 runs a service to which all processes connect. The connection is used when the client of a platform starts
(see `devices`), which then has the devices of all processes.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._base.errors import ArgumentError, DeviceError, OptionError
from .._base.native import native


class DistributedState(NamedTuple):
    """The number of this process, the number of processes, and the connection to them."""

    process_id: int
    num_processes: int
    coordinator: str
    client: Any
    service: Any

    def cpu_options(self) -> dict[str, Any]:
        """Keyword arguments for the constructor of the CPU client."""
        host = self.coordinator.rsplit(":", 1)[0]
        local = {"hostname": "127.0.0.1"} if host in ("localhost", "127.0.0.1") else {}
        return {
            "distributed_client": self.client,
            "node_id": self.process_id,
            "num_nodes": self.num_processes,
            "collectives": native.make_gloo_tcp_collectives(distributed_client=self.client, **local),
        }


_state: DistributedState | None = None


def distributed_state() -> DistributedState | None:
    """The connection to the other processes; None if this process runs alone."""
    return _state


def _number(name: str, given: int | None) -> int:
    if given is None:
        raise OptionError(f"distributed.initialize: {name} is not given", instead=f"{name}=...; clusters are not asked")
    if not isinstance(given, int):
        raise ArgumentError(f"distributed.initialize: {name}={given!r} is no integer")
    return given


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Connects this process with others, so that programs can run on the devices of all. Call it before the first array
    is made.

    Args:
      coordinator_address: ``host:port`` of process 0; None: the environment variable JAX_COORDINATOR_ADDRESS.
      num_processes: number of processes.
      process_id: number of this process, from 0.
      local_device_ids, cluster_detection_method, slice_index, partition_index: accepted as in JAX, and ignored: all
        devices of this process are used, and no cluster manager is queried for missing arguments.
      initialization_timeout: seconds to wait for the other processes.
      heartbeat_timeout_seconds: a process that does not answer for this many seconds counts as dead.
      shutdown_timeout_seconds: seconds that a process waits at its end for the other processes.
      coordinator_bind_address: address on which process 0 listens; None: all its addresses.

    Returns:
      None, when all processes are connected.

    Raises:
      DeviceError: devices are in use already, or `initialize` was called before.
      OptionError: the address or a number is missing, or `process_id` is not below `num_processes`.

    On each of two processes, with its own number (0 or 1) as `me`:

    >>> import phlox
    >>> phlox.distributed.initialize("10.0.0.1:1234", num_processes=2, process_id=me)  # doctest: +SKIP
    """
    global _state
    from .devices import started  # devices.py imports this module

    if started():
        raise DeviceError("distributed.initialize: devices are in use already", instead="call it before anything else")
    if _state is not None:
        raise DeviceError("distributed.initialize: called twice")
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if address is None:
        raise OptionError("distributed.initialize: coordinator_address is not given", instead="'host:port'")
    count, number = _number("num_processes", num_processes), _number("process_id", process_id)
    if not 0 <= number < count:
        raise OptionError(f"distributed.initialize: process_id={number} is not in 0 … {count - 1}")
    service = None
    if number == 0:
        service = native.get_distributed_runtime_service(
            coordinator_bind_address or "[::]:" + address.rsplit(":", 1)[1],
            count,
            heartbeat_timeout=heartbeat_timeout_seconds,
            shutdown_timeout=shutdown_timeout_seconds,
        )
    client = native.get_distributed_runtime_client(
        address,
        number,
        init_timeout=initialization_timeout,
        heartbeat_timeout=heartbeat_timeout_seconds,
        shutdown_timeout=shutdown_timeout_seconds,
        use_compression=True,
    )
    client.connect()
    _state = DistributedState(number, count, address, client, service)
    atexit.register(shutdown)


def is_initialized() -> bool:
    """True between `initialize` and `shutdown`.

    Returns:
      A bool.

    >>> is_initialized()
    False
    """
    return _state is not None


def shutdown() -> None:
    """Waits for the other processes and disconnects from them. Called automatically at the end of the process.

    Returns:
      None. Without `initialize` nothing happens.

    >>> shutdown()
    """
    global _state
    if _state is not None:
        leaving, _state = _state, None
        leaving.client.shutdown()
        if leaving.service is not None:
            leaving.service.shutdown()
