"""Public versions of functions with the parameter `out_sharding`; phlox itself calls the versions without."""

from __future__ import annotations

from ..._api.devices.out_sharding import takes_out_sharding
from .._creation import fill as _fill
from .._manipulation import broadcasting as _broadcasting, shapes as _shapes

arange = takes_out_sharding(_fill.arange)
broadcast_to = takes_out_sharding(_broadcasting.broadcast_to)
empty = takes_out_sharding(_fill.empty)
full = takes_out_sharding(_fill.full)
full_like = takes_out_sharding(_fill.full_like)
ones = takes_out_sharding(_fill.ones)
ones_like = takes_out_sharding(_fill.ones_like)
ravel = takes_out_sharding(_shapes.ravel)
reshape = takes_out_sharding(_shapes.reshape)
zeros = takes_out_sharding(_fill.zeros)
zeros_like = takes_out_sharding(_fill.zeros_like)

# They are pickled by these names.
for _function in (arange, broadcast_to, empty, full, full_like, ones, ones_like, ravel, reshape, zeros, zeros_like):
    _function.__module__ = __name__
