"""The machine: devices, buffers, StableHLO text, compilation, execution. The room that says jaxlib."""

from . import eager as eager  # installs what runs operations outside of any trace
