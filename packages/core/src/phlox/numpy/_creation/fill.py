"""Arrays from a shape: zeros, ones, full, arange, linspace, eye and others.

The parameter `out_sharding` of public functions is handled in `_arrays/with_out_sharding.py`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..._api.devices.out_sharding import OutSharding
from ..._api.devices.transfers import own_sharding, placed
from ..._api.jit.jit import jit
from ..._api.jit.programs import ShapeDtypeStruct, dtype_like
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ConcretizationTypeError, DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped, typeof_value
from ..._ir.dimensions import is_symbolic, max_dim, surely_at_least, value_of
from ..._ir.primitive import current_trace
from ..._operands.checks import (
    as_shape,
    canonical_axis,
    check,
    check_one,
    declared_dtype,
    integer,
    refuse_complex,
    type_of,
)
from ..._operands.keys import as_keys
from ..._operands.promotion import common_dtype, to_dtype
from ..._ops.structure import shape as ops
from ..._ops.structure.iota import iota
from ..._ops.structure.numbers import large_integer, scalar_of
from ..._trace.refs import content_type
from ..._trace.trace import Tracer, recorder
from ..._transform.manual_axes import vary_also
from ..._transform.sharding_types import reshard_like
from ..._xla import transfer_guard
from ..._xla.array import put
from ..._xla.devices import Device
from ..._xla.placement import sharding_of_new
from ..._xla.sharding import Sharding
from ...typing import Array, ArrayLike, DTypeLike, Shape
from .._elementwise.binary import add, divide, multiply, subtract
from .._elementwise.choose import where
from .._elementwise.unary import floor
from .._manipulation.broadcasting import broadcast_arrays, broadcast_to
from .._manipulation.shapes import expand_dims, reshape
from .from_data import asarray

# --- filled with a value --------------------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames=("shape", "dtype", "weak"))
def _full(value: Any, shape: tuple[int, ...], dtype: Any, weak: bool = False) -> Any:
    value = to_dtype(value, dtype, weak)
    return broadcast_to(value, shape) if shape != type_of(value).shape else ops.as_array_or_tracer(value)


def _filled(function: str, shape: Shape, value: Any, dtype: Any, device: Any = None, weak: bool = False) -> Any:
    if dtypes.is_extended(dtype):
        return placed(broadcast_to(as_keys(function, value, dtype), _lengths(function, shape)), device)
    refuse_complex(function, value, dtype)
    value = large_integer(value, dtype)
    lengths = _lengths(function, shape)
    if (
        isinstance(device, Sharding)
        and device.num_devices > 1
        and math.prod(lengths) > _MAX_COPIED_SIZE
        and recorder() is None
    ):
        return _full_over(device)(value, shape=lengths, dtype=dtype, weak=weak)
    # Only 0 and 1, which need no rounding: XLA rounds other numbers, as it does everywhere.
    if type(value) in (int, float) and value in (0, 1) and _faster_on_host(lengths, dtype):
        out = _put(np.full(lengths, value, dtype), weak)
    else:
        out = _full(value, shape=lengths, dtype=dtype, weak=weak)
    return placed(out, device)


def _put(x: np.ndarray, weak: bool = False) -> Any:
    """The array with these elements, placed as a program places a result."""
    sharding, committed = sharding_of_new(x.ndim)
    return put(x, shaped(x.shape, x.dtype, weak), sharding, committed=committed)


#: The number of elements up to which arrays are copied from the host. Larger ones are computed on their devices.
_MAX_COPIED_SIZE = 1 << 16


@functools.lru_cache(64)
def _full_over(sharding: Sharding) -> Any:
    return jit(_full.__wrapped__, static_argnames=("shape", "dtype", "weak"), out_shardings=sharding)


def _faster_on_host(shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether to copy a new array from the host: for small arrays that is as fast as a compiled program, and nothing
    has to be compiled for the shape.
    """
    if current_trace.get() is not None or math.prod(shape) > _MAX_COPIED_SIZE:
        return False
    return (dtype.isbuiltin == 1 or dtype == dtypes.bfloat16) and transfer_guard.is_allowed("host_to_device")


