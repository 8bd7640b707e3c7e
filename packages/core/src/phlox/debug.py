"""``phlox.debug``: inspection of values and shardings of running programs, as in ``jax.debug``."""

from ._api.debug.breakpoint import breakpoint
from ._api.debug.debug import callback, log, print
from ._api.devices.pictures import inspect_array_sharding, visualize_array_sharding, visualize_sharding
from ._ir.effects import DebugEffect, OrderedDebugEffect

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]


def __dir__() -> list[str]:
    return __all__
