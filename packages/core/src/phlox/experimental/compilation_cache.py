"""``phlox.experimental.compilation_cache``: the cache of programs on disk under its former name.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.experimental.compilation_cache import *  # noqa: F403

enter(__name__)
