"""Making arrays: from data, filled with a value, counting up."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._api.jit import jit
from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, ShapeError
from .._ir import dtypes
from .._ir.avals import shaped, typeof_value
from .._ir.primitive import current_trace
from .._ops import shape as ops
from .._trace.trace import Tracer
from .._transform.words import zeros as zeros_of_type
from .._xla import transfer
from .._xla.array import Array, move, put, wrap
from .._xla.devices import Device, local_devices
from .._xla.placement import key_for
from .._xla.sharding import Sharding, single_device
from ._promote import array_like, check, promote_dtypes, to_dtype, type_of
from ._shapes import as_shape, broadcast_to, stack

# --- from data ------------------------------------------------------------------------------------------


def _place(device: Any) -> Sharding | None:
    if device is None or isinstance(device, Sharding):
        return device
    if type(device) is Device:
        return single_device(device)
    raise ArgumentError(f"{device!r} is neither a device nor a sharding", instead="phlox.devices()[0]")


def array(
    object: Any, dtype: Any = None, copy: bool = True, order: str = "K", ndmin: int = 0, *, device: Any = None
) -> Any:
    """An array of `object`: a number, nested lists, a NumPy array, or anything with ``__array__`` or DLPack.

    Args:
      object: the data.
      dtype: element type; by default that of the data, 64-bit types becoming 32-bit unless x64 mode is on.
      copy: always honoured: the array never shares memory with `object`.
      ndmin: new axes of length one are put in front until there are so many.
      device: a device or sharding to put the array on.

    Python numbers give weakly typed scalars; lists of them do not. Raises `ArgumentError` for data that is no array.

    >>> array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if order not in ("K", "C", "A", None):
        raise ArgumentError(f"array: order={order!r} is not supported", instead="arrays have no memory order here")
    wanted = None if dtype is None else dtypes.user_dtype(dtype, "array")
    made = _convert(array_like(object), wanted)
    missing = ndmin - type_of(made).ndim
    if missing > 0:
        made = ops.broadcast_in_dim(
            made,
            shape=(1,) * missing + type_of(made).shape,
            broadcast_dimensions=tuple(range(missing, ndmin)),
        )
    place = _place(device)
    if place is not None and type(made) is Array:
        return move(made, place)
    if copy and made is object and type(made) is Array:
        return ops.copy(made)
    return made


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, device: Any = None
) -> Any:
    """Like `array`, but an array that is one already is returned as it is.

    >>> asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    if type(a) is Array and dtype is None and device is None and not copy:
        return a
    return array(a, dtype, bool(copy), "K", device=device)


def _convert(x: Any, dtype: Any) -> Any:
    aval = typeof_value(x)
    if isinstance(x, Array):
        return to_dtype(x, dtype) if dtype is not None else x
    if aval is not None and not isinstance(x, np.ndarray) and not hasattr(x, "aval"):
        if dtype is None and aval.weak_type:
            return _on_device(np.asarray(x, aval.dtype), aval)
        return _from_host(_checked(x, dtype or aval.dtype))
    if isinstance(x, np.ndarray):
        if aval is None:
            raise ArgumentError(f"array: NumPy arrays of dtype {x.dtype} are not supported", value=x)
        return _from_host(_checked(x, dtype or aval.dtype))
    if isinstance(x, tuple | list):
        return _from_list(x, dtype)
    if hasattr(x, "__array__"):
        return _convert(np.asarray(x), dtype)
    if hasattr(x, "__dlpack__"):
        found = from_dlpack(x)
        return to_dtype(found, dtype) if dtype is not None else found
    try:
        view = np.asarray(memoryview(x))
    except TypeError:
        raise ArgumentError(
            f"array: {x!r} of type {type(x).__name__} is no array", instead="a number, a list of numbers, an array"
        ) from None
    return _convert(view, dtype)


def _checked(x: Any, dtype: Any) -> np.ndarray:
    """`x` on the host with this dtype. Raises `OverflowError` for Python integers that do not fit."""
    if isinstance(x, int) and not isinstance(x, bool):
        return np.asarray(ops.literal_of(x, dtype))
    with np.errstate(all="ignore"):
        value = np.asarray(x)
        if value.dtype.kind == "c" and dtypes.kind(dtype) not in "cb":
            value = value.real
        return value.astype(dtype, copy=False)


def _from_host(value: np.ndarray) -> Any:
    return _on_device(value, shaped(value.shape, value.dtype))


def _on_device(value: np.ndarray, aval: Any) -> Any:
    made = put(value, aval)
    # Under a trace a new array is a constant; going through `copy` records it as the program's own.
    return made if current_trace.get() is None else ops.copy(made)


def _from_list(x: Any, dtype: Any) -> Any:
    leaves = pytree.tree_leaves(x, is_leaf=lambda v: v is None)
    if not leaves:
        return _from_host(_checked(np.asarray(x), dtype or dtypes.canonical(dtypes.float64)))
    if any(isinstance(leaf, Tracer | Array) for leaf in leaves):
        parts = [asarray(v) for v in x]
        found = stack(parts)
        return to_dtype(found, dtype if dtype is not None else type_of(found).dtype)
    for leaf in leaves:
        if typeof_value(array_like(leaf)) is None:
            raise ArgumentError(
                f"array: {leaf!r} of type {type(leaf).__name__} inside of a list is no number",
                instead="nested lists of numbers",
                value=leaf,
            )
    if dtype is None:
        types = tuple({(a.dtype, a.weak_type) for a in map(typeof_value, leaves)})  # type: ignore[union-attr]
        from .._ir.promotion import promote

        dtype, _ = promote(types)
    try:
        value = np.array(x, dtype=dtype if all(isinstance(v, int) for v in leaves) else None)
    except ValueError as error:
        raise ShapeError(f"array: {error}", instead="lists of equal lengths") from None
    return _from_host(_checked(value, dtype))


def copy(a: Any, order: str | None = None) -> Any:
    """A new array with the elements of `a` (as ``numpy.copy``).

    >>> copy(array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return array(a, copy=True)


def from_dlpack(external_array: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, through the DLPack protocol.

    The memory is shared where the device allows it (for CPU arrays, when it is aligned), unless `copy` is true: then
    writing to the original afterwards shows here too.

    >>> from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(external_array, Array):
        return external_array
    kind, _ = external_array.__dlpack_device__()
    if kind not in (1, 3):
        raise ArgumentError(f"from_dlpack: memory of DLPack device type {kind} cannot be read by the CPU backend")
    source = local_devices(backend="cpu")[0]
    if isinstance(external_array, np.ndarray) and not external_array.flags.writeable:
        return asarray(external_array)
    capsule = external_array.__dlpack__()
    buf, aval = transfer.from_dlpack(capsule, source)
    if copy:
        buf = transfer.copy(buf, aval, single_device(source))
    if dtypes.canonical(aval.dtype) != aval.dtype:
        return asarray(transfer.buffer_to_numpy(buf, aval, single_device(source)))
    found = wrap(buf, aval, key_for(aval, single_device(source), False))
    place = _place(device)
    return found if place is None else move(found, place)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """`x` with its elements converted to `dtype`. Complex to real drops the imaginary part.

    >>> astype(array([1.7, -1.7]), "int32")
    Array([ 1, -1], dtype=int32)
    """
    (x,) = check("astype", x)
    wanted = dtypes.user_dtype(float if dtype is None else dtype, "astype")
    if dtypes.is_extended(wanted) and wanted == type_of(x).dtype:
        return x
    return _astype(x, dtype=wanted)


@jit(inline=True, static_argnames="dtype")
def _astype(x: Any, dtype: Any) -> Any:
    return to_dtype(x, dtype)


# --- filled with a value --------------------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("shape", "dtype", "weak"))
def _full(value: Any, shape: tuple[int, ...], dtype: Any, weak: bool = False) -> Any:
    return broadcast_to(to_dtype(value, dtype, weak), shape)


def _filled(function: str, shape: Any, value: Any, dtype: Any, device: Any = None, weak: bool = False) -> Any:
    if dtypes.is_extended(dtype):
        raise DtypeError(f"{function}: arrays of {dtype} cannot be filled with numbers")
    made = _full(value, shape=as_shape(shape, function), dtype=dtype, weak=weak)
    place = _place(device)
    return made if place is None or type(made) is not Array else move(made, place)


def _default(dtype: Any, function: str) -> Any:
    return dtypes.canonical(dtypes.float64) if dtype is None else dtypes.user_dtype(dtype, function)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array of zeros, of the default float type unless told otherwise (as ``numpy.zeros``).

    >>> zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    return _filled("zeros", shape, 0, _default(dtype, "zeros"), device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array of ones (as ``numpy.ones``).

    >>> ones(2, "int32")
    Array([1, 1], dtype=int32)
    """
    return _filled("ones", shape, 1, _default(dtype, "ones"), device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array whose values do not matter; they are zeros (as ``numpy.empty``).

    >>> empty(2).shape
    (2,)
    """
    return zeros(shape, dtype, device=device)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array filled with `fill_value`, which may be an array that broadcasts (as ``numpy.full``).

    >>> full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    (fill_value,) = check("full", fill_value)
    aval = type_of(fill_value)
    wanted = aval.dtype if dtype is None else dtypes.user_dtype(dtype, "full")
    return _filled("full", shape, fill_value, wanted, device, weak=dtype is None and aval.weak_type)


def _like(function: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Any:
    (a,) = check(function, a)
    aval = type_of(a)
    wanted = aval.dtype if dtype is None else dtypes.user_dtype(dtype, function)
    weak = dtype is None and aval.weak_type
    return _filled(function, aval.shape if shape is None else shape, value, wanted, device, weak)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of `a` (as ``numpy.zeros_like``).

    >>> zeros_like(array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Ones of the shape and dtype of `a` (as ``numpy.ones_like``).

    >>> ones_like(array([1.5]))
    Array([1.], dtype=float32)
    """
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Like `zeros_like`: values that do not matter (as ``numpy.empty_like``).

    >>> empty_like(array([1, 2])).dtype
    dtype('int32')
    """
    return zeros_like(prototype, dtype, shape, device=device)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """`fill_value` in the shape and dtype of `a` (as ``numpy.full_like``).

    >>> full_like(array([1, 2]), 9)
    Array([9, 9], dtype=int32)
    """
    (fill_value,) = check("full_like", fill_value)
    return _like("full_like", a, fill_value, dtype, shape, device)


# --- counting up ----------------------------------------------------------------------------------------


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None) -> Any:
    """Numbers from `start` (default 0) up to `stop`, which is left out, in steps of `step` (as ``numpy.arange``).

    The arguments decide the length and must be concrete.

    >>> arange(3), arange(1.0, 2.0, 0.5)
    (Array([0, 1, 2], dtype=int32), Array([1. , 1.5], dtype=float32))
    """
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, Tracer):
            value._refuse(ArgumentError, f"arange's {name}", "a Python number; mark it static with static_argnums")  # type: ignore[arg-type]
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    parts: list[Any] = [np.asarray(v) if not isinstance(v, int | float) else v for v in (start, stop, step)]
    if dtype is None:
        avals = [typeof_value(v) for v in (start, stop, step)]
        from .._ir.promotion import promote

        wanted, _ = promote(tuple((a.dtype, a.weak_type) for a in avals))  # type: ignore[union-attr]
    else:
        wanted = dtypes.user_dtype(dtype, "arange")
    n = max(0, math.ceil((parts[1] - parts[0]) / parts[2]))
    if parts[0] == 0 and parts[2] == 1:
        made = _iota(size=n, dtype=wanted)
    else:
        made = asarray(np.arange(*parts, dtype=wanted)[:n])
    place = _place(device)
    return made if place is None or type(made) is not Array else move(made, place)


@functools.partial(jit, inline=True, static_argnames=("size", "dtype"))
def _iota(size: int, dtype: Any) -> Any:
    return ops.iota(dtype=dtype, shape=(size,), dimension=0)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop` (as ``numpy.linspace``), along a new first axis.

    >>> linspace(0.0, 1.0, 3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    start, stop = check("linspace", start, stop)
    wanted = None if dtype is None else dtypes.user_dtype(dtype, "linspace")
    out, step = _linspace(start, stop, num=num.__index__(), endpoint=endpoint, dtype=wanted)
    return (out, step) if retstep else out


@functools.partial(jit, inline=True, static_argnames=("num", "endpoint", "dtype"))
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any) -> tuple[Any, Any]:
    from ._choose import where
    from ._unary import floor

    start, stop = promote_dtypes(start, stop)
    real = dtypes.to_inexact(type_of(start).dtype)
    start, stop = to_dtype(start, real), to_dtype(stop, real)
    start, stop = (
        broadcast_to(v, np.broadcast_shapes(type_of(start).shape, type_of(stop).shape)) for v in (start, stop)
    )
    steps = num - 1 if endpoint else num
    shape = type_of(start).shape
    if steps <= 0:
        step = broadcast_to(np.asarray(np.nan, real), shape)
        out = broadcast_to(start[None], (num, *shape)) if num else zeros_of_type(shaped((0, *shape), real))
        return (out if dtype is None else to_dtype(out, dtype)), step
    step = (stop - start) / steps
    # Weights of the two ends, so that the last number is exactly `stop`.
    count = ops.iota(dtype=real, shape=(num,), dimension=0)
    weight = (count / np.asarray(steps, real)).reshape((num,) + (1,) * len(shape))
    out = start[None] * (1 - weight) + stop[None] * weight
    if endpoint:
        last = (ops.iota(dtype=dtypes.int32, shape=(num,), dimension=0) == num - 1).reshape(weight.shape)
        out = where(last, stop[None], out)
    if dtype is not None:
        out = to_dtype(floor(out) if dtypes.kind(dtype) in "iu" else out, dtype)
    return out, step


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """A matrix with ones on a diagonal, `k` places above the main one (as ``numpy.eye``).

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows, columns = N.__index__(), (N if M is None else M).__index__()
    made = _eye(rows=rows, columns=columns, k=k.__index__(), dtype=_default(dtype, "eye"))
    place = _place(device)
    return made if place is None or type(made) is not Array else move(made, place)


@functools.partial(jit, inline=True, static_argnames=("rows", "columns", "k", "dtype"))
def _eye(rows: int, columns: int, k: int, dtype: Any) -> Any:
    i = ops.iota(dtype=dtypes.int32, shape=(rows, columns), dimension=0)
    j = ops.iota(dtype=dtypes.int32, shape=(rows, columns), dimension=1)
    return to_dtype((i + k) == j, dtype)


def identity(n: int, dtype: Any = None) -> Any:
    """The n by n identity matrix (as ``numpy.identity``).

    >>> identity(1)
    Array([[1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """A matrix with ones on and below a diagonal (as ``numpy.tri``).

    >>> tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    columns = (N if M is None else M).__index__()
    return _tri(rows=N.__index__(), columns=columns, k=k.__index__(), dtype=_default(dtype, "tri"))


@functools.partial(jit, inline=True, static_argnames=("rows", "columns", "k", "dtype"))
def _tri(rows: int, columns: int, k: int, dtype: Any) -> Any:
    i = ops.iota(dtype=dtypes.int32, shape=(rows, columns), dimension=0)
    j = ops.iota(dtype=dtypes.int32, shape=(rows, columns), dimension=1)
    return to_dtype((i + k) >= j, dtype)
