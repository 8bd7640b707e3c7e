"""``phlox.scipy.sparse``: solvers of large linear systems."""

from typing import TYPE_CHECKING

from ..._base.public_names import publish

if TYPE_CHECKING:
    from . import linalg

publish(__name__, "linalg")

__all__ = ["linalg"]
