"""Arrays from data: numbers, lists, NumPy arrays, arrays of other libraries."""

from __future__ import annotations

import array as stdlib_array
import collections
from typing import Any, NoReturn

import numpy as np

from ..._api.devices.out_sharding import OutSharding, lay_out
from ..._api.devices.transfers import place, placed
from ..._api.jit.jit import jit
from ..._base import pytree
from ..._base.beside_jax import is_tracer_of_jax
from ..._base.errors import ArgumentError, NumberRangeError, OptionError, ShapeError, UnsupportedError
from ..._base.source import warn
from ..._ir import dtypes
from ..._ir.avals import is_masked, shaped, typeof_value
from ..._ir.dimensions import SymbolicDim
from ..._ir.promotion import promote
from ..._operands.checks import array_like, check, check_one, integer, refuse_complex, type_of, warn_of_lost_parts
from ..._operands.promotion import to_dtype
from ..._ops.structure import shape as ops
from ..._ops.structure.numbers import literal_of
from ..._trace.trace import Tracer, array_advice, not_an_array, recorder
from ..._transform.array_operations import weak_number
from ..._xla import transfer
from ..._xla.array import Array, ArrayImpl, put, wrap
from ..._xla.devices import Device, local_devices
from ..._xla.placement import placement_for
from ..._xla.sharding import Sharding, single_device
from ...typing import ArrayLike, DTypeLike
from .._manipulation.joining import stack

# --- from data ------------------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of `object`: a number, nested lists, a NumPy array, or anything with ``__array__`` or DLPack (as
    ``numpy.array``).

    Python numbers give weakly typed scalars; lists of them do not.

    Args:
      object: data to convert; texts of numbers only with a `dtype`.
      dtype: dtype of the elements; by default the dtype of the data, 64-bit types becoming 32-bit unless x64 mode is
        on.
      copy: accepted for compatibility: the array never shares memory with `object`.
      order: 'K', 'C', 'A' or None, all without effect: arrays have no memory order.
      ndmin: minimum number of axes of the result; axes of length one are prepended as needed.
      device: device or sharding on which the array is placed.
      out_sharding: sharding of the array over a mesh; cannot be combined with `device`.

    Returns:
      An array of the shape of the data and of `dtype`.

    Raises:
      ArgumentError: `object` cannot be converted to an array, or `device` is neither a device nor a sharding.
      ShapeError: nested lists at the same depth have different lengths.
      OverflowError: a Python integer does not fit the dtype.
      OptionError: both `device` and `out_sharding` are given.
      UnsupportedError: `order` is 'F'.

    >>> array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if order not in ("K", "C", "A", None):
        raise UnsupportedError(f"array: order={order!r}: arrays have no memory order here")
    if out_sharding is not None:
        if device is not None:
            raise OptionError("array: device= and out_sharding= both say where the array lies", instead="one of them")
        return lay_out("array", array(object, dtype, copy=copy, order=order, ndmin=ndmin), out_sharding)
    out_dtype = dtypes.optional_dtype(dtype, "array")
    if isinstance(object, np.ndarray):
        object = np.asarray(object)  # drops subclasses, as numpy.array
    out = _convert(array_like(object), out_dtype)
    missing = integer("array", "ndmin", ndmin) - type_of(out).ndim
    if missing > 0:
        out = ops.broadcast_in_dim(
            out,
            shape=(1,) * missing + type_of(out).shape,
            broadcast_dimensions=tuple(range(missing, ndmin)),
        )
    if device is not None:
        return placed(out, device)
    return ops.copy(out) if copy and out is object else out


