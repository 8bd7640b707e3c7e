"""``phlox.adopted``: private copies of installed libraries that run on phlox; see `phlox.adopt`.

    from phlox.adopted import optax

The real libraries on the real jax may be imported beside them.
"""

import sys

from phlox.extend import publish as _publish

from ..as_jax._copies import PREFIX, CopyFinder
from ..as_jax._finder import JaxFinder

__all__: list[str] = []

# Before Python's own finder, which would look for the copies in this folder.
sys.meta_path[:0] = [JaxFinder(PREFIX), CopyFinder()]


_publish(__name__)

# `from phlox.adopted import optax` looks for a module below the name that the package has.
__name__ = PREFIX.removesuffix(".")
