"""The machine: devices, buffers, StableHLO text, compilation, execution. The room that says jaxlib."""
