"""``phlox.scipy.optimize``: minima of functions of a vector."""

from ..._base.public_names import publish
from ._minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]


publish(__name__)
