"""``phlox.debug``: inspection of values and shardings of running programs, as in ``jax.debug``."""

from ._api.debug.breakpoint import breakpoint as breakpoint
from ._api.debug.debug import callback as callback, log as log, print as print
from ._api.devices.pictures import (
    inspect_array_sharding as inspect_array_sharding,
    visualize_array_sharding as visualize_array_sharding,
    visualize_sharding as visualize_sharding,
)
from ._base.public_names import publish as _publish
from ._ir.effects import DebugEffect as DebugEffect, OrderedDebugEffect as OrderedDebugEffect
from ._xla.memory import LiveArrays as LiveArrays, live_memory as live_memory

_publish(__name__)
