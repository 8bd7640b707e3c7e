"""Which platform a module is compiled for, which lowering rules ask that write another form for some platform, and
the processor of this machine."""

from __future__ import annotations

import functools

from .devices import default_backend
from .text import Function


def platform_of(f: Function) -> str:
    """The platform that the module is compiled for, by the name that users give: "cpu", "cuda", "tpu"."""
    if f.module.platform is not None:
        return f.module.platform
    device = f.module.devices[0]
    return platform_name(default_backend() if device is None else device.platform)


def platform_name(name: str) -> str:
    """The name that users give to the platform that a client of XLA calls `name`."""
    # XLA's client for CUDA calls its platform "gpu".
    return "cuda" if name == "gpu" else name


def cpu_only(f: Function) -> bool:
    """Whether the program runs on the CPUs of this process and nowhere else."""
    return f.module.platform is None and platform_of(f) == "cpu"


@functools.cache
def processor() -> str:
    """The model and the features of the processor, as Linux lists them; elsewhere its name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.startswith(("model name", "flags", "Features"))]
        # Each core repeats the lines, in any order of flags.
        return "\n".join(sorted(set(lines)))
    except OSError:
        import platform

        return platform.processor()
