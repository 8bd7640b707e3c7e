"""Transformations: jvp, linearization, transposition, batching, Taylor mode. Imports `_trace`, not `_xla` or `_ops`."""
