"""``phlox.experimental.pjit``: the former name of `phlox.jit` with shardings, as in ``jax.experimental.pjit``."""

from __future__ import annotations

from .._api.jit.jit import jit as pjit
from .._base.public_names import publish

__all__ = ["pjit"]


publish(__name__)
