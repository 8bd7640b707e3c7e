"""Which platform a module is compiled for, which lowering rules ask that write another form for some platform."""

from __future__ import annotations

from .devices import default_backend
from .text import Function


def platform_of(f: Function) -> str:
    """The platform that the module is compiled for, by the name that users give: "cpu", "cuda", "tpu"."""
    device = f.module.devices[0]
    name = default_backend() if device is None else device.platform
    # XLA's client for CUDA calls its platform "gpu".
    return "cuda" if name == "gpu" else name


def cpu_only(f: Function) -> bool:
    """Whether the program runs on CPUs and nowhere else."""
    return not f.module.portable and platform_of(f) == "cpu"
