"""Distributed programs: the connection of this process to the others.

Process 0 runs a service to which all processes connect. The connection is used when the client of a platform starts
(see `devices`), which then has the devices of all processes. `clusters` finds what the user does not give, `liveness`
ends this process when another one fails.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base import config
from .._base.errors import ArgumentError, DeviceError, DistributedError, OptionError
from .._base.native import native

if TYPE_CHECKING:
    from .liveness import Watch

#: Hosts whose traffic does not leave this machine.
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_COUNT = "phlox/num_processes"


class DistributedState(NamedTuple):
    """The number of this process, the number of processes, and the connection to them."""

    process_id: int
    num_processes: int
    coordinator: str
    client: Any
    service: Any
    watch: Watch
    partition: int | None

    def cpu_options(self) -> dict[str, Any]:
        """Keyword arguments for the constructor of the CPU client."""
        here = _own_address(self.coordinator)
        local = {} if here is None else {"hostname": here}
        return {
            "distributed_client": self.client,
            "node_id": self.process_id,
            "num_nodes": self.num_processes,
            # XLA's CPU runtime has no collectives of its own. Gloo finds the other processes through the client's
            # store.
            "collectives": native.make_gloo_tcp_collectives(distributed_client=self.client, **local),
        }

    def plugin_options(self) -> dict[str, Any]:
        """Options for the client of a plugin."""
        partition = {} if self.partition is None else {"partition_index": self.partition}
        return {"node_id": self.process_id, "num_nodes": self.num_processes, **partition}


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16):
        raise OptionError(
            f"distributed.initialize: coordinator_address={address!r} is no address", instead="'host:port'"
        )
    return host, int(port)


def _own_address(coordinator: str) -> str | None:
    """The address of this machine by which others reach it: the one from which it reaches the coordinator.

    None if only the machine's name is known. That name often stands for 127.0.1.1 in its own table of hosts.
    """
    import socket  # here and below, as few processes need what is imported

    host, port = _split(coordinator)
    if host in _LOOPBACK:
        return "127.0.0.1"
    try:
        # ``host:port`` has IPv6 addresses in brackets, which `socket` does not take.
        kind, *_, where = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_DGRAM)[0]
        # A UDP socket: connecting it only chooses a route, so no process has to listen.
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect(where)  # sends nothing
            here = probe.getsockname()[0]
    except OSError:
        return None
    return None if here.startswith("127.") else here


_state: DistributedState | None = None
#: whether devices are in use: devices.py, which is built on this module, says so
_has_clients = False


def set_has_clients(flag: bool) -> None:
    """Says whether a client of some platform exists; `initialize` must come before the first one."""
    global _has_clients
    _has_clients = flag


def distributed_state() -> DistributedState | None:
    """The connection to the other processes; None if this process runs alone."""
    return _state


def _number(name: str, value: int | None, cluster: str | None) -> int:
    if value is None:
        raise OptionError(
            f"distributed.initialize: {name} is not given, and no cluster tells it",
            instead=f"{name}=...; or python -m phlox.launch, srun, mpirun",
            cluster=cluster,
        )
    if not isinstance(value, int):
        raise ArgumentError(f"distributed.initialize: {name}={value!r} is no integer")
    return value


def _local_device_ids(device_ids: int | Sequence[int] | None) -> list[int] | None:
    if device_ids is None:
        text = os.environ.get("JAX_LOCAL_DEVICE_IDS")
        return [int(number) for number in text.split(",")] if text else None
    return [device_ids] if isinstance(device_ids, int) else list(device_ids)


def _partition_index(index: int | None) -> int | None:
    names = ("JAX_PARTITION_INDEX", "JAX_SLICE_INDEX")
    return index if index is not None else next((int(os.environ[name]) for name in names if name in os.environ), None)


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

    What is not given comes from the launcher or cluster that started the process: `phlox.launch`, Open MPI, SLURM,
    Kubernetes. When a process fails later, the others end with exit status 75 and a line that says which.

    Args:
      coordinator_address: ``host:port`` of process 0; None: the environment variable JAX_COORDINATOR_ADDRESS, or what
        the cluster says. JAX_COORDINATOR_PORT replaces the port that is derived from the cluster's job.
      num_processes: number of processes.
      process_id: number of this process, from 0.
      local_device_ids: the GPUs of this machine that this process uses; None: the environment variable
        JAX_LOCAL_DEVICE_IDS, or in clusters that number the processes of a machine the one of that number, or all. The
        devices of the CPU are not restricted.
      cluster_detection_method: ``"launch"``, ``"ompi"``, ``"slurm"``, ``"k8s"``, or ``"mpi4py"`` for other kinds of
        MPI; None: the first of them that is there, without mpi4py; ``"deactivate"``: none.
      initialization_timeout: seconds to wait for the other processes.
      heartbeat_timeout_seconds: a process that does not answer for this many seconds counts as dead.
      shutdown_timeout_seconds: seconds that a process waits at its end for the other processes.
      coordinator_bind_address: address on which process 0 listens; None: the environment variable
        JAX_COORDINATOR_BIND_ADDRESS, or loopback if the coordinator's host is, or all its addresses.
      slice_index: the former name of `partition_index`.
      partition_index: number of the group of accelerators that this process belongs to, passed on to the accelerator's
        runtime; None: the environment variable JAX_PARTITION_INDEX.

    Returns:
      None, when all processes are connected.

    Raises:
      DeviceError: devices are in use already, or `initialize` was called before.
      OptionError: the address or a number is missing, or `process_id` is not below `num_processes`.
      DistributedError: the processes did not find each other within `initialization_timeout`.

    On each of two processes, with its own number (0 or 1) as `me`:

    >>> phlox.distributed.initialize("10.0.0.1:1234", num_processes=2, process_id=me)  # doctest: +SKIP
    """
    global _state
    from .clusters import Place, completed
    from .liveness import Watch, callback_for

    _check_first()
    deadline = time.monotonic() + initialization_timeout
    coordinator = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    place, cluster = completed(
        Place(coordinator, num_processes, process_id, _local_device_ids(local_device_ids)),
        cluster_detection_method,
        initialization_timeout,
    )
    address, host, port = _address(place.address)
    count, number = _number("num_processes", place.processes, cluster), _number("process_id", place.number, cluster)
    if not 0 <= number < count:
        raise OptionError(f"distributed.initialize: process_id={number} is not in 0 … {count - 1}")
    _use_gpus(place.devices)
    service = None
    if number == 0:
        service = _start_service(
            _bind_address(coordinator_bind_address, host, port),
            count,
            initialization_timeout,
            heartbeat_timeout_seconds,
            shutdown_timeout_seconds,
        )
    else:
        # The service must listen first: XLA's client fails without saying why.
        _wait_for_port(address, number, deadline)
    watch = Watch(number, count, address, heartbeat_timeout_seconds)
    # The watch needs the client, and the client takes a callback of the watch.
    client = watch.client = native.get_distributed_runtime_client(
        address,
        number,
        init_timeout=max(1, round(deadline - time.monotonic())),
        heartbeat_timeout=heartbeat_timeout_seconds,
        shutdown_timeout=shutdown_timeout_seconds,
        missed_heartbeat_callback=callback_for(watch),
        use_compression=True,
    )
    _connect(client, watch, address, number, count, initialization_timeout)
    partition = _partition_index(partition_index if partition_index is not None else slice_index)
    # The service lives as long as this object; without it, all other processes would lose their connection.
    _state = DistributedState(number, count, address, client, service, watch, partition)
    watch.start()
    # No client of a platform exists yet. Functions registered later run earlier, so clients go before the connection.
    atexit.register(_at_exit)


