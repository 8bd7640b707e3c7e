"""``phlox.experimental.pjit``: the former name of `phlox.jit` with shardings.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.experimental.pjit import *  # noqa: F403

enter(__name__)
