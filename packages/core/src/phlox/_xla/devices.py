"""Clients (XLA's runtimes, one for each platform) and devices. A client starts at first use, never at import."""

from __future__ import annotations

import atexit
import copyreg
import functools
import gc
import os
import threading
from typing import Any, TypeAlias

from .._base import checks, config
from .._base.docstrings import docs_from
from .._base.errors import BackendError, CheckRuntimeWarning, DeviceError
from .._base.native import native
from .._base.source import warn
from .distributed import distributed_state, set_has_clients

Device: TypeAlias = native.Device
Client = Any

_clients: dict[str, Client] = {}
_lock = threading.Lock()
#: name that users may write -> the platforms that it may stand for
_ALIASES = {"gpu": ("cuda", "rocm")}


def _make_cpu_client() -> Client:
    settings = config.current()
    count = settings.num_cpu_devices
    together = distributed_state()
    others = together.cpu_options() if together is not None else {}
    asynchronous = settings.cpu_enable_async_dispatch
    # Without a count XLA_FLAGS decides (``--xla_force_host_platform_device_count``), which an argument would override.
    return native.get_tfrt_cpu_client(asynchronous=asynchronous, **({"num_devices": count} if count else {}), **others)


def platforms() -> list[str]:
    """Names of the platforms that a client can be made for, whether or not this machine has their devices."""
    from . import plugins  # here and below: only where a client is about to start

    return sorted(["cpu", *(name for name, plugin in plugins.installed().items() if plugin.make is not None)])


def client(platform: str | None = None) -> Client:
    """The client of `platform`; None: of the first available platform of the flag `platforms`, or of the default."""
    if platform is None:
        platform_list = config.current().platforms
        return client(_first_available(platform_list) if platform_list else _default_platform())
    # The lock is not taken for a client that is there: reading a dict is atomic in Python, and each new array comes
    # here.
    cached = _clients.get(platform)
    if cached is not None:
        return cached
    name = _meant(platform)
    # Two threads may make their first arrays at once; XLA would give each its own client, and buffers of two clients do
    # not mix.
    with _lock:
        if name not in _clients:
            _clients[name] = _start_client(name)
            set_has_clients(True)
            if len(_clients) == 1:
                # As in jax: references that XLA's threads have dropped are freed at each garbage collection.
                gc.callbacks.append(_collect)
                # Clients go before Python's own modules: their threads may call into Python.
                atexit.register(_forget_clients)
                os.register_at_fork(before=_warn_of_fork)
    return _clients[name]


def _warn_of_fork() -> None:
    """Warns that a forked process has XLA's memory without its threads, and waits for them forever when it computes."""
    if _clients and checks.is_on():
        warn(
            "os.fork() was called after phlox has computed: the new process has no copy of XLA's threads, and hangs as "
            "soon as it computes with phlox; "
            "instead: multiprocessing.get_context('spawn'), or DataLoader(..., multiprocessing_context='spawn')",
            CheckRuntimeWarning,
        )


def _meant(platform: str) -> str:
    """The name of a client, from what users call the platform."""
    if platform == "cpu":
        return platform
    from . import plugins

    there = platforms()
    name = next((name for name in _ALIASES.get(platform, (platform,)) if name in there), None)
    if name is None:
        known = plugins.installed().get(platform)
        why = f": {known.state}" if known is not None else ""
        raise BackendError(
            f"Unknown backend: {platform!r}{why}", instead="one of " + ", ".join(there), backend=platform
        )
    return name


def _start_client(name: str) -> Client:
    if name == "cpu":
        return _make_cpu_client()
    from . import plugins

    plugin = plugins.installed()[name]
    assert plugin.make is not None
    try:
        return plugin.make()
    except Exception as error:
        raise BackendError(
            f"the platform {name!r} of {plugin.origin} does not start: {(str(error).splitlines() or [''])[0]}",
            instead="PHLOX_PLATFORMS=cpu, to go without it",
            backend=name,
        ) from error


@functools.cache
def _default_platform() -> str:
    """The platform of the plugin with the highest priority, or the CPU. One line is logged if a GPU is left unused."""
    from . import gpu, plugins

    there = plugins.installed()
    usable = [plugin for plugin in there.values() if plugin.make is not None and plugin.priority > 0]
    # A plugin may be installed where there is no GPU, so that its client would not start.
    if not gpu.is_visible():
        usable = [plugin for plugin in usable if plugin.name != "cuda"]
    for plugin in there.values():
        if plugin.make is None:
            plugins.log("%s", plugin.state)
    if gpu.is_visible() and "cuda" not in there:
        plugins.log("an NVIDIA GPU is not used, as its plugin is missing: %s", gpu.advice(plugins.jaxlib_version))
    return max(usable, key=lambda plugin: plugin.priority).name if usable else "cpu"


@functools.cache
def _first_available(platform_list: str) -> str:
    """The first available one of these platforms, whose names are separated by commas."""
    names = [name.strip() for name in platform_list.split(",")]
    for name in names:
        try:
            # The attempt is the test: a plugin may be installed on a machine without its devices.
            client(name)
        except BackendError:
            continue
        return name
    raise BackendError(
        f"none of the platforms {platform_list!r} is there",
        instead=f"PHLOX_PLATFORMS (or JAX_PLATFORMS) with one of {', '.join(platforms())}, or not set",
        backend=platform_list,
    )