def _check_first() -> None:
    if _state is not None:
        raise DeviceError(
            "distributed.initialize: this process is connected already",
            instead="one call, or distributed.shutdown() before",
        )
    if _has_clients:
        raise DeviceError("distributed.initialize: devices are in use already", instead="call it before anything else")


def _address(address: str | None) -> tuple[str, str, int]:
    """The coordinator's address, its host and its port."""
    if address is None:
        raise OptionError(
            "distributed.initialize: coordinator_address is not given, and no cluster tells it",
            instead="'host:port'; or python -m phlox.launch, srun, mpirun",
        )
    return address, *_split(address)


def _use_gpus(numbers: list[int] | None) -> None:
    """Restricts the clients of GPUs to these devices. They read the flags when they start, which is later."""
    if numbers:
        for flag in ("cuda_visible_devices", "rocm_visible_devices"):
            config.update(flag, ",".join(map(str, numbers)))


def _bind_address(address: str | None, host: str, port: int) -> str:
    """The address on which process 0 listens; `host` and `port` are those of the coordinator."""
    address = address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
    # A coordinator at a loopback address listens only there, so that its port is open to no other machine.
    loopback = "[::1]" if host == "[::1]" else "127.0.0.1"
    return address or (f"{loopback}:{port}" if host in _LOOPBACK else f"[::]:{port}")


