"""``phlox.extend``: for packages that build on phlox and want its errors to point at their users' lines."""

from ._base.pytree import Difference, tree_error
from ._base.source import Location, hide_frames, user_location

__all__ = ["Difference", "Location", "hide_frames", "tree_error", "user_location"]
