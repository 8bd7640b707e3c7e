"""``phlox.scipy.optimize``: minima of functions of a vector."""

from ._minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]


def __dir__() -> list[str]:
    return __all__
