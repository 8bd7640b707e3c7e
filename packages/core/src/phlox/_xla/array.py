"""`Array`: an immutable array on one or more devices.

An array has three slots: a private jaxlib buffer, the abstract value, and the key, by which caches look up compiled
programs (see `placement`). Users never get the buffer: the real jax, if it is in the process, would misread it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import errors
from .._base.native import native
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .._ir.dtypes import ExtendedDtype
from .._trace.trace import ArrayBase, Tracer, check_index, check_number, check_truth
from . import memory, transfer
from .array_exchange import Exchange
from .array_text import MOST_PRINTED, array_text
from .devices import Device, client
from .import_guard import no_jax
from .placement import (
    Placement,
    aval_of,
    is_committed,
    placement_for,
    sharding_of,
    sharding_of_buffer,
    sharding_of_new,
)
from .sharding import Sharding, one_device_in

if TYPE_CHECKING:
    from .layout import Format


class _ArrayType(type):
    """Makes tracers instances of `Array`, so that `isinstance(x, Array)` is True inside transformed functions."""

    def __instancecheck__(cls, instance: Any) -> bool:
        # `type` and not `isinstance`, which would call this method again.
        return issubclass(type(instance), (cls, Tracer))


class Shard:
    """The part of an array that one device holds.

    `index` is the slices of the whole array, `replica_id` numbers the devices that hold the same slices, from 0. `data`
    is the part as an `Array`, or None if the device belongs to another process.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Device, index: tuple[slice, ...], replica_id: int, data: Any):
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


