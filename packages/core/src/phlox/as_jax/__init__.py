"""``phlox.as_jax``: phlox in the place of jax, for programs that say ``import jax``.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.as_jax import *  # noqa: F403

enter(__name__)
