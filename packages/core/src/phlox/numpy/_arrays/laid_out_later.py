"""Like `laid_out`, for functions that are imported on demand."""

from __future__ import annotations

from ..._api.devices.out_sharding import takes_out_sharding
from .._linalg import einsum as _einsum
from .._manipulation import repeat as _repeat
from .._searches import searching as _searching
from .._statistics import quantile as _quantile

bincount = takes_out_sharding(_searching.bincount)
einsum = takes_out_sharding(_einsum.einsum)
percentile = takes_out_sharding(_quantile.percentile)
repeat = takes_out_sharding(_repeat.repeat)
