"""``phlox.api_util``: helpers for transformations of user functions, as in ``jax.api_util``.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from ._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.api_util import *  # noqa: F403

enter(__name__)
