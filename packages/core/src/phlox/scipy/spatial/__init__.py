"""``phlox.scipy.spatial``: rotations in space."""

from typing import TYPE_CHECKING

from ..._base.lazy_imports import on_demand

if TYPE_CHECKING:
    from . import transform

__getattr__, __dir__ = on_demand(__name__, "transform")

__all__ = ["transform"]
