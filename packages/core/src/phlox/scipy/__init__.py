"""``phlox.scipy``: functions of SciPy on arrays of devices."""

from . import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