def listed(function: str, *args: Any) -> list[Array]:
    """Converts the arguments of a function that takes lists and tuples of numbers as well as arrays."""
    return check(function, *[asarray(x) if isinstance(x, list | tuple) else x for x in args])


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The argument as an array; like `array`, but arrays are returned without a copy (as ``numpy.asarray``).

    Args:
      a: data to convert, as for `array`.
      dtype: dtype of the elements; by default the dtype of the data.
      order: 'K', 'C', 'A' or None, all without effect: arrays have no memory order.
      copy: True copies an array that needs no conversion; None and False return it itself.
      device: device or sharding on which the array is placed.
      out_sharding: sharding of the array over a mesh; cannot be combined with `device`.

    Returns:
      `a` itself if it is an array of phlox and nothing is to be changed, else an array of its shape and of `dtype`.

    Raises:
      ArgumentError: `a` cannot be converted to an array, or is a masked array of NumPy.
      OptionError: both `device` and `out_sharding` are given.
      UnsupportedError: `order` is 'F'.

    >>> asarray([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    # The fast path of code that converts all of its arguments
    if type(a) is ArrayImpl and dtype is None and device is None and out_sharding is None and not copy:
        return a
    if is_masked(a):
        raise not_an_array(a, "the argument of asarray")
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


#: what objects have that NumPy reads as arrays
_NUMPY_READS = ("__array__", "__array_interface__", "__array_struct__")
_BUFFERS = (memoryview, bytearray, stdlib_array.array)
#: what is read as numbers if the dtype is given
_TEXTS = (str, bytes)
#: what is read as a list of numbers, or of lists of them
_SEQUENCES = (list, tuple, range, collections.deque)


def _convert(x: Any, dtype: Any) -> Any:
    aval = typeof_value(x)
    if isinstance(x, Array):
        return to_dtype(x, dtype) if dtype is not None else x
    if aval is not None and not isinstance(x, np.ndarray) and not hasattr(x, "aval"):
        if dtype is None and aval.weak_type:
            return _on_device(_checked(x, aval.dtype), aval)
        return _from_host(_checked(x, dtype or aval.dtype))
    if dtype is not None and (isinstance(x, _TEXTS) or (isinstance(x, np.ndarray) and x.dtype.kind in "USO")):
        return _parse(x, dtype)
    if isinstance(x, np.ndarray):
        if x.dtype == dtypes.float0 and dtype is None:
            return np.array(x)  # devices have no such dtype
        if aval is None:
            raise ArgumentError(
                f"array: NumPy arrays of dtype {x.dtype} are not supported", instead=array_advice(x), value=x
            )
        return _from_host(_checked(x, dtype or aval.dtype))
    if isinstance(x, _SEQUENCES):
        return _from_list(x, dtype)
    if is_tracer_of_jax(x):
        raise not_an_array(x, "array: the argument")
    if any(hasattr(x, name) for name in _NUMPY_READS):
        return _convert(np.asarray(x), dtype)
    if hasattr(x, "__dlpack__"):
        array = from_dlpack(x)
        return to_dtype(array, dtype) if dtype is not None else array
    if dtype is not None and _is_number(x):
        return _parse(x, dtype)
    if x is None:
        _refuse_none("the argument is None")
    try:
        view = np.asarray(memoryview(x))
        # NumPy reads bytes as numbers, for which `frombuffer` is the word.
        if isinstance(x, bytes):
            raise TypeError
    except TypeError:
        raise ArgumentError(
            f"array: {x!r} of type {type(x).__name__} is no array",
            instead=array_advice(x),
        ) from None
    return _convert(view, dtype)


def _is_number(x: Any) -> bool:
    """Whether an object of another library is a number, which NumPy reads if the dtype is given: a fraction."""
    return hasattr(x, "__float__") or hasattr(x, "__complex__")


def _parse(x: Any, dtype: Any) -> Any:
    """The array of texts that are numbers, or of Python objects, as NumPy reads them."""
    reader = dtype if dtype.isbuiltin == 1 else np.float32 if dtypes.kind(dtype) == "f" else np.int32
    try:
        return _from_host(_checked(np.asarray(x, reader), dtype))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"array: {error}", value=x) from None


def _fits(x: float, dtype: Any) -> bool:
    """Whether an integer dtype holds a number without its fraction, as numpy.array converts floats; nan never fits."""
    limits = dtypes.iinfo(dtype)
    return bool(limits.min - 1 < x < limits.max + 1)


def _checked(x: Any, dtype: Any) -> np.ndarray:
    """`x` on the host with this dtype. Raises `OverflowError` for a Python number that an integer dtype cannot hold."""
    if type(x) is np.ndarray and x.dtype is dtype:
        return x
    if isinstance(x, int | float) and not isinstance(x, bool | np.generic):
        if dtypes.kind(dtype) in "iu" and not _fits(x, dtype):
            raise dtypes.too_large(x, dtype)
        return np.asarray(literal_of(x, dtype))
    refuse_complex("array", x, dtype)
    # Numbers beyond the range of the dtype become infinite, as in XLA; NumPy would warn of them.
    with np.errstate(all="ignore"):
        value = np.asarray(x)
        warn_of_lost_parts(value.dtype, dtype)
        if value.dtype.kind == "c" and dtypes.kind(dtype) not in "cb":
            value = value.real
        return value.astype(dtype, copy=False)


def _from_host(value: np.ndarray) -> Any:
    return _on_device(value, shaped(value.shape, value.dtype))


def _on_device(value: np.ndarray, aval: Any) -> Any:
    program = recorder()
    if program is None:
        return put(value, aval)
    if aval.shape:
        return program.constant(put(value, aval), aval)
    # A number is written into the program, while an array becomes a hidden argument of it.
    number = value[()]
    return program.constant(weak_number(number) if aval.weak_type else number, aval)


def _plain(x: Any) -> Any:
    """Nested sequences of any class as lists."""
    return [_plain(item) for item in x] if isinstance(x, _SEQUENCES) else x


def _refuse_none(case: str) -> NoReturn:
    raise ArgumentError(f"None is not a valid value for jnp.array: {case}", instead="phlox.numpy.nan, or 0", value=None)


def _from_list(x: Any, dtype: Any) -> Any:
    x = list(x) if isinstance(x, range) else x
    # Without `is_leaf` a None would be a tree without leaves, and pass unnoticed.
    leaves = pytree.tree_leaves(x, is_leaf=lambda v: v is None)
    if not leaves:
        return _from_host(_checked(np.asarray(x), dtype or dtypes.canonical(dtypes.float64)))
    arrays = [array_like(leaf) for leaf in leaves]
    avals = [typeof_value(v) for v in arrays]
    for leaf, aval in zip(leaves, avals, strict=True):
        if leaf is None:
            _refuse_none("an element is None")
        if aval is None:
            # Classes derived from list, as Keras has them, are leaves of a pytree.
            if isinstance(leaf, _SEQUENCES):
                return _from_list(_plain(x), dtype)
            if any(hasattr(leaf, name) for name in _NUMPY_READS) or isinstance(leaf, _BUFFERS):
                return _convert(stack([_convert(array_like(v), dtype) for v in x]), dtype)
            is_read = isinstance(leaf, _TEXTS) or _is_number(leaf)
            if dtype is not None and is_read and all(v is not None for v in leaves):
                return _parse(x, dtype)
            raise ArgumentError(
                f"array: {leaf!r} of type {type(leaf).__name__} inside of a list is no number",
                instead="nested lists of numbers",
                value=leaf,
            )
        if dtype is not None:
            refuse_complex("array", leaf, dtype)
    if dtype is None:
        dtype, _ = promote(tuple({(a.dtype, a.weak_type) for a in avals if a is not None}))
    if any(isinstance(v, Tracer | Array | SymbolicDim) for v in arrays):
        return stack([_convert(array_like(v), dtype) for v in x])
    is_integer = dtypes.kind(dtype) in "iu"
    try:
        # NumPy gets the dtype of integers, for which it checks the numbers; its own default would be int64.
        value = np.array(x, dtype=dtype if is_integer or all(isinstance(v, int) for v in leaves) else None)
    except (OverflowError, ValueError) as error:
        for number in leaves if is_integer else ():
            if not _fits(number, dtype):
                raise dtypes.too_large(np.asarray(number).item(), dtype, "array: ") from None
        if isinstance(error, OverflowError):
            raise NumberRangeError(f"array: {error}", dtype=dtype) from None
        raise ShapeError(f"array: {error}", instead="lists of equal lengths") from None
    return _from_host(_checked(value, dtype))


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A new array with the elements of `a` (as ``numpy.copy``).

    Args:
      a: array or number, of any shape.
      order: has no effect: arrays have no memory order.

    Returns:
      An array of the shape and dtype of `a`.

    >>> copy(array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    a = check_one("copy", a)
    return array(a, copy=True)


def from_dlpack(external_array: Any, /, *, device: Device | Sharding | None = None, copy: bool | None = None) -> Array:
    """An array of another library, through the DLPack protocol (as ``numpy.from_dlpack``).

    Unless `copy` is true, memory is shared where the device allows it (for CPU arrays, when it is aligned): later
    writes to the original then change this array too.

    Args:
      external_array: an object with ``__dlpack__`` and ``__dlpack_device__``, in memory that the CPU can read.
      device: device or sharding on which the array is placed.
      copy: True makes a copy of the memory; None shares it where possible; False shares it or raises.

    Returns:
      An array of the same shape and dtype, 64-bit types becoming 32-bit unless x64 mode is on.

    Raises:
      ArgumentError: the object does not support DLPack, or is in memory that the CPU cannot read, or `copy` is False
        and the memory is not aligned or on another device.

    >>> from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(external_array, Array):
        if copy is False and device is not None:
            _refuse_move(external_array.sharding, device)
        return array(external_array, external_array.dtype, copy=bool(copy), device=device)
    if not hasattr(external_array, "__dlpack_device__"):
        raise ArgumentError(
            f"from_dlpack: {external_array!r:.60} of type {type(external_array).__name__} offers no DLPack",
            instead="phlox.numpy.asarray(x)",
        )
    kind, _ = external_array.__dlpack_device__()
    # Types of memory in DLPack: 1 is the CPU's, 3 pinned memory of the host for CUDA.
    if kind not in (1, 3):
        raise ArgumentError(f"from_dlpack: memory of DLPack device type {kind} cannot be read by the CPU backend")
    source = local_devices(backend="cpu")[0]
    if copy is False and device is not None:
        _refuse_move(single_device(source), device)
    # NumPy refuses to export arrays that are not writeable.
    if isinstance(external_array, np.ndarray) and not external_array.flags.writeable:
        return asarray(external_array, device=device)
    capsule = external_array.__dlpack__()
    buf, aval = transfer.from_dlpack(capsule, source)
    if copy is False and aval.size and not _shares_memory(buf, external_array):
        raise ArgumentError(
            "from_dlpack: Specified copy=False for an array which requires a copy, as its memory is not aligned to 64 "
            "bytes",
            instead="copy=None",
        )
    if copy:
        buf = transfer.copy(buf, aval, single_device(source))
    # A buffer of 64 bits outside of 64-bit mode
    if dtypes.canonical(aval.dtype) != aval.dtype:
        return asarray(transfer.buffer_to_numpy(buf, aval, single_device(source)), device=device)
    out = wrap(buf, aval, placement_for(aval, single_device(source), False))
    return placed(out, device)


def _refuse_move(sharding: Sharding, device: Any) -> None:
    """Raises `ArgumentError` unless arrays with this sharding are on the `device` of ``from_dlpack(copy=False)``."""
    if sharding != place(device):
        raise ArgumentError(
            f"from_dlpack: copy=False, and device={device} requires a copy, as the array is on {sharding}",
            instead="copy=None",
        )


def _shares_memory(buf: Any, external_array: Any) -> bool:
    """Whether the buffer is the memory of the array itself."""
    try:
        return bool(np.from_dlpack(external_array).ctypes.data == transfer.pointer(buf))
    # NumPy has no bfloat16 and the like, whose address nothing tells.
    except (BufferError, RuntimeError):
        return True


def astype(
    x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Device | Sharding | None = None
) -> Array:
    """`x` with its elements converted to `dtype` (as ``numpy.astype``). Complex to real drops the imaginary part.

    Args:
      x: array or number, of any shape.
      dtype: dtype of the result; None means the default float dtype.
      copy: True makes a copy even if `x` already has this dtype.
      device: device or sharding on which the array is placed.

    Returns:
      An array of the shape of `x` and of `dtype`.

    >>> astype(array([1.7, -1.7]), "int32")
    Array([ 1, -1], dtype=int32)
    """
    x = check_one("astype", x)
    x = asarray(x) if isinstance(x, int) else x  # converted as an array is, without a check of the range
    out_dtype = dtypes.user_dtype(float if dtype is None else dtype, "astype")
    if dtypes.kind(type_of(x).dtype) == "c" and dtypes.kind(out_dtype) in "iuf":
        warn(
            "Casting from complex to real dtypes will soon raise a ValueError in JAX; here the imaginary part is lost. "
            "Please first use numpy.real or numpy.imag to take a part.",
            DeprecationWarning,
        )
    if out_dtype == type_of(x).dtype and (dtypes.is_extended(out_dtype) or not (copy or type_of(x).weak_type)):
        return placed(ops.as_array_or_tracer(x), device)
    return placed(_astype(x, dtype=out_dtype), device)


@jit(inline=True, static_argnames="dtype")
def _astype(x: Any, dtype: Any) -> Any:
    return to_dtype(x, dtype, warns=False)
