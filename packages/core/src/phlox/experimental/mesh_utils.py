"""``phlox.experimental.mesh_utils``: arrays of devices for meshes, as in ``jax.experimental.mesh_utils``.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from .._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.experimental.mesh_utils import *  # noqa: F403

enter(__name__)
