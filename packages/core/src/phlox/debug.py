"""``phlox.debug``: inspection of values and shardings of running programs, as in ``jax.debug``."""

from ._api.debug.breakpoint import breakpoint
from ._api.debug.debug import callback, log, print
from ._api.devices.pictures import inspect_array_sharding, visualize_array_sharding, visualize_sharding
from ._base.public_names import publish
from ._ir.effects import DebugEffect, OrderedDebugEffect
from ._xla.memory import LiveArrays, live_memory

__all__ = [
    "DebugEffect",
    "LiveArrays",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "live_memory",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]


publish(__name__)
