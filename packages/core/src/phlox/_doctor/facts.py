"""What is installed and set: versions, platforms, plugins, devices, the cache, environment variables.

It only reads; the clients of platforms that the user did not exclude are started, as an array would start them.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from typing import Any

import phlox

from .._api.debug.environment import version_of
from .._base import config
from .._xla import devices, disk
from .._xla.kernels import registered
from .._xla.plugins import installed

#: Variables that are no flag of phlox, and what reads them.
_READERS = {
    "JAX_COORDINATOR_ADDRESS": "phlox.distributed.initialize, if it is given no address",
    "JAX_COORDINATOR_BIND_ADDRESS": "phlox.distributed.initialize, in process 0",
    "JAX_COORDINATOR_PORT": "phlox.distributed.initialize, if a cluster says the address",
    "JAX_LOCAL_DEVICE_IDS": "phlox.distributed.initialize, if it is given no local_device_ids",
    "JAX_PARTITION_INDEX": "phlox.distributed.initialize, if it is given no partition_index",
    "PHLOX_LAUNCH_ADDRESS": "phlox.distributed.initialize; phlox.launch sets it",
    "PHLOX_LAUNCH_COUNT": "phlox.distributed.initialize; phlox.launch sets it",
    "PHLOX_LAUNCH_NUMBER": "phlox.distributed.initialize; phlox.launch sets it",
    "PJRT_NAMES_AND_LIBRARY_PATHS": "phlox, for plugins of platforms",
    **dict.fromkeys(
        (
            "XLA_CLIENT_MEM_FRACTION",
            "XLA_PYTHON_CLIENT_ALLOCATOR",
            "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB",
            "XLA_PYTHON_CLIENT_MEM_FRACTION",
            "XLA_PYTHON_CLIENT_PREALLOCATE",
        ),
        "the client of a GPU, when it starts",
    ),
    "XDG_CACHE_HOME": "phlox, for the folder of its cache",
    "XLA_FLAGS": "XLA, when it starts",
    "TF_CPP_MIN_LOG_LEVEL": "XLA's log; phlox sets it to 1 if it is not set",
    "TF_CPP_MAX_VLOG_LEVEL": "XLA's log",
    "TF_CPP_VMODULE": "XLA's log",
}
_PREFIXES = ("JAX_", "PHLOX_", "PJRT_", "XLA_")


def versions() -> dict[str, str]:
    """Versions of phlox, of what it stands on, of Python and of the system."""
    return {
        "phlox": phlox.__version__,
        "phlox-compat": _version_of_compat(),
        **{name: version_of(name) for name in ("jaxlib", "numpy", "ml_dtypes")},
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _version_of_compat() -> str:
    if importlib.util.find_spec("phlox_compat") is None:
        return "not installed: python -m phlox.as_jax and phlox.adopt need it"
    return str(importlib.import_module("phlox_compat").__version__)


def kernels() -> dict[str, str]:
    """Whether phlox-kernels is installed, used, and for which instruction set its kernels run here."""
    if importlib.util.find_spec("phlox_kernels") is None:
        return {"state": "not installed: sorts, extrema and running sums are XLA's"}
    package = importlib.import_module("phlox_kernels")
    if not config.current().native_kernels:
        return {"state": "not used, by the flag native_kernels", "version": package.__version__}
    if not registered():
        return {"state": "does not work here: the library is missing or not loaded", "version": package.__version__}
    return {"state": "used", "version": package.__version__, "instructions": package.instructions()}


def platforms() -> tuple[dict[str, list[Any]], list[dict[str, Any]]]:
    """This process's devices by platform, and the state of each platform: those of the flag `platforms`, or all."""
    setting = config.current().platforms
    # Platforms that the user excludes are not started.
    names = [name.strip() for name in setting.split(",")] if setting else devices.platforms()
    by_platform: dict[str, list[Any]] = {}
    states = []
    for name in names:
        try:
            by_platform[name] = devices.local_devices(backend=name)
        except RuntimeError as error:
            state = f"not there: {str(error).splitlines()[0]}"
        else:
            count = len(by_platform[name])
            state = f"{count} device{'s' * (count > 1)}, runtime {devices.client(name).platform_version}"
        states.append({"name": name, "devices": len(by_platform.get(name, ())), "state": state})
    return by_platform, states


def plugins() -> list[dict[str, str]]:
    """The platforms that plugins add, the packages or variables that name them, and whether they are used."""
    rows = []
    for name, plugin in installed().items():
        state = plugin.state or ("its client runs" if devices.runs(name) else "usable, not started")
        rows.append({"name": name, "version": plugin.origin, "state": state})
    return sorted(rows, key=lambda row: row["name"])


def device(one: Any) -> dict[str, Any]:
    """Kind and memory of a device. The memory is None if the device does not count it, as CPUs do not."""
    return {
        "name": str(one),
        "platform": one.platform,
        "kind": one.device_kind,
        "memory": one.memory_stats(),
        "memory_kinds": sorted(memory.kind for memory in one.addressable_memories()),
    }


def host() -> dict[str, Any]:
    """Processors that this process may use, and the machine's memory."""
    # Containers and schedulers give a process fewer processors than the machine has.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on all systems
        memory = None
    return {"processors": usable, "memory_bytes": memory}


def cache() -> dict[str, Any]:
    """The state of the disk cache: "on", "off", "not used" (a warning says why) or "not writable"."""
    info, settings = disk.info(), config.current()
    if not settings.enable_compilation_cache:
        state = "off"
    elif disk.usable_folder() is None:
        state = "not used"
    else:
        state = "on" if os.access(info.directory, os.W_OK) else "not writable"
    return {"state": state, "max_bytes": settings.compilation_cache_max_size, **info._asdict()}


def variables() -> list[dict[str, Any]]:
    """The variables of phlox, JAX and XLA that are set. What nothing reads has None for `read_by`, and a `note`."""
    names = sorted(name for name in os.environ if name in _READERS or name.startswith(_PREFIXES))
    return [{"name": name, "value": os.environ[name], **_reader(name)} for name in names]


def _reader(variable: str) -> dict[str, str | None]:
    reader = _READERS.get(variable)
    prefix, _, rest = variable.partition("_")
    flag = rest.lower()
    if reader is None and flag in config.FLAGS and prefix in ("JAX", "PHLOX"):
        return _reader_of_flag(variable, flag)
    if reader is None and prefix == "PHLOX" and config.is_read(variable):
        reader = "the tests of phlox"
    if reader is not None:
        return {"read_by": reader, "note": None}
    if prefix == "XLA":
        return {"read_by": None, "note": "phlox does not read it"}
    hint = config.near_name(variable) if prefix in ("JAX", "PHLOX") else ""
    return {"read_by": None, "note": f"nothing reads it{hint}"}


def _reader_of_flag(variable: str, flag: str) -> dict[str, str | None]:
    names = config.variables_of(flag)
    if variable not in names:
        return {"read_by": None, "note": f"nothing reads it: phlox has a folder of its own, see {names[0]}"}
    if next(name for name in names if name in os.environ) != variable:
        return {"read_by": None, "note": f"not read, as {names[0]} is set"}
    try:
        config.FLAGS[flag].parse(os.environ[variable])
    except (ValueError, TypeError) as error:
        return {"read_by": None, "note": f"not followed: it takes {error}"}
    return {"read_by": f"the flag {flag}", "note": None}
