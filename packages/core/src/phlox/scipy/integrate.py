"""``phlox.scipy.integrate``: integrals of samples. The rule itself is that of ``phlox.numpy``."""

from ..numpy import trapezoid

__all__ = ["trapezoid"]


def __dir__() -> list[str]:
    return __all__
