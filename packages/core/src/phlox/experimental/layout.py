"""``phlox.experimental.layout``: the order of elements in memory, as in ``jax.experimental.layout``."""

from __future__ import annotations

from .._xla.layout import Format, Layout

__all__ = ["Format", "Layout"]


def __dir__() -> list[str]:
    return __all__