def _lengths(function: str, shape: Shape) -> tuple[int, ...]:
    """The `shape` argument of a user as a tuple."""
    lengths = as_shape(shape, function)
    if any(n < 0 for n in lengths):
        raise ShapeError(f"{function}: an array cannot have a negative length, got {lengths}", shapes=[lengths])
    return lengths


def _default(dtype: Any, function: str, shape: Any = None) -> Any:
    """The `dtype` argument of a user, or the default dtype. `shape` is the shape argument of the same call, if any."""
    if type(dtype) is int and type(shape) is int:
        raise DtypeError(
            f"Cannot interpret '{dtype}' as a data type. Did you accidentally write "
            f"`phlox.numpy.{function}({shape}, {dtype})` when you meant `phlox.numpy.{function}(({shape}, {dtype}))`?",
            instead="one tuple for the shape",
            dtype=dtype,
        )
    return dtypes.float_dtype(dtype, function)


def zeros(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of zeros (as ``numpy.zeros``).

    Args:
      shape: shape of the array: a sequence of integers, or one integer for a vector.
      dtype: dtype of the elements; by default float32 (float64 in x64 mode).
      device: device or sharding on which the array is placed.

    Returns:
      An array of `shape` and `dtype`.

    Raises:
      ShapeError: a length is negative.

    >>> zeros((2,))
    Array([0., 0.], dtype=float32)
    """
    return _filled("zeros", shape, 0, _default(dtype, "zeros", shape), device)


@docs_from(zeros)
def ones(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array of ones (as ``numpy.ones``).

    >>> ones(2, "int32")
    Array([1, 1], dtype=int32)
    """
    return _filled("ones", shape, 1, _default(dtype, "ones", shape), device)


@docs_from(zeros)
def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An uninitialized array; its elements are zeros, but programs should not rely on that (as ``numpy.empty``).

    >>> empty(2).shape
    (2,)
    """
    return _filled("empty", shape, 0, _default(dtype, "empty", shape), device)


@docs_from(zeros)
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """An array filled with `fill_value` (as ``numpy.full``).

    Args:
      fill_value: number, or array that broadcasts to `shape`.
      dtype: dtype of the elements; by default the dtype of `fill_value`.

    Raises:
      ShapeError: a length is negative, or `fill_value` does not broadcast to `shape`.
      ArgumentError: `fill_value` is a complex Python number, and `dtype` is real.

    >>> full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    fill_value = check_one("full", fill_value)
    aval = type_of(fill_value)
    out_dtype = aval.dtype if dtype is None else dtypes.user_dtype(dtype, "full")
    return _filled("full", shape, fill_value, out_dtype, device, weak=dtype is None and aval.weak_type)


def _like(function: str, a: Any, value: Any, dtype: Any, shape: Shape | None, device: Any) -> Any:
    a = content_type(a) or a
    if isinstance(a, ShapedArray):
        model: Any = a
    # An array of an object that has a dtype and a shape would be computed in vain.
    elif (declared := declared_dtype(a)) is not None and hasattr(a, "shape"):
        model = shaped(as_shape(a.shape, function), declared)
    else:
        model = check_one(function, a)
    aval = model if isinstance(model, ShapedArray) else type_of(model)
    out_dtype = dtype_like(a, aval) if dtype is None else dtypes.user_dtype(dtype, function)
    # As in JAX, an array like a ShapeDtypeStruct (whose weak type is for tracing only) is strongly typed, and so is one
    # that is filled with an array.
    weak = dtype is None and aval.weak_type and not isinstance(a, ShapeDtypeStruct) and not type_of(value).shape
    lengths = aval.shape if shape is None else as_shape(shape, function)
    # As in JAX, an array like a concrete one gets its sharding.
    if device is None and not weak and model is not aval:
        device = own_sharding(model, lengths)
    out = _filled(function, lengths, value, out_dtype, device, weak)
    if not aval.annotated:
        return out
    # As in JAX, it varies between the devices of a `shard_map` as `a` does, whatever its shape.
    out = vary_also(out, aval.vma)
    return out if shape is not None or device is not None else reshard_like(out, aval)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Zeros of the shape and dtype of `a` (as ``numpy.zeros_like``).

    Args:
      a: array or number; its values are not read.
      dtype: dtype of the elements; by default the dtype of `a`.
      shape: shape of the result: a sequence of integers or one integer; by default the shape of `a`.
      device: device or sharding on which the array is placed; by default where `a` lies, if it is committed there and
        has the shape of the result.

    Returns:
      An array of `shape` and `dtype`.

    >>> zeros_like(np.array([1, 2]))
    Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device)


