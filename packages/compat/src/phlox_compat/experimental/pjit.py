"""``phlox.experimental.pjit``: the former name of `phlox.jit` with shardings, as in ``jax.experimental.pjit``."""

from __future__ import annotations

from phlox import jit as pjit
from phlox.extend import publish

__all__ = ["pjit"]


publish(__name__)
