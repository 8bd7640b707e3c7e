"""Changes the sharding of arrays.

An array that one process holds completely is moved through host memory, see `transfer.move_buffer`. Where the elements
are spread over several processes, all of them run a program.
"""

from __future__ import annotations

import functools
from typing import Any

from .._base.errors import DeviceError
from .._ir.jaxpr import Jaxpr, Var
from . import transfer
from .array import Array, wrap
from .partition_spec import PartitionSpec
from .placement import Placement, aval_of, placement_for, sharding_of
from .program import Program, has_sharding, lower
from .sharding import CompilerSharding, HloSharding, NamedSharding, Sharding, interned


def move(array: Array, sharding: Sharding, *, committed: bool = True) -> Array:
    """An array with the same elements and this sharding; `array` itself if its placement is already the right one."""
    array._check_alive()
    here = array.sharding
    buf = array._buf
    placement = placement_for(array.aval, sharding, committed)
    # Placements are interned, and equal only if type, sharding and commitment are.
    if placement == array._placement:
        return array
    # With the same sharding only the commitment changes, and the buffer is shared.
    if here != sharding:
        if here.is_unreduced and here.devices != sharding.devices:
            return move(move(array, _reduced(here)), sharding, committed=committed)
        if sharding.is_unreduced:
            return _move_to_partial(array, sharding)  # type: ignore[arg-type]
        # Another description of the same parts needs no copy, such as a mesh with one more axis of size 1.
        if not has_sharding(array._placement, sharding):
            if not transfer.is_whole(here, array.aval.physical.shape):
                return _move_across(array, sharding)
            buf = transfer.move_buffer(buf, array.aval.physical, here, sharding)
    return wrap(buf, aval_of(placement), placement)


def _move_to_partial(array: Array, sharding: NamedSharding) -> Array:
    """An array with the same elements, of which the devices hold partial results. A program computes these."""
    if array.sharding.devices != sharding.devices:
        array = move(array, _reduced(sharding))
    return _program(array._placement, sharding).run([array])[0]


def _reduced(sharding: Any) -> NamedSharding:
    """The sharding of an array whose partial results are combined."""
    return sharding.update(spec=PartitionSpec(*sharding.spec.partitions))


def _move_across(array: Array, sharding: Sharding) -> Array:
    """An array with the same elements and this sharding. All processes that hold parts of `array` must call it.

    Raises `DeviceError` if the devices of `sharding` are not those of `array`.
    """
    here = array.sharding
    if set(here.devices) != set(sharding.devices):
        raise DeviceError(
            f"an array of type {array.aval.short} spans devices of other processes, {here}; it can be laid out "
            f"differently there, but not moved to {sharding}",
            instead="phlox.experimental.multihost_utils.process_allgather(x, tiled=True), in all processes, "
            "or x.addressable_shards, the parts of this one",
            aval=array.aval,
            sharding=here,
        )
    if here.devices == sharding.devices:
        return _program(array._placement, sharding).run([array])[0]
    # A program has one order of devices, that of its argument. For another order the array is replicated first, which
    # costs memory, and each process takes its parts from the whole array.
    whole = _program(array._placement, replicated(here)).run([array])[0]
    buf = transfer.move_buffer(whole._buf, array.aval.physical, whole.sharding, sharding)
    placement = placement_for(array.aval, sharding, True)
    return wrap(buf, aval_of(placement), placement)


def replicated(sharding: Sharding) -> Sharding:
    """The sharding on the same devices in which each device holds all elements."""
    if isinstance(sharding, NamedSharding):
        return interned(NamedSharding(sharding.mesh, PartitionSpec()))
    return interned(CompilerSharding(sharding.devices, HloSharding.replicate()))


@functools.lru_cache(256)
def _program(placement: Placement, sharding: Sharding) -> Program:
    """A program that returns its argument, an array with this placement, with `sharding`."""
    x = Var(aval_of(placement))
    # No equation: the partitioner moves the parts because argument and result have different shardings.
    same = Jaxpr([], [x], [x], [], name="reshard")
    return lower(
        same, "reshard", [placement], in_shardings=[sharding_of(placement)], out_shardings=[sharding]
    ).compile()
