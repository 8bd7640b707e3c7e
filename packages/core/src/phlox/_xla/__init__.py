"""The runtime: devices, arrays, StableHLO text, compilation, execution. Imports `_trace` and jaxlib."""

from . import eager as eager  # installs the function that executes operations when no trace is current
