"""Plugins for accelerators: which are installed, and how their clients start, without the jax package.

There are three sources, as in JAX: packages that name themselves in the entry points ``jax_plugins`` or lie in the
namespace of that name, the variable PJRT_NAMES_AND_LIBRARY_PATHS, and libtpu. The packages for CUDA and ROCm are loaded
by their libraries (`gpu`); other packages are asked by their function ``initialize``, which expects two functions of
jax, for which `_stand_in` has others.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from jaxlib.version import __version__

from .._base.errors import DeviceError
from .._base.native import native
from . import gpu
from .distributed import distributed_state

_GROUP = "jax_plugins"
_VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
#: of plugins that do not say how much they are preferred; the CPU has 0
# These numbers are JAX's, so that plugins rank as they do there.
_PRIORITY = 400
_TPU_PRIORITY = 300
jaxlib_version = __version__


def log(message: str, *words: Any) -> None:
    """Logs a line, which is printed if the program does not handle logs."""
    import logging  # here and below: only where it is needed, as each program looks for plugins

    logging.getLogger("phlox").warning(message, *words)


class Plugin(NamedTuple):
    """A platform that a plugin adds.

    Attributes:
      name: its name, such as ``cuda``.
      origin: the package or variable that names it, with its version.
      make: makes the client, or raises; None if it cannot be used.
      priority: that of the CPU is 0; the platform with the highest is the default one.
      state: why it cannot be used, or "".
    """

    name: str
    origin: str
    make: Callable[[], Any] | None
    priority: int = _PRIORITY
    state: str = ""


class Package(NamedTuple):
    """A module that adds platforms, and the distribution that it belongs to."""

    module: str
    distribution: str
    version: str


@functools.cache
def installed() -> dict[str, Plugin]:
    """The plugins by the names of their platforms. Nothing is loaded yet, apart from packages that must be asked."""
    plugins: dict[str, Plugin] = {}
    for package in packages():
        for plugin in _of_package(package):
            # The first one counts: an entry point over the namespace, packages over the variable.
            plugins.setdefault(plugin.name, plugin)
    for plugin in (*_of_variable(os.environ.get(_VARIABLE, "")), *_tpu()):
        plugins.setdefault(plugin.name, plugin)
    return plugins


def packages() -> list[Package]:
    """The installed packages of plugins, from the files of entry points on the path.

    `importlib.metadata` would find the same in a fifth of a second.
    """
    by_module: dict[str, Package] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder or "."):
                if not entry.name.endswith((".dist-info", ".egg-info")):
                    continue
                # A broken package of somebody else must not keep this process from starting.
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    with open(os.path.join(entry.path, "entry_points.txt"), encoding="utf-8") as file:
                        text = file.read()
                    # Folders are called ``name-1.0.dist-info``, with an underscore for each dash in the name.
                    name, _, version = entry.name.rpartition(".")[0].partition("-")
                    for module in _modules(text):
                        by_module.setdefault(module, Package(module, name.replace("_", "-"), version))
    # `find_spec` of a loaded namespace may fail, so its own spec is used.
    spec = importlib.util.find_spec(_GROUP) if _GROUP not in sys.modules else sys.modules[_GROUP].__spec__
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        with contextlib.suppress(OSError):
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
                if entry.is_dir() and not entry.name.startswith(("_", ".")):
                    module = f"{_GROUP}.{entry.name}"
                    by_module.setdefault(module, Package(module, module, ""))
    return list(by_module.values())


def _modules(text: str) -> Iterator[str]:
    """The modules that a file ``entry_points.txt`` lists in our group."""
    if f"[{_GROUP}]" not in text:
        return
    # Read by hand, as `configparser` would have to be imported; the file has one simple form.
    for line in text.partition(f"[{_GROUP}]")[2].splitlines()[1:]:
        if line.strip().startswith("["):
            return
        _, equals, module = line.partition("=")
        if equals:
            yield module.strip()


def _of_package(package: Package) -> list[Plugin]:
    origin = " ".join((package.distribution, package.version)).strip()
    kind = gpu.kind_of(package.module)
    if kind is None:
        return _collect_plugins(package, origin)
    # Plugins use internal interfaces of jaxlib, which change with each version; jaxlib itself refuses others.
    if kind == "cuda" and package.version and _numbers(package.version) != _numbers(jaxlib_version):
        state = f"{origin} is made for another jaxlib than {jaxlib_version}, and is not used"
        return [Plugin(kind, origin, None, state=f"{state}; {gpu.advice(jaxlib_version)}")]
    return [Plugin(kind, origin, functools.partial(_start_gpu, kind, package.module))]


def _numbers(version: str) -> tuple[str, ...]:
    return tuple(part for part in version.split(".") if part.isdecimal())


def _start_gpu(kind: str, module: str) -> Any:
    library = gpu.library_of(module)
    gpu.preload(kind, module)
    options = gpu.options(kind)
    client = start(kind, library, options)
    gpu.register_targets(kind, module, loaded_name(kind))
    return client


def start(name: str, library: str | None, options: Mapping[str, Any], c_api: Any = None) -> Any:
    """The client of a plugin, whose library or interface is loaded now if it was not before."""
    name = loaded_name(name)
    # An earlier client that failed to start may have loaded it.
    if not native.pjrt_plugin_loaded(name):
        native.load_pjrt_plugin(name, None if c_api is not None else library, c_api)
    if not native.pjrt_plugin_initialized(name):
        native.initialize_pjrt_plugin(name)
    together = distributed_state()
    if together is None:
        return native.get_c_api_client(name, dict(options), None)
    return native.get_c_api_client(name, {**options, **together.plugin_options()}, together.client)


def loaded_name(name: str) -> str:
    """The name under which jaxlib keeps phlox's plugin of a platform.

    jaxlib refuses a second plugin of one name: if phlox took "cuda", jax in the same process would get no GPU.
    """
    return f"phlox_{name}"


def _of_variable(text: str) -> Iterator[Plugin]:
    """From ``name:path,name:path``; a path may be that of a JSON file with ``library_path`` and ``create_option``."""
    for each in filter(None, text.split(",")):
        name, separator, path = each.partition(os.pathsep)
        if not (name and separator and path):
            log("%s=%s is not understood: it takes name%spath", _VARIABLE, text, os.pathsep)
            continue
        yield Plugin(name, _VARIABLE, functools.partial(_start_named, name, path))


def _start_named(name: str, path: str) -> Any:
    import json

    options: Mapping[str, Any] = {}
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        if "library_path" not in content:
            raise DeviceError(f"{_VARIABLE}: {path} has no library_path")
        path, options = content["library_path"], content.get("create_option") or {}
    if not os.path.exists(path):
        raise DeviceError(f"{_VARIABLE}: there is no file {path}")
    return start(name, path, options)


def _tpu() -> Iterator[Plugin]:
    library = os.environ.get("TPU_LIBRARY_PATH")
    if library is None and importlib.util.find_spec("libtpu") is not None:
        library = importlib.import_module("libtpu").get_library_path()
    # libtpu may be installed on a machine without a TPU.
    if library is not None and os.path.exists("/dev/accel0") | os.path.exists("/dev/vfio/0"):
        yield Plugin("tpu", "libtpu", functools.partial(start, "tpu", library, {}), _TPU_PRIORITY)


# --- packages that register themselves ------------------------------------------------------------------


def _collect_plugins(package: Package, origin: str) -> list[Plugin]:
    """What the function ``initialize`` of a package registers."""
    plugins: list[Plugin] = []

    def register_plugin(
        plugin_name: str,
        *,
        priority: int = _PRIORITY,
        library_path: str | None = None,
        options: Any = None,
        c_api: Any = None,
        factory: Callable[[], Any] | None = None,
        **_: Any,
    ) -> Any:
        def make() -> Any:
            return start(plugin_name, library_path, (options() if callable(options) else options) or {}, c_api)

        plugins.append(Plugin(plugin_name, origin, factory or make, priority))

    def register_backend_factory(name: str, factory: Callable[[], Any], *, priority: int = 0, **_: Any) -> None:
        plugins.append(Plugin(name, origin, factory, priority))

    try:
        # jax, if it is in the process, is hidden meanwhile, as the package would register its plugin there.
        with _stand_in(register_plugin, register_backend_factory):
            before = set(sys.modules)
            try:
                importlib.import_module(package.module).initialize()
            finally:  # jax, if it comes later, asks the package itself
                for name in set(sys.modules) - before:
                    if name == package.module or name.startswith(f"{package.module}."):
                        del sys.modules[name]
    # Anything may go wrong in a package of somebody else. It is then listed with the reason, and not used.
    except Exception as error:
        return [Plugin(package.module, origin, None, state=f"{origin} fails: {type(error).__name__}: {error}")]
    return plugins


@contextlib.contextmanager
def _stand_in(register_plugin: Any, register_backend_factory: Any) -> Iterator[None]:
    """Modules of the names from which plugins import jax's functions for registration. jax itself is not imported."""
    import jaxlib.xla_client as xla_client

    bridge = ModuleType("jax._src.xla_bridge")
    vars(bridge).update(register_plugin=register_plugin, register_backend_factory=register_backend_factory)
    lib, source, jax = ModuleType("jax._src.lib"), ModuleType("jax._src"), ModuleType("jax")
    vars(lib).update(xla_client=xla_client)
    vars(source).update(xla_bridge=bridge, lib=lib)
    vars(jax).update(_src=source)
    modules: dict[str, ModuleType] = {each.__name__: each for each in (jax, source, bridge, lib)}
    modules["jax._src.lib.xla_client"] = xla_client
    # The real modules are put aside, and come back untouched afterwards.
    before = {name: module for name, module in sys.modules.items() if name == "jax" or name.startswith("jax.")}
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name == "jax" or name.startswith("jax.")]:
            del sys.modules[name]
        sys.modules.update(before)
