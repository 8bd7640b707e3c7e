"""``phlox.extend.core.primitives``: every primitive under JAX's name, with ``_p`` at the end."""

from __future__ import annotations

from typing import Any

from ..._ops import all_primitives

# Where JAX's name for the object is not the name that the primitive prints.
_OTHER = {"remat_p": "remat2", "add_jaxvals_p": "add_any", "linear_solve_p": "custom_linear_solve"}


def __getattr__(name: str) -> Any:
    plain = _OTHER.get(name, name.removesuffix("_p"))
    known = all_primitives() if name.endswith("_p") else {}
    found = known.get(plain) or known.get(plain.replace("scatter_", "scatter-"))
    if found is None:
        raise AttributeError(f"phlox has no primitive {name!r}", name=name)
    return found


def __dir__() -> list[str]:
    return sorted([name.replace("-", "_") + "_p" for name in all_primitives()] + list(_OTHER))
