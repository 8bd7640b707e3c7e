"""As `_laid_out`, for functions that are imported on demand."""

from __future__ import annotations

from .._api.out_sharding import takes_out_sharding
from . import _einsum, _quantile, _repeat, _searching

bincount = takes_out_sharding(_searching.bincount)
einsum = takes_out_sharding(_einsum.einsum)
percentile = takes_out_sharding(_quantile.percentile)
repeat = takes_out_sharding(_repeat.repeat)
