"""``phlox.scipy.spatial``: rotations in space."""

from ..._base.public_names import on_demand, publish

with on_demand(__name__):
    from . import transform

publish(__name__)

__all__ = ["transform"]
