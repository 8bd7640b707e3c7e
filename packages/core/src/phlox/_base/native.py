"""jaxlib's C++ core, imported in one place so that its environment is set before it loads.

`jaxlib.xla_client` gives the same names, and takes 5 ms more to import.

XLA reads ``TF_CPP_MIN_LOG_LEVEL`` while loading; without it every process greets the user with log lines.
Only this file, and the rooms `_xla` and pytrees that use it, know that jaxlib exists.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from jaxlib import _hlo as hlo, _jax as native

__all__ = ["hlo", "native"]
