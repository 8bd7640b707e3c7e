"""Between the arrays of one process and arrays over the devices of all: what `pmap` does around a call.

Each process passes and gets what belongs to its own devices, as if its part of the mapped axis were the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._xla.array import Array, logical, physical
from ..._xla.sharding import NamedSharding
from .assemble import make_array_from_process_local_data, make_array_from_single_device_arrays


def over_all_processes(x: Any, sharding: NamedSharding) -> Any:
    """The array over `sharding` whose parts in this process are `x`. Data that is in its place is not moved."""
    if isinstance(x, Array):
        if not x.is_fully_addressable:
            return x
        numbers = physical(x)
        here = NamedSharding(sharding.mesh.local_mesh, sharding.spec)
        # A result of the last call has its parts in place, and is passed on without a copy.
        if numbers.sharding.is_equivalent_to(here, numbers.ndim):
            parts = [shard.data for shard in numbers.addressable_shards]
            result = make_array_from_single_device_arrays(_resized(numbers.shape, here, sharding), sharding, parts)
        else:
            result = make_array_from_process_local_data(sharding, np.asarray(numbers))
        # Keys have a trailing axis in memory, which the logical shape leaves out.
        return logical(result, x.aval.update(shape=result.shape[: x.ndim]))
    return make_array_from_process_local_data(sharding, x)


def of_this_process(x: Array) -> Array:
    """The array over this process's devices, of the parts of `x` that they hold."""
    there = x.sharding
    if x.is_fully_addressable or not isinstance(there, NamedSharding):
        return x
    numbers = physical(x)
    here = NamedSharding(there.mesh.local_mesh, there.spec)
    parts = [shard.data for shard in numbers.addressable_shards]
    result = make_array_from_single_device_arrays(_resized(numbers.shape, there, here), here, parts)
    return logical(result, x.aval.update(shape=result.shape[: x.ndim]))


def _resized(shape: tuple[int, ...], of: NamedSharding, to: NamedSharding) -> tuple[int, ...]:
    """`shape` with as many parts along each axis as `to` has, in place of those of `of`."""
    counts = zip(shape, of.tiles(len(shape)), to.tiles(len(shape)), strict=True)
    # Exact: each part has the same length.
    return tuple(size // have * want for size, have, want in counts)
