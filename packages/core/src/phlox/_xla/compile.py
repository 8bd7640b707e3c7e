"""Compiles StableHLO text to a loaded executable, or loads it from the disk cache."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from jaxlib.version import __version__

from .._base import monitoring
from .._base.errors import CompilationError, CompilerOptionError
from .._base.native import native
from .._base.scoped import scoped
from . import disk
from .bindings import parse
from .cpu_emitter import Overrides
from .devices import Device
from .platforms import processor

JaxRuntimeError = native.JaxRuntimeError
JAXLIB_VERSION = __version__

#: names of `default_options` options that this jaxlib has refused; they are left out from then on
_refused: set[str] = set()


def options(devices: tuple[Device, ...], *, shardy: bool, outputs: int = 0) -> Any:
    """Compile options for a program with one partition on each of `devices`."""
    result = native.CompileOptions()
    result.num_replicas = 1
    result.num_partitions = len(devices)
    # XLA's value for "no profile".
    result.profile_version = -1
    ids = np.array([[device.id for device in devices]], np.int32)
    # The grid is (replicas, partitions). phlox has one replica always: with several, jaxlib reports the shape of a
    # replica as that of the array.
    result.device_assignment = native.DeviceAssignment.create(ids)
    build = result.executable_build_options
    # Also for one device, so that the cache key has one form.
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = shardy
    if len(devices) > 1 and outputs:
        # Lets XLA choose the shardings of results which the text does not say.
        build.allow_spmd_sharding_propagation_to_output = [True] * outputs
    return result


#: options that are attributes of ExecutableBuildOptions and not flags of XLA
_BUILD = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")


def _set_options(settings: Any, default_options: Overrides, overrides: Overrides) -> None:
    """Adds compiler options to `settings`: attributes of the build options, and overrides of XLA's flags."""
    build = settings.executable_build_options
    known = [name for name in _BUILD if hasattr(build, name)]  # depends on the version of jaxlib
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
    flags = [*default_options, *(option for option in overrides if option[0] not in known)]
    if flags:
        # The whole list at once: the attribute is a copy, and appending to it would change nothing.
        settings.env_option_overrides = flags


#: each makes a context around a compilation by XLA, from the Jaxpr and its name, but not around loading from disk
observers: list[Callable[..., contextlib.AbstractContextManager[Any]]] = []
#: the Jaxpr that is being compiled, and its name
_compiled_jaxpr: ContextVar[tuple[Any, ...]] = ContextVar("phlox_compiled_jaxpr", default=())


def compilation_of(jaxpr: Any, name: str) -> contextlib.AbstractContextManager[None]:
    """A context for the compilation of a Jaxpr, which `observers` can describe."""
    return scoped(_compiled_jaxpr, (jaxpr, name))


class Loaded(NamedTuple):
    """A loaded executable."""

    executable: Any
    #: returns its bytes; None if they are no longer on disk. Bytes that were read from disk are read again: on a CPU,
    #: jaxlib's `serialize_executable` of such an executable leaves out the machine code.
    serialized: Callable[[], bytes | None]


def compile_text(
    text: str,
    devices: tuple[Device, ...],
    *,
    located: Callable[[], str] | None = None,
    shardy: bool = True,
    outputs: int = 0,
    overrides: Overrides = (),
    default_options: Overrides = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    private: bool = False,
    only_stored: bool = False,
) -> Loaded | None:
    """The loaded executable of a module, from the disk cache if it is there; with `only_stored` None if it is not.

    `located` returns the text with locations, which XLA compiles; the cache key depends on `text` only. `overrides` are
    the user's compiler options, which XLA must accept; `default_options` are left out if XLA does not know them.
    `callbacks` are the Python functions that the program calls, by index; a stored program gets those of this process.
    A `private` program refers to objects of this process and is not stored on disk.
    """
    client = devices[0].client
    settings = options(devices, shardy=shardy, outputs=outputs)
    # The options are part of the cache key: refused ones are left out before it is computed.
    default_options = tuple(option for option in default_options if option[0] not in _refused)
    _set_options(settings, default_options, overrides)
    device_list = native.DeviceList(devices)
    # Only CPUs are known to load programs with callbacks. XLA takes callbacks only with a parsed module, and parsing
    # imports MLIR's bindings (60 ms).
    if private or (callbacks and client.platform != "cpu"):
        arguments: dict[str, Any] = {"text": text, "overrides": overrides, "host_callbacks": list(callbacks)}
        return _in_memory(client, _compiled(client, parse(text), device_list, settings, **arguments))
    start = time.monotonic()
    host_callbacks = (list(callbacks),) if callbacks else ()
    # The text without locations is hashed, so that moving a function in a file does not compile it again.
    key = _cache_key(text, settings, client, devices)
    loaded = _load(client, key, device_list, settings, *host_callbacks)
    # With `only_stored` no miss is recorded, as the caller asks again.
    if loaded is not None or not only_stored:
        _record_request(loaded is not None, time.monotonic() - start)
    if loaded is not None:
        return Loaded(loaded, functools.partial(disk.load, key))
    if only_stored:
        return None
    try:
        # The text with locations is made only for a compilation: loading needs none.
        source = text if located is None else located()
        module, more = (parse(source), {"host_callbacks": list(callbacks)}) if callbacks else (source, {})
        executable = _compiled(
            client, module, device_list, settings, text=text, overrides=(*default_options, *overrides), **more
        )
    except CompilerOptionError as error:
        if not _note_refused(default_options, error):  # an option of the user
            raise
        return compile_text(
            text,
            devices,
            located=located,
            shardy=shardy,
            outputs=outputs,
            overrides=overrides,
            default_options=default_options,
            callbacks=callbacks,
        )
    with contextlib.suppress(JaxRuntimeError):  # programs that cannot be serialized are compiled each time
        disk.store(key, client.serialize_executable(executable))
    return _in_memory(client, executable)


