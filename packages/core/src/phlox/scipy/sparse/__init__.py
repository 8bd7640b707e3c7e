"""``phlox.scipy.sparse``: solvers of large linear systems."""

from ..._base.public_names import on_demand, publish

with on_demand(__name__):
    from . import linalg

publish(__name__)

__all__ = ["linalg"]
