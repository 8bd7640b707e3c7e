"""The runtime: devices, arrays, StableHLO text, compilation, execution. Imports `_trace` and jaxlib."""
