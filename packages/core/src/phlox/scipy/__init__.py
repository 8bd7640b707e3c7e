"""``phlox.scipy``: functions of SciPy on arrays of devices."""

from typing import TYPE_CHECKING

from .._base.lazy_imports import on_demand

if TYPE_CHECKING:
    from . import linalg, special, stats

__getattr__, __dir__ = on_demand(__name__, "linalg special stats")

__all__ = ["linalg", "special", "stats"]
