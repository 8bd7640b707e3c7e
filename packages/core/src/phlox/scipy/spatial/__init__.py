"""``phlox.scipy.spatial``: rotations in space."""

from typing import TYPE_CHECKING

from ..._base.public_names import publish

if TYPE_CHECKING:
    from . import transform

publish(__name__, "transform")

__all__ = ["transform"]
