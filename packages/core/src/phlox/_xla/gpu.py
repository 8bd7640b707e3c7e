"""The packages that run programs on GPUs: their libraries, options and custom calls, without importing their code.

The modules ``jax_plugins.xla_cuda13`` and so on import jax, so only their folders are looked at.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from typing import Any

from .._base import config
from .._base.errors import DeviceError
from .._base.native import native

#: pip packages of NVIDIA: the folder below ``nvidia``, and libraries in the order in which they need each other
_LIBRARIES = (
    ("cuda_runtime", "libcudart.so.*"),
    ("cuda_nvrtc", "libnvrtc.so.*"),
    ("nvjitlink", "libnvJitLink.so.*"),
    ("cublas", "libcublasLt.so.*"),
    ("cublas", "libcublas.so.*"),
    ("cuda_cupti", "libcupti.so.*"),
    ("cusparse", "libcusparse.so.*"),
    ("cusolver", "libcusolver.so.*"),
    ("cufft", "libcufft.so.*"),
    ("nccl", "libnccl.so.*"),
    ("cudnn", "libcudnn.so.*"),
    ("nvshmem", "libnvshmem_host.so.*"),
)
#: what the driver makes for each GPU
_NODES = tuple(f"/dev/nvidia{number}" for number in range(16))
_PLATFORMS = {"cuda": "CUDA", "rocm": "ROCM"}


def kind_of(module: str) -> str | None:
    """``cuda`` or ``rocm`` for the packages of these; None for others."""
    name = module.rpartition(".")[2]
    return next((kind for kind in _PLATFORMS if name.startswith(f"xla_{kind}")), None)


def is_visible() -> bool:
    """Whether the system shows a GPU of NVIDIA to this process."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1", "none")
    # /dev/dxg is the GPU of Windows below WSL, which has no /dev/nvidia files.
    return not hidden and (os.path.exists("/dev/dxg") or any(map(os.path.exists, _NODES)))


def advice(version: str) -> str:
    """What installs the plugin for this jaxlib."""
    return f'pip install "jax-cuda13-plugin[with-cuda]=={version}" (or jax-cuda12-plugin, for older drivers)'


def library_of(module: str) -> str:
    """The path of the library in the folder of a package."""
    import glob  # here and below: only where there is a GPU

    paths = [path for folder in _folders(module) for path in glob.glob(os.path.join(folder, "xla_*_plugin.so"))]
    if not paths:
        raise DeviceError(f"the package {module} has no library xla_*_plugin.so", instead="install it again")
    return paths[0]


def _folders(module: str) -> list[str]:
    spec = importlib.util.find_spec(module)
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def preload(kind: str, module: str) -> None:
    """Loads NVIDIA's libraries that pip has installed, as the plugin looks for them among what is loaded."""
    import ctypes
    import glob

    version = "".join(filter(str.isdecimal, module.rpartition(".")[2]))
    if kind != "cuda" or importlib.util.find_spec("nvidia") is None:
        return
    folders = importlib.util.find_spec("nvidia").submodule_search_locations or ()  # type: ignore[union-attr]
    for package, pattern in _LIBRARIES:
        # Packages for CUDA 12 have a folder for each library, those for CUDA 13 one folder, ``cu13``.
        directories = (os.path.join(folder, name, "lib") for folder in folders for name in (package, f"cu{version}"))
        for path in (
            path for directory in directories for path in sorted(glob.glob(os.path.join(directory, pattern)))[:1]
        ):
            try:
                # RTLD_GLOBAL makes the symbols visible to the plugin, which is loaded later.
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError:  # the system's own may do
                continue
            break


def options(kind: str) -> dict[str, Any]:
    """Options of the client: how memory is taken (XLA_PYTHON_CLIENT_...), and which GPUs are used."""
    from jaxlib.xla_client import generate_pjrt_gpu_plugin_options

    client_options = dict(generate_pjrt_gpu_plugin_options(), platform_name=kind)
    chosen = getattr(config.current(), f"{kind}_visible_devices")
    if chosen != "all":
        client_options["visible_devices"] = [int(number) for number in chosen.split(",")]
    return client_options


def register_targets(kind: str, module: str, plugin: str) -> None:
    """Registers the custom calls of cuSOLVER, cuBLAS, cuSPARSE and others, and the calls of Python functions.

    `plugin` is the name under which jaxlib keeps the loaded plugin.
    """
    import jaxlib.xla_client as xla_client

    platform, c_api = _PLATFORMS[kind], native.get_pjrt_plugin(plugin)
    name = f"jax_{module.rpartition('.')[2].removeprefix('xla_')}_plugin"
    # Not the package of the plugin itself, whose import needs jax.
    extension = importlib.import_module(f"{name}.{kind}_plugin_extension")
    xla_client.register_custom_type_handler(platform, functools.partial(extension.register_custom_type, c_api))
    xla_client.register_custom_call_handler(platform, functools.partial(extension.register_custom_call_target, c_api))
    for target, value in extension.ffi_types().items():
        xla_client.register_custom_type(target, value, platform=platform)
    for target, value in extension.ffi_handlers().items():
        xla_client.register_custom_call_target(target, value, platform=platform, api_version=1)
    for topic in ("solver", "linalg", "prng", "sparse"):
        for where, targets in importlib.import_module(f"jaxlib.gpu_{topic}").registrations().items():
            for target, value, version in targets:
                xla_client.register_custom_call_target(target, value, platform=where, api_version=version)