def _connect(client: Any, watch: Watch, address: str, number: int, count: int, timeout: int) -> None:
    """Connects the client and checks that all processes expect the same number of processes."""
    try:
        client.connect()
    except RuntimeError as error:  # its text is lost in jaxlib, see `liveness`
        watch.stop()
        reason = str(error) if "bad_cast" not in str(error) else ""
        raise DistributedError(
            f"distributed.initialize: process {number} reached the coordinator at {address}, but the {count} processes "
            f"did not come together within {timeout} s. {reason}".rstrip(),
            instead=f"start each process_id from 0 to {count - 1} once, all with num_processes={count}; "
            "the log of process 0 names those that are missing" + _proxies(),
            address=address,
            process_id=number,
            num_processes=count,
        ) from None
    try:
        _same_count(client, number, count, timeout)
    except DistributedError as error:
        # The others wait in `initialize` for a process that is about to end.
        watch.tell(f"{type(error).__name__}: {error}")
        raise


def _start_service(bind: str, count: int, initialization: int, heartbeat: int, shutdown: int) -> Any:
    try:
        # Tried first with a plain socket, as errors of XLA's service may end the process.
        _try_to_listen(bind)
        return native.get_distributed_runtime_service(
            bind,
            count,
            cluster_register_timeout=initialization,
            heartbeat_timeout=heartbeat,
            shutdown_timeout=shutdown,
        )
    except (OSError, native.JaxRuntimeError) as error:
        raise DistributedError(
            f"distributed.initialize: process 0 cannot listen at {bind}: {str(error).splitlines()[0]}",
            instead="a free port of this machine; another program, or another process 0, may use this one",
            address=bind,
            process_id=0,
            num_processes=count,
        ) from None


def _try_to_listen(bind: str) -> None:
    """Raises OSError if the port is taken or not allowed: XLA's service sometimes ends the process by a signal then.

    What else may be wrong with an address is left to the service.
    """
    import socket

    host, port = _split(bind)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the service: ports just left are free
            trial.bind(address)  # without listening, as other processes would take it for the service
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise


def _wait_for_port(address: str, number: int, deadline: float) -> None:
    """Waits until something listens at `address`; process 0 may start later. XLA's client would not say what fails."""
    import socket

    host, port = _split(address)
    while True:
        try:
            socket.create_connection((host.strip("[]"), port), timeout=max(0.1, deadline - time.monotonic())).close()
            return
        except OSError as error:
            if time.monotonic() + 0.2 >= deadline:
                raise DistributedError(
                    f"distributed.initialize: process {number} cannot reach the coordinator at {address}: {error}",
                    instead="the address of the machine that runs process 0; does it run, and is the port open?",
                    address=address,
                    process_id=number,
                ) from None
            time.sleep(0.2)


def _same_count(client: Any, number: int, count: int, timeout: int) -> None:
    """Raises if process 0 was given another number of processes; the service does not compare them."""
    if number == 0:
        client.key_value_set(_COUNT, str(count))
        return
    # In milliseconds, where all other timeouts are in seconds.
    there = int(client.blocking_key_value_get(_COUNT, 1000 * timeout))
    if there != count:
        raise DistributedError(
            f"distributed.initialize: process {number} has num_processes={count}, process 0 has {there}",
            instead="the same number in all processes",
            process_id=number,
            num_processes=count,
        )


def _proxies() -> str:
    # The connection is one of gRPC, which reads such variables. A proxy may not reach the coordinator.
    variables = [
        name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
    ]
    return f"; the connection may go through the proxy of {', '.join(variables)}" if variables else ""


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

    Raises:
      DistributedError: another process has failed, or has not come to its end within the timeout of `initialize`.

    >>> shutdown()
    """
    global _state
    if _state is None:
        return
    # First of all, so that the function at exit does not disconnect again after an error here.
    leaving, _state = _state, None
    # From here on, processes that disappear have come to their end and have not failed.
    leaving.watch.leaving = True
    try:
        leaving.client.shutdown()
    except (native.JaxRuntimeError, RuntimeError) as error:
        raise DistributedError(
            f"distributed.shutdown: process {leaving.process_id} waited in vain for the others: "
            f"{str(error).splitlines()[0]}",
            process_id=leaving.process_id,
            num_processes=leaving.num_processes,
        ) from None
    finally:
        # In this order: the threads use the client, which needs the service until it has disconnected.
        leaving.watch.stop()
        if leaving.service is not None:
            leaving.service.shutdown()


def _at_exit() -> None:
    """Leaves the others: at once if this program failed, else when all come to their end."""
    global _state
    if _state is None:
        return
    # Python sets `last_value` for an exception that nothing caught. In an interactive session (`ps1`) the user goes on.
    failure = getattr(sys, "last_value", None)
    if failure is not None and not hasattr(sys, "ps1"):
        _state.watch.fail(f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0]}")
    try:
        shutdown()
    except DistributedError as error:
        from .liveness import end

        end(str(error))
