"""``phlox.experimental.pjit``: the former name of `phlox.jit` with shardings, as in ``jax.experimental.pjit``."""

from __future__ import annotations

from .._api.jit.jit import jit as pjit

__all__ = ["pjit"]


def __dir__() -> list[str]:
    return __all__
