"""`print_environment_info`: versions and devices, for bug reports."""

from __future__ import annotations

import contextlib
import os
import sys

import numpy as np

from ..._xla import devices


def version_of(package: str) -> str:
    """The version of an installed distribution, or "unknown"."""
    from importlib import metadata  # slow to import, like the modules imported below

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions, devices, platform and relevant environment variables, or returns them as text.

    Args:
      return_string: return the text instead of printing it.

    Returns:
      The text, or None when it is printed.

    >>> "numpy:" in print_environment_info(return_string=True)
    True
    """
    import platform
    import subprocess

    there = devices.devices()
    # jax itself, or phlox under its name
    jax = sys.modules.get("jax")
    lines = [] if jax is None else [f"jax:    {getattr(jax, '__version__', 'unknown')}"]
    lines += [
        f"phlox:  {version_of('phlox')}",
        f"jaxlib: {version_of('jaxlib')}",
        f"numpy:  {np.__version__}",
        f"python: {' '.join(sys.version.split())}",
        f"device info: {there[0].device_kind}-{len(there)}, {devices.local_device_count()} local devices",
        f"process_count: {devices.process_count()}",
        f"platform: {platform.uname()}",
    ]
    lines += [f"{name}={value}" for name, value in os.environ.items() if name.startswith(("PHLOX_", "JAX_", "XLA_"))]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        lines += ["", "$ nvidia-smi", subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
