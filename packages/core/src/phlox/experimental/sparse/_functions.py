"""The functions that the methods of BCOO call, as attributes of `functions`.

They are built on that class, so there are none until `phlox.experimental.sparse` is imported, which sets them.
"""

from types import SimpleNamespace
from typing import Any

functions: Any = SimpleNamespace()
