"""Converts host values to device arrays: NumPy arrays are copied; arrays for Python numbers as operands are cached.

Cached arrays are only read by programs and never returned to users, who could delete or donate them.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from .._base import config
from .._base.errors import ArgumentError, UnexpectedTracerError
from .._base.interning import clear_if_full, forgettable
from .._ir import dtypes
from .._ir.avals import typeof_value
from .._ir.jaxpr import Literal
from .._trace.trace import Tracer, check_live, not_an_array
from . import transfer_guard
from .array import Array, ArrayImpl, put

# Few distinct numbers occur in a program. A loop over numbers that all differ would fill a larger cache in vain.
_SCALAR_LIMIT = 512
_PAIR = struct.Struct("dd")
_scalars: dict[Any, Array] = forgettable({})


def operand(x: Any) -> Array:
    """`x` as a concrete array that a program only reads. It may be a cached one: use `as_array` in all other cases."""
    kind = type(x)
    if kind is ArrayImpl:
        return x
    if kind in (float, int, bool, complex):
        return scalar(x)
    return as_array(x)


def as_array(x: Any) -> Array:
    """`x` as a concrete array; a new one if `x` is a NumPy array or a number."""
    if type(x) is ArrayImpl:
        return x
    if isinstance(x, Tracer):
        check_live(x)
        raise UnexpectedTracerError(
            f"a traced value of type {x.aval.short} reached an operation outside of its transformation",
            instead="return the value from the transformed function",
            aval=x.aval,
            live=True,
        )
    aval = typeof_value(x)
    if aval is None:
        raise not_an_array(x, "an operand")
    return put(as_numpy(x, aval.dtype), aval)


def as_numpy(x: Any, dtype: Any) -> np.ndarray:
    """A NumPy array or a number as a NumPy array of `dtype`, the dtype that it has on a device."""
    # An object with a type and no value, as `ShapeDtypeStruct`.
    if hasattr(x, "aval"):
        raise ArgumentError(
            f"A {type(x).__name__} does not have a value and cannot be used as a constant in a JAX function: {x!r}",
            instead="an array; or phlox.eval_shape(function, x), for the types of results",
            value=x,
        )
    try:
        return np.asarray(x, dtype)
    except OverflowError:  # NumPy's error does not name the user's line
        raise dtypes.too_large(x, dtype) from None


def as_literal(array: Array) -> Literal | None:
    """A scalar array that a function closes over, as a literal for its Jaxpr.

    None if the array has axes, was placed on a device, consists of PRNG keys, or cannot be read: because it is deleted
    or because transfers are guarded. Functions that close over different arrays then share a program. In JAX arrays
    with axes are literals too; XLA computes with constants in another order than with arguments.
    """
    aval = array.aval
    is_argument = aval.shape and aval.size > config.current().jaxlike_lowering_size
    # An array that was placed on purpose is an argument, or the program would move it.
    if is_argument or array._placement is not aval or dtypes.kind(aval.dtype) not in "biufc":
        return None
    if array.is_deleted() or not transfer_guard.is_allowed("device_to_host"):
        return None
    # Reading waits for the array, once for each program that is lowered.
    return Literal(np.asarray(array), aval)


def scalar(x: Any) -> Array:
    """A Python number as a cached device array; weakly typed, except bool."""
    settings = config.current()
    kind = type(x)
    # Zeros and complex numbers are keyed by text or bits: 0.0 == -0.0, but they are different arrays.
    bits = _PAIR.pack(x.real, x.imag) if kind is complex else x or str(x)
    # The array depends on these settings: its dtype on `enable_x64`, its device on flags in `executed`.
    key = (bits, kind, settings.enable_x64, settings.execution_fingerprint)
    array = _scalars.get(key)
    if array is None:
        array = as_array(x)
        if settings.transfer_guard_host_to_device in (None, "allow"):  # else each use must be checked as a transfer
            clear_if_full(_scalars, _SCALAR_LIMIT)[key] = array
    return array
