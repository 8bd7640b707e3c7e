"""Pads arrays, and cuts padded ones, on the host: programs on devices would be compiled for each length.

A call of a small program takes less time than the steps around it, and after it each Python step takes ten times as
long as alone. So all that depends on types is found once: `_host_padder` and `_placer` return functions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._base import config
from ..._ir.avals import ShapedArray, shaped
from ..._xla.array import Array, ArrayImpl, physical, wrap
from ..._xla.host_values import as_array, operand
from ..._xla.partition_spec import PartitionSpec
from ..._xla.placement import Placement, aval_of, is_committed, placement_for, sharding_of
from ..._xla.sharding import CompilerSharding, HloSharding, NamedSharding, Sharding
from ..._xla.transfer import buffer_maker

#: The alignment of memory that XLA on CPUs uses as it is; other memory is copied.
_ALIGNMENT = 64
#: Memory of fewer bytes is copied in less time than it is aligned (3 microseconds).
_MIN_ALIGNED = 1 << 15


def padding_value(dtype: np.dtype) -> Any:
    """The value of padding in arguments. Results do not depend on it: tests replace this function."""
    return 0


@functools.lru_cache(8192)
def length_array(n: int, settings: Any) -> Array:
    """A length as an array that programs read, cached as a transfer takes 10 microseconds.

    `settings` only tell apart the entries of this cache, and of those below.
    """
    return as_array(np.int32(n))


def pad_on_host(x: Any, aval: ShapedArray) -> Array:
    """`x`, an array or an operand that becomes one, longer at the ends of its axes: of the padded type `aval`."""
    if type(x) is not ArrayImpl and type(x) is not np.ndarray:
        x = operand(x)
    if x.shape == aval.shape:
        return operand(x)
    placement = x._placement if type(x) is ArrayImpl else shaped(x.shape, aval.dtype)
    return padder(placement, aval, config.current().execution_fingerprint)(x)


def cut_on_host(x: Array, shape: tuple[int, ...]) -> Array:
    """The beginning of `x` along each axis. Leading rows share the memory of `x` on CPUs."""
    return x if x.aval.shape == shape else cutter(x._placement, shape, config.current().execution_fingerprint)(x)


@functools.lru_cache(8192)
def padder(placement: Placement, aval: ShapedArray, settings: Any) -> Callable[[Any], Array]:
    """A function that pads arrays and operands with `placement` to the type `aval`, on their devices."""
    shape, stored = aval_of(placement).physical.shape, aval.physical
    is_plain = stored.dtype == aval.dtype
    place = _placer(placement, aval, settings)
    axes = [axis for axis, (n, size) in enumerate(zip(shape, stored.shape, strict=True)) if n != size]
    inside: Any = tuple(map(slice, shape))
    # what is behind the end of each axis, within the earlier ones
    borders: list[Any] = [(*inside[:axis], slice(shape[axis], None)) for axis in axes]
    if axes == [0]:  # the usual case: NumPy reads slices faster than tuples of them
        inside, borders = inside[0], [slice(shape[0], None)]

    def pad(x: Any) -> Array:
        if type(x) is not np.ndarray:
            x = np.asarray(operand(x) if is_plain else physical(operand(x)))
        # Uninitialized, as each element is written once: by the array or by a border.
        whole = _memory(stored.shape, stored.dtype)
        whole[inside] = x
        for border in borders:
            whole[border] = padding_value(stored.dtype)
        return place(whole)

    return pad


@functools.lru_cache(8192)
def cutter(placement: Placement, shape: tuple[int, ...], settings: Any) -> Callable[[Array], Array]:
    """A function that cuts arrays with `placement` to this shape."""
    aval = aval_of(placement)
    is_plain = aval.physical.dtype == aval.dtype
    place = _placer(placement, shaped(shape, aval.dtype, aval.weak_type), settings)
    is_rows = aval.shape[1:] == shape[1:]
    inside: Any = slice(shape[0]) if is_rows else tuple(map(slice, shape))

    def cut(x: Array) -> Array:
        part = np.asarray(x if is_plain else physical(x))[inside]
        if not is_rows:
            whole, part = part, _memory(part.shape, part.dtype)
            part[...] = whole
        return place(part)

    return cut


def _memory(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialized array. A large one is at an aligned address."""
    size = math.prod(shape) * dtype.itemsize
    if size < _MIN_ALIGNED:
        return np.empty(shape, dtype)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return np.ndarray(shape, dtype, memory, start)


def _placer(placement: Placement, aval: ShapedArray, settings: Any) -> Callable[[np.ndarray], Array]:
    """A function that makes arrays of type `aval` from elements on the host, on the devices of `placement`.

    They share memory with the elements where that is possible.
    """
    sharding, stored = sharding_of(placement), aval.physical
    if len(sharding.devices) > 1:
        sharding = _divisible(sharding, aval.shape)
    new = placement_for(aval, sharding, is_committed(placement))
    put, new_aval = buffer_maker(stored, sharding, stored.dtype, share=True), aval_of(new)
    return lambda host: wrap(put(host), new_aval, new)


def _divisible(sharding: Sharding, shape: tuple[int, ...]) -> Sharding:
    """`sharding`; axes that it does not split into equal parts are on each device as a whole."""
    tiles = sharding.tiles(len(shape))
    if not any(n % parts for n, parts in zip(shape, tiles, strict=True)):
        return sharding
    if isinstance(sharding, NamedSharding):
        entries = [None if n % parts else e for e, n, parts in zip(sharding.spec, shape, tiles, strict=False)]
        return sharding.update(spec=PartitionSpec(*entries))
    return CompilerSharding(sharding.devices, HloSharding.replicate())