def _in_memory(client: Any, executable: Any) -> Loaded:
    return Loaded(executable, functools.partial(client.serialize_executable, executable))


def _record_request(is_hit: bool, seconds: float) -> None:
    """Records a request to the disk cache."""
    monitoring.record_event(monitoring.CACHE_ASKED)
    monitoring.record_event(monitoring.CACHE_HIT if is_hit else monitoring.CACHE_MISS)
    if is_hit:
        monitoring.record_event_duration_secs(monitoring.CACHE_READ, seconds)


def _note_refused(default_options: Overrides, error: Exception) -> bool:
    """Whether this XLA refuses an option of `default_options`, which is then left out of all programs."""
    # The message of XLA is the context, as `_compiled` raises its own error from None.
    refused = {name for name, _ in default_options if name in str(error.__context__)}
    _refused.update(refused)
    return bool(refused)


def _load(client: Any, key: str, *how: Any) -> Any:
    """The executable of this key from the disk cache, or None."""
    stored = disk.load(key)
    if stored is None:
        return None
    try:
        return client.deserialize_executable(stored, *how)
    except JaxRuntimeError:
        disk.discard(key)  # this jaxlib cannot read it
        return None


def load_serialized(serialized: bytes, devices: tuple[Device, ...], outputs: int) -> Loaded:
    """The executable of bytes that `Loaded.serialized` returned in a process with this jaxlib."""
    settings = options(devices, shardy=True, outputs=outputs)
    executable = devices[0].client.deserialize_executable(serialized, native.DeviceList(devices), settings)
    return Loaded(executable, lambda: serialized)


def _compiled(client: Any, module: Any, *how: Any, text: str, overrides: Overrides, **more: Any) -> Any:
    try:
        with contextlib.ExitStack() as stack:
            # Observers see traced functions only: compilations outside of `compilation_of` have no Jaxpr to show.
            for observer in observers if _compiled_jaxpr.get() else ():
                stack.enter_context(observer(*_compiled_jaxpr.get()))
            return client.compile_and_load(module, *how, **more)
    except JaxRuntimeError as error:
        if overrides and "INVALID_ARGUMENT" in str(error):
            options = ", ".join(f"{name}={value!r}" for name, value in overrides)
            raise CompilerOptionError(f"XLA does not take the options {options}: {error}", options=overrides) from None
        # `from None`, since the message repeats XLA's.
        raise CompilationError(f"XLA could not compile the program: {error}", text=text) from None


def _cache_key(text: str, settings: Any, client: Any, devices: tuple[Device, ...]) -> str:
    import hashlib  # here, to keep `import phlox` fast

    digest = hashlib.sha256(text.encode())
    digest.update(settings.SerializeAsString())
    digest.update(_environment().encode())
    # `platform_version` has the versions of CUDA and its libraries, `device_kind` the model of the GPU.
    digest.update(f"{client.platform} {client.platform_version} {devices[0].device_kind}".encode())
    return digest.hexdigest()


@functools.cache
def _environment() -> str:
    """The parts of the cache key besides program and options: jaxlib's version, XLA_FLAGS, and the processor.

    A home folder may be shared by machines: code for AVX-512 ends a process on a processor without it.
    """
    import platform

    return "\n".join([JAXLIB_VERSION, os.environ.get("XLA_FLAGS", ""), platform.machine(), processor()])