# jaxlib collects Python references that its threads have dropped; only a thread that holds the GIL can free them.
def _collect(*_: Any) -> None:
    native.collect_garbage()


def _forget_clients() -> None:
    if _collect in gc.callbacks:
        gc.callbacks.remove(_collect)
    _clients.clear()
    set_has_clients(False)


def runs(platform: str) -> bool:
    """Whether the client of this platform has started."""
    return platform in _clients


def started() -> bool:
    """True once a client exists. Then settings such as `num_cpu_devices` have no effect any more."""
    return bool(_clients)


def devices(backend: str | None = None) -> list[Device]:
    """All devices of `backend`, in order of their ids.

    Args:
      backend: name of a platform, such as ``'cpu'``; None for the default one.

    Returns:
      A list of `Device`, including those of other processes.

    Raises:
      BackendError: there is no such backend.

    >>> devices("cpu")[0].platform
    'cpu'
    """
    return client(backend).devices()


def _same_device(platform: str, number: int) -> Device:
    """The device of this process with this number, for one that was pickled."""
    for device in client(platform).devices():
        if device.id == number:
            return device
    raise DeviceError(
        f"a pickled object lies on device {number} of platform {platform!r}, and this process has no such device",
        instead="as many devices as the other process had, or jax.device_put to a device of this process"
        if platform != "cpu"
        else f"phlox.config.update('num_cpu_devices', {number + 1}) or more, before the first array is made",
    )


def _device_reduce(device: Device) -> Any:
    """Devices are pickled as their platform and number, and found again by them."""
    if device.client not in _clients.values():  # those of jax, in one process with phlox, are not phlox's to find
        raise TypeError(f"cannot pickle {type(device).__name__!r} object")
    return _same_device, (device.client.platform, device.id)


copyreg.pickle(Device, _device_reduce)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Devices of this process, or of process `process_index`.

    Args:
      process_index: number of a process; None for this one.
      backend: name of a platform, such as ``'cpu'``; None for the default one.
      host_id: the former name of `process_index`; used if `process_index` is None.

    Returns:
      A list of `Device`.

    Raises:
      BackendError: there is no such backend.
      DeviceError: there is no such process.

    >>> len(local_devices()) == len(devices())
    True
    """
    index = host_id if process_index is None else process_index
    if index is None:
        return client(backend).local_devices()
    chosen = [device for device in devices(backend) if device.process_index == index]
    if not chosen:
        raise DeviceError(
            f"local_devices: Unknown process_index {index!r}",
            instead=f"a number from 0 to {process_count(backend) - 1}",
        )
    return chosen


def default_backend() -> str:
    """Name of the default platform: ``'cpu'``, ``'gpu'`` …

    Returns:
      The name of the platform of ``devices()[0]``.

    >>> default_backend() == devices()[0].platform
    True
    """
    return client().platform


def device_count(backend: str | None = None) -> int:
    """Number of devices in all processes.

    Args:
      backend: name of a platform; None for the default one.

    Returns:
      The length of ``devices(backend)``.

    >>> device_count() == len(devices())
    True
    """
    return len(devices(backend))


@docs_from(device_count)
def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process.

    Returns:
      The length of ``local_devices(backend=backend)``.

    >>> local_device_count() <= device_count()
    True
    """
    return len(local_devices(backend=backend))


@docs_from(device_count)
def process_index(backend: str | None = None) -> int:
    """Number of this process in a distributed program; 0 if it runs alone.

    Returns:
      An int from 0 to ``process_count() - 1``.

    >>> process_index()
    0
    """
    return client(backend).process_index()


@docs_from(device_count)
def process_count(backend: str | None = None) -> int:
    """Number of processes of a distributed program.

    Returns:
      An int; 1 unless `phlox.distributed.initialize` was called.

    >>> process_count()
    1
    """
    # The devices of a client are those of all processes.
    return max(device.process_index for device in devices(backend)) + 1


@docs_from(device_count)
def process_indices(backend: str | None = None) -> list[int]:
    """Numbers of the processes of a distributed program.

    Returns:
      The list ``[0, 1, ..., process_count() - 1]``.

    >>> process_indices()
    [0]
    """
    return list(range(process_count(backend)))


@docs_from(process_index)
def host_id(backend: str | None = None) -> int:
    """The former name of `process_index`.

    >>> host_id()
    0
    """
    return process_index(backend)


@docs_from(process_count)
def host_count(backend: str | None = None) -> int:
    """The former name of `process_count`.

    >>> host_count()
    1
    """
    return process_count(backend)


@docs_from(process_indices)
def host_ids(backend: str | None = None) -> list[int]:
    """The former name of `process_indices`.

    >>> host_ids()
    [0]
    """
    return process_indices(backend)


def first_device() -> Device:
    """The first device of this process: the default device if no flag names one."""
    # Read for each new array, so that a lookup of the client is too slow.
    return _first or _find_first()


_first: Device | None = None


def _find_first() -> Device:
    global _first
    device = local_devices()[0]
    _first = device
    return device


def default_device() -> Device:
    """The device of arrays that are not placed explicitly: the flag `default_device`, or the first device."""
    device = config.current().default_device
    if device is None:
        return first_device()
    return local_devices(backend=device)[0] if isinstance(device, str) else device
