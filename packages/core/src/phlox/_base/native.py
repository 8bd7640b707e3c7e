"""jaxlib's C++ core, imported here only, so that XLA's environment variables are set before it loads.

XLA reads ``TF_CPP_MIN_LOG_LEVEL`` while it loads; without the variable every process prints log lines at its start.
`jaxlib.xla_client` has the same names, but takes 5 ms more to import. Apart from this file, only `_xla` imports jaxlib.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from jaxlib import _hlo as hlo, _jax as native

__all__ = ["hlo", "native"]
