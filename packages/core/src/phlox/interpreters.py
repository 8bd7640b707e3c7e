"""``phlox.interpreters``: JAX's tables of rules, for code that defines primitives in JAX's way.

It is a part of phlox-compat.
"""

from typing import TYPE_CHECKING

from ._base.doors import enter

if TYPE_CHECKING:
    from phlox_compat.interpreters import *  # noqa: F403

enter(__name__)
