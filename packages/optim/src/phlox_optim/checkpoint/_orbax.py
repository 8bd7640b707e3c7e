"""The import of orbax, which brings the real jax into the process. Nothing else in phlox_optim says either name."""

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
            raise  # orbax is there and lacks something itself
        command = 'pip install "phlox-optim[checkpoint]"'
        raise MissingExtraError(
            "checkpoints need orbax-checkpoint, which is not installed", instead=command, command=command, name="orbax"
        ) from None
    if not jax_is_users:
        # Orbax asks jax for its devices, and jax would take hold of the accelerator that phlox computes on. Only files
        # and NumPy arrays pass through here.
        sys.modules["jax"].config.update("jax_platforms", "cpu")
    return module
