"""From StableHLO text to a loaded executable, by way of the disk cache."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.version import __version__ as _jaxlib_version

from .._base import monitoring
from .._base.errors import CompilationError, CompilerOptionError
from .._base.native import native
from . import disk
from .bindings import parse
from .devices import Device
from .pipeline import Overrides

JaxRuntimeError = native.JaxRuntimeError

#: options that this jaxlib turned out not to know
_refused: set[str] = set()


def options(devices: tuple[Device, ...], *, shardy: bool, outputs: int = 0) -> Any:
    """Compile options for one program over `devices`: one partition for each."""
    result = native.CompileOptions()
    result.num_replicas = 1
    result.num_partitions = len(devices)
    result.profile_version = -1
    ids = np.array([[device.id for device in devices]], np.int32)
    result.device_assignment = native.DeviceAssignment.create(ids)
    build = result.executable_build_options
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = shardy
    if len(devices) > 1 and outputs:
        build.allow_spmd_sharding_propagation_to_output = [True] * outputs
    return result


#: options that are not flags of XLA, but what a program is built with
_BUILD = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")


def _set(settings: Any, advice: Overrides, overrides: Overrides) -> None:
    """Puts options of both kinds where XLA looks for them."""
    build = settings.executable_build_options
    known = [name for name in _BUILD if hasattr(build, name)]  # by jaxlib's version
    for name, value in overrides:
        if name in known:
            try:
                setattr(build, name, value)
            except TypeError:
                kind = "float" if name.endswith("effort") else "int"
                raise CompilerOptionError(
                    f"compiler_options: {name} is {value!r} of type {type(value).__name__}",
                    instead=f"a number of type {kind}",
                    options=overrides,
                ) from None
    flags = [*advice, *(option for option in overrides if option[0] not in known)]
    if flags:
        settings.env_option_overrides = flags


def compile_text(
    text: str,
    devices: tuple[Device, ...],
    *,
    located: Callable[[], str] | None = None,
    shardy: bool = True,
    outputs: int = 0,
    overrides: Overrides = (),
    advice: Overrides = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    private: bool = False,
) -> Any:
    """The loaded executable of a module, from the disk cache when it is there.

    `located` writes the text with the names and lines that profiles show; XLA gets that one, and programs are known by
    `text` alone. `overrides` are options of XLA for this program, and `advice` such as are left out where it does not
    know them. `callbacks` are the Python functions that it calls, by number. A `private` program means something in
    this process alone, and is not kept on disk.
    """
    client = devices[0].client
    settings = options(devices, shardy=shardy, outputs=outputs)
    advice = tuple(option for option in advice if option[0] not in _refused)
    _set(settings, advice, overrides)
    device_list = native.DeviceList(devices)
    if private:
        module, functions = parse(text), list(callbacks)
        return _compiled(
            client, module, device_list, settings, text=text, overrides=overrides, host_callbacks=functions
        )
    monitoring.record_event(monitoring.CACHE_ASKED)
    start = time.monotonic()
    key = _cache_key(text, settings, client, devices)
    stored = disk.load(key)
    if stored is not None:
        try:
            loaded = client.deserialize_executable(stored, device_list, settings)
            monitoring.record_event(monitoring.CACHE_HIT)
            monitoring.record_event_duration_secs(monitoring.CACHE_READ, time.monotonic() - start)
            return loaded
        except JaxRuntimeError:
            disk.discard(key)  # written by something that this jaxlib does not understand
    monitoring.record_event(monitoring.CACHE_MISS)
    try:
        shown = text if located is None else located()
        executable = _compiled(client, shown, device_list, settings, text=text, overrides=(*advice, *overrides))
    except CompilerOptionError:
        if not advice:
            raise
        _refused.update(name for name, _ in advice)
        return compile_text(text, devices, located=located, shardy=shardy, outputs=outputs, overrides=overrides)
    with contextlib.suppress(JaxRuntimeError):  # programs that cannot be serialized are compiled each time
        disk.store(key, client.serialize_executable(executable))
    return executable


def _compiled(client: Any, module: Any, *how: Any, text: str, overrides: Overrides, **more: Any) -> Any:
    try:
        return client.compile_and_load(module, *how, **more)
    except JaxRuntimeError as error:
        if overrides and "INVALID_ARGUMENT" in str(error):
            given = ", ".join(f"{name}={value!r}" for name, value in overrides)
            raise CompilerOptionError(f"XLA does not take the options {given}: {error}", options=overrides) from None
        raise CompilationError(f"XLA could not compile the program: {error}", text=text) from None


def _cache_key(text: str, settings: Any, client: Any, devices: tuple[Device, ...]) -> str:
    import hashlib  # as `import phlox` does not wait for it

    digest = hashlib.sha256(text.encode())
    digest.update(settings.SerializeAsString())
    digest.update(_machine().encode())
    digest.update(f"{client.platform} {client.platform_version} {devices[0].device_kind}".encode())
    return digest.hexdigest()


@functools.cache
def _machine() -> str:
    """What machine code depends on besides the program: jaxlib, its flags, and the processor's features."""
    import platform

    return "\n".join([_jaxlib_version, os.environ.get("XLA_FLAGS", ""), platform.machine(), _processor()])


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.startswith(("model name", "flags", "Features"))]
        return "\n".join(sorted(set(lines)))
    except OSError:
        import platform

        return platform.processor()
