"""``phlox.experimental.buffer_callback``: Python functions that write into memory that they get.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.experimental.buffer_callback import *  # noqa: F403

enter(__name__)
