"""``phlox.example_libraries``: small libraries that older JAX programs use, as in ``jax.example_libraries``.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from ._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.example_libraries import *  # noqa: F403

enter(__name__)