@docs_from(zeros_like)
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Ones of the shape and dtype of `a` (as ``numpy.ones_like``).

    >>> ones_like(np.array([1.5]))
    Array([1.], dtype=float32)
    """
    return _like("ones_like", a, 1, dtype, shape, device)


@docs_from(zeros_like)
def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
) -> Array:
    """An uninitialized array like `prototype`; its elements are zeros (as ``numpy.empty_like``).

    Args:
      prototype: array or number; its values are not read.
      dtype: dtype of the elements; by default the dtype of `prototype`.
      shape: shape of the result: a sequence of integers or one integer; by default the shape of `prototype`.

    >>> empty_like(np.array([1, 2])).dtype
    dtype('int32')
    """
    return zeros_like(prototype, dtype, shape, device=device)


@docs_from(zeros_like)
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """`fill_value` in the shape and dtype of `a` (as ``numpy.full_like``).

    Args:
      fill_value: number, or array that broadcasts to the shape.

    Raises:
      ArgumentError: `fill_value` is a complex Python number, and the dtype is real.

    >>> full_like(np.array([1, 2]), 9)
    Array([9, 9], dtype=int32)
    """
    return _like("full_like", a, check_one("full_like", fill_value), dtype, shape, device)


# --- sequences ------------------------------------------------------------------------------------------


def _check_arange(start: Any, stop: Any, step: Any) -> None:
    """Refuses arguments of `arange` that are traced, are no scalars or are complex."""
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if value is None or is_symbolic(value):
            continue
        if isinstance(value, Tracer) and value.concrete() is None:
            what = "stop" if stop is None else name
            value._refuse(
                ConcretizationTypeError,
                f"Abstract tracer value encountered where concrete value is expected. It arose in the jnp.arange "
                f"argument '{what}': the length",
                "a Python number; mark it static with static_argnums",
            )
        aval = typeof_value(value)
        if aval is None:
            raise ArgumentError(f"arange: {name} is {value!r} of type {type(value).__name__}", instead="a number")
        if aval.shape != ():
            raise ShapeError(f"arange: arguments must be scalars; got {name}={aval.short}", shapes=[aval.shape])
        if dtypes.kind(aval.dtype) == "c":
            raise DtypeError(
                f"Passing complex start/stop/step to jnp.arange is no longer supported: {name} is {value!r}",
                instead="an int or a float",
            )


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Numbers from `start` up to `stop`, which is excluded, in steps of `step` (as ``numpy.arange``).

    The arguments decide the length and must not be traced.

    Args:
      start: first value; if it is the only argument, it is taken as `stop`, and the first value is 0.
      stop: end of the interval, which is not included.
      step: difference between successive values, by default 1; negative for descending values.
      dtype: dtype of the result; by default the promoted dtype of the arguments.
      device: device or sharding on which the array is placed.

    Returns:
      A vector of ``ceil((stop - start) / step)`` elements, or of none where that is negative.

    Raises:
      ConcretizationTypeError: an argument is traced.
      ShapeError: an argument is not a scalar.
      DtypeError: an argument is complex, or the dtype is bool.
      ArgumentError: an argument is not a number.
      NumberRangeError: the arguments are Python integers, and `dtype` does not hold an element.

    >>> arange(3), arange(1.0, 2.0, 0.5)
    (Array([0, 1, 2], dtype=int32), Array([1. , 1.5], dtype=float32))
    """
    _check_arange(start, stop, step)
    if any(map(is_symbolic, (start, stop, step))):
        return placed(_arange_symbolic(start, stop, step, dtype), device)
    numbers: list[Any] = [v.concrete() if isinstance(v, Tracer) else v for v in (start, stop, step)]
    start, stop, step = numbers
    if stop is None:
        start, stop = 0, start
    step_given = step is not None
    step = step if step_given else 1
    parts: list[Any] = [np.asarray(v) if not isinstance(v, int | float) else v for v in (start, stop, step)]
    if dtype is None:
        out_dtype, _ = common_dtype(*(v for v in numbers if v is not None))
    else:
        out_dtype = dtypes.user_dtype(dtype, "arange")
    if out_dtype == dtypes.bool_:
        raise DtypeError("arange: bools cannot be counted", instead="dtype=int")
    n = max(0, math.ceil((parts[1] - parts[0]) / parts[2]))
    if n and dtypes.kind(out_dtype) in "iu" and all(type(part) is int for part in parts):
        for end in (parts[0], parts[0] + (n - 1) * parts[2]):
            if not dtypes.holds(out_dtype, end):
                raise dtypes.too_large(end, out_dtype, "arange: ")
    if parts[0] == 0 and parts[2] == 1:
        if _faster_on_host((n,), out_dtype):
            out = _put(np.arange(n).astype(out_dtype))
        else:
            out = _iota(size=n, dtype=out_dtype)
    else:
        # start + step * i, rounded after each operation; np.arange may differ in the last digit.
        # As in JAX, to the bit: multiples of a step are computed in float32 for narrower floats.
        narrow = step_given and dtypes.kind(out_dtype) == "f" and out_dtype.itemsize < 4
        working = np.dtype(np.float32) if narrow else out_dtype
        first, by = (np.asarray([part]).astype(working) for part in (parts[0], parts[2]))
        if recorder() is None:
            out = asarray((first + by * np.arange(n).astype(working)).astype(out_dtype))
        else:  # computed in the program, so that no constant of that length is in it
            counted = _iota(size=n, dtype=working)
            counted = multiply(by[0], counted) if step_given else counted
            out = to_dtype(add(first[0], counted), out_dtype)
    return placed(out, device)


