"""Arrays that several processes hold together, laid out anew: a program that all of them run.

What one process holds it can move through its own memory, see `transfer.move_buffer`. Here no process holds all.
"""

from __future__ import annotations

import functools

from .._base.errors import DeviceError
from .._ir.jaxpr import Jaxpr, Var
from . import transfer
from .array import Array, wrap
from .mesh import PartitionSpec
from .placement import Key, aval_of, key_for, sharding_of
from .program import Program, lower
from .sharding import CompilerSharding, HloSharding, NamedSharding, Sharding, interned


def move_across(array: Array, sharding: Sharding) -> Array:
    """The same elements, laid out as `sharding` says; all processes that hold parts must ask for it.

    Raises `DeviceError` when `sharding` speaks of other devices than those that the array lies on.
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
        return _program(array._key, sharding).run([array])[0]
    # Programs number the devices as the argument does. Where the new order is another, each process takes its parts
    # out of the whole array.
    whole = _program(array._key, replicated(here)).run([array])[0]
    buf = transfer.move_buffer(whole._buf, array.aval.physical, whole.sharding, sharding)
    return wrap(buf, array.aval, key_for(array.aval, sharding, True))


def replicated(sharding: Sharding) -> Sharding:
    """Of these devices, each holds all elements."""
    if isinstance(sharding, NamedSharding):
        return interned(NamedSharding(sharding.mesh, PartitionSpec()))
    return interned(CompilerSharding(sharding.devices, HloSharding.replicate()))


@functools.lru_cache(256)
def _program(key: Key, sharding: Sharding) -> Program:
    """Returns its argument, which has this key, laid out as `sharding` says."""
    x = Var(aval_of(key))
    same = Jaxpr([], [x], [x], [], name="reshard")
    return lower(same, "reshard", [key], in_shardings=[sharding_of(key)], out_shardings=[sharding]).compile()
