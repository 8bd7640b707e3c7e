"""``phlox.experimental.profiler``: what the compiler can learn from a profile, as in ``jax.experimental.profiler``."""

from __future__ import annotations

import os

from .._base.public_names import publish
from .._xla.profiling import profiler

__all__ = ["get_profiled_instructions_proto"]


def get_profiled_instructions_proto(tensorboard_dir: str | os.PathLike[str]) -> bytes:
    """The costs of operations that a recording of `phlox.profiler` shows, for XLA's profile-guided optimization.

    Args:
      tensorboard_dir: the folder of one recording, ``log_dir/plugins/profile/<time>``.

    Returns:
      A protocol buffer ``ProfiledInstructionsProto``. It is empty where the device does not record costs, as on CPUs.

    Raises:
      RuntimeError: there is no recording in the folder.

    >>> import glob, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with phlox.profiler.trace(folder):
    ...     _ = jnp.ones(3) + 1
    >>> get_profiled_instructions_proto(glob.glob(f"{folder}/plugins/profile/*")[0])
    b''
    """
    profile: bytes = profiler.get_profiled_instructions_proto(os.fspath(tensorboard_dir))
    return profile


publish(__name__)
