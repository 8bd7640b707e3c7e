"""``phlox.scipy.stats``: probability distributions."""

from . import norm

__all__ = ["norm"]


def __dir__() -> list[str]:
    return __all__
