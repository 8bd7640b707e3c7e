"""``phlox.adopted``: private copies of installed libraries that run on phlox; see `phlox.adopt`.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from ._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.adopted import *  # noqa: F403

enter(__name__)
