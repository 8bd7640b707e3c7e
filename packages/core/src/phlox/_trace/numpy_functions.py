"""The functions of `phlox.numpy` that the operators and methods of arrays call.

Arrays are defined below `phlox.numpy`, and their methods call it. So this module is empty until `phlox.numpy` is
imported, which fills it (`numpy/_arrays/functions.py`). A module ``__getattr__`` that looks the functions up on demand
would cost each operator 0.1 us: Python has a fast instruction for attributes of modules without ``__getattr__`` only.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..numpy._arrays.functions import *  # noqa: F403
