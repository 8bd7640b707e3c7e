"""``phlox.extend.core.primitives``: every primitive under JAX's name, with ``_p`` at the end."""

from __future__ import annotations

from typing import Any

from ..._ops import jax_names, primitive_of_jax


def __getattr__(name: str) -> Any:
    primitive = primitive_of_jax(name)
    if primitive is None:
        raise AttributeError(f"phlox has no primitive {name!r}", name=name)
    return primitive


def __dir__() -> list[str]:
    return jax_names()