def _arange_symbolic(start: Any, stop: Any, step: Any, dtype: DTypeLike | None) -> Any:
    """`arange` of symbolic dimensions."""
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if not is_symbolic(value) and not isinstance(value, int | np.integer):
            raise ArgumentError(f"arange: {name} is {value!r}, and another argument is a symbolic dimension")
    out_dtype = dtypes.user_dtype(int if dtype is None else dtype, "arange")
    size = max_dim(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    return to_dtype(add(start, multiply(step, _iota(size=size, dtype=dtypes.user_dtype(int, "arange")))), out_dtype)


@functools.partial(jit, inline=True, static_argnames=("size", "dtype"))
def _iota(size: int, dtype: Any) -> Any:
    return iota(dtype=dtype, shape=(size,), dimension=0)


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop` (as ``numpy.linspace``), along a new `axis`.

    Args:
      start, stop: first and last value; arrays broadcast against each other.
      num: number of values to generate, including both ends.
      endpoint: False excludes `stop`; then the step is ``(stop - start) / num``.
      retstep: True also returns the step between successive values.
      dtype: dtype of the result; by default the promoted dtype, a float one for integers. For integer dtypes, values
        are rounded down.
      axis: position of the new axis in the result.
      device: device or sharding on which the array is placed.

    Returns:
      An array of the broadcast shape with an axis of length `num`; with `retstep` a pair of it and the step, which is
      nan where there are no successive values.

    Raises:
      ShapeError: `num` is negative.

    >>> linspace(0.0, 1.0, 3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    start, stop = check("linspace", start, stop)
    out_dtype = dtypes.optional_dtype(dtype, "linspace")
    (count,) = _lengths("linspace", integer("linspace", "num", num))
    out, *step = _linspace(
        start,
        stop,
        num=count,
        endpoint=endpoint,
        retstep=bool(retstep),
        dtype=out_dtype,
        axis=integer("linspace", "axis", axis),
    )
    return (placed(out, device), *step) if retstep else placed(out, device)


@functools.partial(jit, inline=True, static_argnames=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int) -> tuple[Any, ...]:
    if dtype is None:
        dtype = dtypes.to_inexact(common_dtype(start, stop)[0])
    computed = dtypes.to_inexact(dtype)
    start, stop = (to_dtype(v, computed) for v in (start, stop))
    first, last = broadcast_arrays(start, stop)
    rank = type_of(first).ndim + 1
    at = canonical_axis(axis, rank, "linspace")
    span = subtract(stop, start)
    if num == 0:
        # As in NumPy, the step of fewer than two numbers is nan.
        shape = type_of(first).shape
        out, step = _full(0, shape=(*shape[:at], 0, *shape[at:]), dtype=computed), scalar_of(np.nan, computed)
    elif num == 1:
        out, step = expand_dims(first, at), scalar_of(np.nan, computed) if endpoint else span
    else:
        steps = num - 1 if endpoint else num
        step = divide(span, to_dtype(steps, computed))
        # Interpolates between the ends instead of adding steps, and takes `stop` itself as the last number.
        real = dtypes.real_part(computed)
        number = reshape(
            iota(dtype=real, shape=(steps,), dimension=0), tuple(steps if i == at else 1 for i in range(rank))
        )
        part = to_dtype(divide(number, to_dtype(steps, real)), computed)
        one = scalar_of(1, computed)
        # `stop` is divided first: linspace(0, 25, 6) then consists of integers, as 25 / 5 is exact and 3 / 5 is not.
        out = add(
            multiply(expand_dims(first, at), subtract(one, part)),
            multiply(divide(expand_dims(last, at), to_dtype(steps, computed)), to_dtype(number, computed)),
        )
        if endpoint:
            final = expand_dims(last, at)
            if not surely_at_least(num, 2):  # a symbolic length, for which `num == 1` is False
                final = where(value_of(num) == 1, expand_dims(first, at), final)
            out = ops.concatenate(out, final, dimension=at)
    if dtypes.kind(dtype) in "iu":
        # Rounded down, as in NumPy: conversion to integers would round towards zero.
        out = floor(out)
    out = to_dtype(out, dtype)
    # A step that is not asked for may be nan, which the flag `debug_nans` would report.
    return (out, ops.as_array_or_tracer(step)) if retstep else (out,)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *, device: Device | Sharding | None = None
) -> Array:
    """A matrix with ones on a diagonal, and zeros elsewhere (as ``numpy.eye``).

    Args:
      N: number of rows.
      M: number of columns, by default `N`.
      k: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it; may
        be traced.
      dtype: dtype of the elements; by default float32 (float64 in x64 mode).
      device: device or sharding on which the array is placed.

    Returns:
      An array of shape ``(N, M)``.

    Raises:
      ShapeError: a length is negative.
      ArgumentError: `k` is not an integer.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    rows, columns = _lengths("eye", (N, N if M is None else M))
    out_dtype, k = _default(dtype, "eye"), _diagonal("eye", k)
    if not isinstance(k, Tracer) and _faster_on_host((rows, columns), out_dtype):
        out = _put(np.eye(rows, columns, k, out_dtype))
    else:
        out = _diagonal_mask(rows=rows, columns=columns, k=k, dtype=out_dtype, is_below=False)
    return placed(out, device)


def _diagonal(function: str, k: Any) -> Any:
    """The number of a diagonal, which may be traced."""
    aval = typeof_value(k) if isinstance(k, Tracer) else None
    if aval is not None and aval.shape == () and dtypes.kind(aval.dtype) in "iu":
        return k
    return integer(function, "k", k)


@functools.partial(jit, inline=True, static_argnames=("rows", "columns", "dtype", "is_below"))
def _diagonal_mask(rows: int, columns: int, k: Any, dtype: Any, is_below: bool) -> Any:
    """Ones on a diagonal, and below it if `is_below`."""
    i = iota(dtype=dtypes.int32, shape=(rows, columns), dimension=0) + k
    j = iota(dtype=dtypes.int32, shape=(rows, columns), dimension=1)
    return to_dtype(i >= j if is_below else i == j, dtype)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The n by n identity matrix (as ``numpy.identity``).

    Args:
      n: number of rows and columns.
      dtype: dtype of the elements; by default float32 (float64 in x64 mode).

    Returns:
      An array of shape ``(n, n)``.

    Raises:
      ShapeError: `n` is negative.

    >>> identity(1)
    Array([[1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


@docs_from(eye)
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal, and zeros above it (as ``numpy.tri``).

    Args:
      dtype: dtype of the elements; by default float32, in 64-bit mode float64.

    >>> tri(2)
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    rows, columns = _lengths("tri", (N, N if M is None else M))
    out_dtype = dtypes.user_dtype(float if dtype is None else dtype, "tri")
    return _diagonal_mask(rows=rows, columns=columns, k=_diagonal("tri", k), dtype=out_dtype, is_below=True)
