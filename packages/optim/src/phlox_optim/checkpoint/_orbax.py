"""The import of orbax, which imports the real jax. No other module of phlox_optim imports either."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import MissingExtraError


def orbax() -> Any:
    """The module `orbax.checkpoint`; `MissingExtraError` when it is not installed."""
    jax_is_users = "jax" in sys.modules
    try:
        import orbax.checkpoint as module
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("orbax"):
            raise  # orbax is installed, and one of its own dependencies is missing
        command = 'pip install "phlox-optim[checkpoint]"'
        raise MissingExtraError(
            "checkpoints need orbax-checkpoint, which is not installed", instead=command, command=command, name="orbax"
        ) from None
    if not jax_is_users:
        # Orbax makes jax initialize its devices, and jax would reserve the accelerator that phlox uses. Here orbax only
        # handles files and NumPy arrays, so the CPU suffices.
        sys.modules["jax"].config.update("jax_platforms", "cpu")
    return module
