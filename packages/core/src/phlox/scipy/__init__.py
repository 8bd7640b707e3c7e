"""``phlox.scipy``: functions of SciPy on arrays of devices."""

from typing import TYPE_CHECKING

from .._base.later import submodules

if TYPE_CHECKING:
    from . import linalg, special, stats

__getattr__ = submodules(__name__, "linalg", "special", "stats")

__all__ = ["linalg", "special", "stats"]
