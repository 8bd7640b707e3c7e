"""``phlox.scipy.sparse``: solvers of large linear systems."""

from typing import TYPE_CHECKING

from ..._base.lazy_imports import on_demand

if TYPE_CHECKING:
    from . import linalg

__getattr__, __dir__ = on_demand(__name__, "linalg")

__all__ = ["linalg"]
