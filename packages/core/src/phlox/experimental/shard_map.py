"""``phlox.experimental.shard_map``: the former form of `phlox.shard_map`.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.experimental.shard_map import *  # noqa: F403

enter(__name__)