class Array(ArrayBase, Exchange, metaclass=_ArrayType):
    """An array on a device. Make one with `phlox.numpy`; operators and methods are those of NumPy arrays.

    Arrays are immutable: ``x.at[i].set(v)`` returns a new one. `isinstance(x, phlox.Array)` is also true for
    the tracers that stand for arrays in transformed functions.

    >>> jnp.arange(3) + 1
    Array([1, 2, 3], dtype=int32)
    """

    __slots__ = ("__weakref__", "_buf", "_placement", "aval")
    _buf: Any
    _placement: Placement
    # NumPy's operators give way to those of an operand with a higher priority: ``np_array + array`` is an `Array`.
    __array_priority__ = 100

    def __init__(self) -> None:
        raise errors.ArgumentError("Array() makes no arrays", instead="phlox.numpy.array(...)")

    # -- values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # With `_placement is aval` the array lies uncommitted on the first device: its sharding need not be looked up.
        if dtype is None and self._placement is self.aval and self.aval.dtype.isbuiltin == 1:
            try:  # the usual case: host memory and a dtype of NumPy
                # jaxlib ends the process where a buffer is read whose memory could not be allocated; waiting raises.
                self._buf.block_until_ready()
                view = np.asarray(memoryview(self._buf))
                return view.copy() if copy else view
            except (BufferError, RuntimeError):
                pass
        if isinstance(self.aval.dtype, ExtendedDtype):
            raise errors.DtypeError(
                f"arrays of {self.aval.dtype} have no elements that NumPy knows", instead="phlox.random.key_data(keys)"
            )
        # In this order: a deleted buffer gets its own message, and the error of a failed computation is explained.
        self._check_alive()
        self.block_until_ready()
        value = transfer.buffer_to_numpy(self._buf, self.aval, self.sharding)
        if dtype is not None and dtype != value.dtype:
            return value.astype(dtype)
        return value.copy() if copy else value

    def item(self, *args: Any) -> Any:
        """The value of an array with one element, as a Python scalar; or of element ``args``."""
        return np.asarray(self).item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python scalars."""
        return np.asarray(self).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The elements as bytes."""
        return np.asarray(self).tobytes(order)  # type: ignore[arg-type]

    def _scalar(self, what: str) -> np.ndarray:
        check_number(self.aval, what)
        return np.asarray(self)

    def __bool__(self) -> bool:
        check_truth(self.aval)
        # Arrays of one element may have axes: ``bool(jnp.ones((1, 1)))``.
        return bool(np.asarray(self).reshape(()))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        check_index(self.aval)
        return int(np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self)[()], spec) if self._has_numbers() else super().__format__(spec)

    def __str__(self) -> str:
        return str(np.asarray(self)) if self._has_numbers() and self.nbytes < MOST_PRINTED else repr(self)

    def __repr__(self) -> str:
        self._check_alive()
        return array_text(self, physical(self))

    def _has_numbers(self) -> bool:
        """Whether the elements can be printed by NumPy; those of PRNG keys cannot."""
        return not isinstance(self.aval.dtype, ExtendedDtype) and self._is_shown()

    def _is_shown(self) -> bool:
        """Whether the text of the array contains its elements: only if each process that holds a part can read all."""
        sharding = self.sharding
        if sharding.is_unreduced:
            return False
        return sharding.is_fully_addressable or (sharding.is_fully_replicated and sharding.has_addressable_devices)

    # -- placement

    @property
    def sharding(self) -> Sharding:
        """The sharding: how the array is laid out over devices."""
        return sharding_of(self._placement)

    @property
    def format(self) -> Format:
        """Layout and sharding. Arrays have their axes in order on each device."""
        from .layout import Format, Layout  # rare, and made of dataclasses, which take their time to define

        return Format(Layout(tuple(range(self.ndim)), ()), self.sharding)

    @property
    def device(self) -> Device | Sharding:
        """The device that holds the array, or the sharding when there are several."""
        sharding = self.sharding
        return sharding.devices[0] if len(sharding.devices) == 1 else sharding

    def devices(self) -> set[Device]:
        """The devices that hold parts of the array."""
        self._check_alive()
        return set(self.sharding.devices)

    @property
    def committed(self) -> bool:
        """True when the array was placed explicitly, so that computations with it run on its devices."""
        return is_committed(self._placement)

    # names that are private in JAX
    _committed, _value = committed, property(np.asarray)

    @property
    def is_fully_addressable(self) -> bool:
        """True when this process can read every element."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """True when every device holds all elements."""
        return self.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts on devices of this process."""
        return [shard for shard in self.global_shards if shard.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """The parts on all devices; without the data on devices of other processes."""
        self._check_alive()
        sharding = self.sharding
        aval = shaped(sharding.shard_shape(self.shape), self.dtype, self.weak_type)
        mine = {
            device: wrap(buf, aval, placement_for(aval, one_device_in(device, sharding.kind), self.committed))
            for device, buf in transfer.pieces(self._buf, aval.physical, sharding)
        }
        shards = []
        copies: dict[str, int] = {}
        for device, index in sharding.devices_indices_map(self.shape).items():
            # As text, since slices are not hashable before Python 3.12.
            copies[str(index)] = copies.get(str(index), -1) + 1
            shards.append(Shard(device, index, copies[str(index)], mine.get(device)))
        return shards

    def addressable_data(self, index: int) -> Array:
        """The part on device number `index` of this process."""
        return self.addressable_shards[index].data

    # -- the buffer

    def block_until_ready(self) -> Array:
        """Waits until the elements are computed; returns the array. Raises the computation's error if it has failed."""
        try:
            self._buf.block_until_ready()
        except RuntimeError as error:
            # A deleted buffer raises a RuntimeError as well, whose message does not name the array.
            self._check_alive()
            memory.explain(error, memory.origin(self._buf))
            raise
        return self

    def is_ready(self) -> bool:
        """True when the elements are computed."""
        self._check_alive()
        return self._buf.is_ready()

    def delete(self) -> None:
        """Frees the memory now. Later uses raise `DeletedArrayError`."""
        self._buf.delete()

    def is_deleted(self) -> bool:
        """True when the memory was freed or given to a computation (donated)."""
        return self._buf.is_deleted()

    def copy_to_host_async(self) -> None:
        """Starts copying the elements to the host, so that a later `numpy.asarray` need not wait."""
        self._check_alive()
        if len(self.sharding.devices) > 1:
            for shard in self.addressable_shards:
                shard.data.copy_to_host_async()
        elif transfer.is_local(self.sharding.devices[0]):
            # jaxlib imports jax here, to make a sharding for the copy.
            with no_jax:
                self._buf._copy_single_device_array_to_host_async()

    def _check_alive(self) -> None:
        if self._buf.is_deleted():
            raise deleted(self)

    # -- copies

    def __reduce__(self) -> Any:
        # Values only: the process that reads them may have other devices. Keys travel as integers.
        return _restore, (np.asarray(physical(self)), self.aval.dtype, self.aval.weak_type)

    def __copy__(self) -> Array:
        # Arrays are immutable, so there is nothing to tell a copy from the array.
        return self

    def __deepcopy__(self, _memo: Any) -> Array:
        # A true copy: one of the two may be donated.
        return wrap(transfer.copy(self._buf, self.aval.physical, self.sharding), self.aval, self._placement)


class ArrayImpl(Array):
    """The class of concrete arrays, which `wrap` makes.

    Its `__init__` is that of `object`, because a Python function would be called for each array. Users may set
    attributes, as on JAX's arrays: Keras writes ``x.trainable = False``.
    """

    __slots__ = ("__dict__",)
    __init__ = object.__init__


def wrap(buf: Any, aval: ShapedArray, placement: Placement) -> ArrayImpl:
    """The array of a buffer that has the type `aval` and the sharding of `placement`."""
    array = ArrayImpl()
    array._buf = buf
    array.aval = aval
    array._placement = placement
    return array


def wrap_all(bufs: Iterable[Any], avals: Iterable[ShapedArray], placements: Iterable[Placement]) -> list[Array]:
    """The arrays of several buffers. The code of `wrap` is repeated here to avoid a call for each."""
    arrays: list[Array] = []
    for buf, aval, placement in zip(bufs, avals, placements):  # noqa: B905  (their lengths are the number of results)
        array = ArrayImpl()
        array._buf = buf
        array.aval = aval
        array._placement = placement
        arrays.append(array)
    return arrays


def deleted(array: Array, argument: str = "an array") -> errors.DeletedArrayError:
    """The error for using an array whose buffer is deleted."""
    return errors.DeletedArrayError(
        f"Array has been deleted with shape={array.aval.str_short(False)}: {argument} of type {array.aval.short} was "
        "deleted, or donated to a computation",
        instead="use the result of that computation, or leave the argument out of donate_argnums",
        aval=array.aval,
    )


def put(
    x: Any, aval: ShapedArray, sharding: Sharding | None = None, *, committed: bool = False, share: bool = False
) -> Array:
    """Copies a NumPy array or scalar `x`, of the physical type of `aval`, to devices with the layout `sharding`.

    Without a sharding the array goes to the mesh of the context, or to the default device and is not committed. With
    `share` its memory may be used.
    """
    if sharding is None:
        sharding, committed = sharding_of_new()
    placement = placement_for(aval, sharding, committed)
    return wrap(transfer.put_buffer(x, aval.physical, sharding, share), aval_of(placement), placement)


def physical(array: Array) -> Array:
    """The array with its physical type: an array of PRNG keys as the integers it is stored as, any other unchanged."""
    real = array.aval.physical
    # Compared by dtype, as only extended dtypes have another physical type.
    if real.dtype == array.aval.dtype:
        return array
    return logical(array, real)


def logical(array: Array, aval: ShapedArray) -> Array:
    """The inverse of `physical`: `array` as an array of type `aval`."""
    placement = placement_for(aval, array.sharding, array.committed)
    return wrap(array._buf, aval_of(placement), placement)


def block_until_ready(arrays: list[Array]) -> None:
    """Waits for several arrays at once."""
    try:
        # One call for all, which waits once; errors say nothing about the array, so they are looked for below.
        native.batched_block_until_ready([array._buf for array in arrays])
    except RuntimeError:
        for array in arrays:
            array.block_until_ready()  # says which one failed, and why
        raise


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that are alive on `platform`, including those in caches of phlox.

    They share their buffers with the arrays of the user: deleting one deletes the other. Arrays of PRNG keys appear as
    the integers they are stored as.

    Args:
      platform: name of a platform, such as ``'cpu'``; None for the default one.

    Returns:
      A list of arrays, in no particular order.

    >>> x = jnp.full(7, 3.5)
    >>> any(a.shape == (7,) for a in live_arrays())
    True
    """
    arrays: list[Array] = []
    for buf in client(platform).live_arrays():
        sharding = sharding_of_buffer(buf)
        if sharding is not None:
            placement = placement_for(buf.aval, sharding, True)
            arrays.append(wrap(buf, aval_of(placement), placement))
    return arrays


def _restore(value: np.ndarray, dtype: Any, weak_type: bool) -> Array:
    """The array with these physical elements: the inverse of `Array.__reduce__`."""
    if isinstance(dtype, ExtendedDtype):
        return put(value, shaped(value.shape[: value.ndim - len(dtype.element_shape)], dtype, weak_type))
    # The pickle may come from a process with `enable_x64`.
    return put(value, shaped(value.shape, dtypes.canonical(dtype), weak_type))
