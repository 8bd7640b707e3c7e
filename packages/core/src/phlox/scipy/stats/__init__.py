"""``phlox.scipy.stats``: probability distributions."""

from . import norm

__all__ = ["norm"]
