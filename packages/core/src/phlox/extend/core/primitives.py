"""``phlox.extend.core.primitives``: every primitive under JAX's name, with ``_p`` at the end."""

from __future__ import annotations

import importlib
from typing import Any

from ..._ir.primitive import primitives

# Doors that are imported when they are asked for; the primitives behind them are stated then.
_LATE = ("phlox.lax", "phlox.random")

# Where JAX's name for the object is not the name that the primitive prints.
_OTHER = {"remat_p": "remat2", "add_jaxvals_p": "add_any", "linear_solve_p": "custom_linear_solve"}


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        for door in _LATE:
            importlib.import_module(door)
    plain = _OTHER.get(name, name.removesuffix("_p"))
    found = primitives().get(plain) or primitives().get(plain.replace("scatter_", "scatter-"))
    if found is None or not name.endswith("_p"):
        raise AttributeError(f"phlox has no primitive {name!r}", name=name)
    return found


def __dir__() -> list[str]:
    return sorted([name.replace("-", "_") + "_p" for name in primitives()] + list(_OTHER))
