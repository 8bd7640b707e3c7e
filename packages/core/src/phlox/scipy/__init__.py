"""``phlox.scipy``: functions of SciPy on arrays of devices."""

from . import special, stats

__all__ = ["special", "stats"]
