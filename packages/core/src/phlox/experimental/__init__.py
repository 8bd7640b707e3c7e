"""``phlox.experimental``: modules of ``jax.experimental``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .._api import configuration
from .._api.debug.callbacks import io_callback
from .._base.public_names import publish
from . import checkify

__all__ = ["checkify", "disable_x64", "enable_x64", "io_callback"]


def enable_x64(new_val: bool = True) -> AbstractContextManager[Any]:
    """A context in which 64-bit dtypes are enabled, as `phlox.enable_x64`.

    Args:
      new_val: whether they are enabled.

    Returns:
      A context manager.

    >>> with enable_x64():
    ...     print(jnp.ones(1).dtype)
    float64
    """
    return configuration.enable_x64(new_val)


def disable_x64() -> AbstractContextManager[Any]:
    """A context in which 64-bit dtypes are not enabled.

    Returns:
      A context manager.

    >>> with enable_x64(), disable_x64():
    ...     print(jnp.ones(1).dtype)
    float32
    """
    return configuration.enable_x64(False)


publish(__name__)
