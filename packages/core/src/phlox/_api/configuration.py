"""`phlox.config`, and context managers for its flags."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .._base import config as settings
from .._xla import devices


class Config:
    """The configuration: flags with values for the process, and scoped ones.

    ``config.update("enable_x64", True)`` sets a flag for good, ``with config.scope(enable_x64=True):`` for a block;
    ``config.enable_x64`` reads it. JAX's names (``jax_enable_x64``) mean the same. Environment variables
    ``PHLOX_ENABLE_X64`` and so on give first values. `flags()` lists all.

    >>> with config.scope(enable_x64=True):
    ...     config.enable_x64
    True
    """

    def update(self, name: str, value: Any) -> None:
        """Sets a flag for the process. Raises `ConfigError` for unknown flags and values, and when it is too late."""
        short = name.removeprefix("jax_").removeprefix("phlox_")
        if short in ("num_cpu_devices", "platforms") and devices.started():
            raise settings.ConfigError(
                f"{short} can only be set before the first device is used",
                instead=f"phlox.config.update({short!r}, ...) at the start, or the variable PHLOX_{short.upper()}",
            )
        settings.update(name, value)

    def scope(self, **changes: Any) -> AbstractContextManager[None]:
        """Sets flags for the body of a ``with`` statement, in this thread alone."""
        return settings.scope(**changes)

    def read(self, name: str) -> Any:
        """The value of a flag that is in force here."""
        return settings.read(name)

    def flags(self) -> dict[str, str]:
        """All flags and what they do."""
        return {name: flag.doc for name, flag in settings.FLAGS.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return settings.read(name)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={settings.read(name)!r}" for name in settings.FLAGS)
        return f"Config({values})"


config = Config()


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """Keeps 64-bit dtypes inside of a ``with`` block (or turns them off, with False).

    >>> import phlox.numpy as jnp
    >>> with enable_x64(True):
    ...     jnp.ones(1).dtype
    dtype('float64')
    """
    return settings.scope(enable_x64=new_val)


def default_device(new_val: Any) -> AbstractContextManager[None]:
    """Puts arrays that nothing places elsewhere on this device, inside of a ``with`` block.

    >>> import phlox
    >>> with default_device(phlox.devices()[0]):
    ...     pass
    """
    return settings.scope(default_device=new_val)


def default_matmul_precision(new_val: Any) -> AbstractContextManager[None]:
    """Sets the precision of matrix products ('default', 'high', 'highest') inside of a ``with`` block.

    >>> with default_matmul_precision("highest"):
    ...     pass
    """
    return settings.scope(default_matmul_precision=new_val)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """'strict' refuses promotions between dtypes of arrays inside of a ``with`` block.

    >>> with numpy_dtype_promotion("strict"):
    ...     pass
    """
    return settings.scope(numpy_dtype_promotion=new_val)


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """'raise' or 'warn' when arrays of different rank broadcast, inside of a ``with`` block.

    >>> with numpy_rank_promotion("raise"):
    ...     pass
    """
    return settings.scope(numpy_rank_promotion=new_val)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Runs jitted functions operation by operation inside of a ``with`` block, so that prints and debuggers see values.

    >>> with disable_jit():
    ...     pass
    """
    return settings.scope(disable_jit=disable)
