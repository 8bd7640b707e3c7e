"""Values on the host as arrays on a device: NumPy arrays are copied, small numbers come from a bounded store."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import config
from .._base.errors import UnexpectedTracerError
from .._ir.avals import shaped, typeof_value
from .._trace.trace import Tracer, check_live, not_an_array
from .array import Array, ArrayImpl, put

_SCALAR_LIMIT = 512
_scalars: dict[Any, Array] = {}


def as_array(x: Any) -> Array:
    """A concrete array of what `x` is: an array, a NumPy array, or a number."""
    kind = type(x)
    if kind is ArrayImpl:
        return x
    if kind in (float, int, bool, complex):
        return scalar(x)
    if isinstance(x, Tracer):
        check_live(x)
        raise UnexpectedTracerError(
            f"a traced value of type {x.aval.short} reached an operation outside of its transformation",
            instead="return the value from the transformed function",
            aval=x.aval,
        )
    aval = typeof_value(x)
    if aval is None:
        raise not_an_array(x, "an operand")
    return put(np.asarray(x, aval.dtype), aval)


def scalar(x: Any) -> Array:
    """A Python number as a weakly typed device array, out of a bounded store."""
    settings = config.current()
    # 0.0 and -0.0 are equal as keys and must not be confused.
    key = (x, type(x), settings.enable_x64, settings.executed, str(x) if x == 0 else None)
    found = _scalars.get(key)
    if found is None:
        aval = typeof_value(x)
        found = put(np.asarray(x, aval.dtype), shaped((), aval.dtype, aval.weak_type))  # type: ignore[union-attr]
        if settings.transfer_guard_host_to_device in (None, "allow"):  # else each use is a transfer to be told of
            if len(_scalars) >= _SCALAR_LIMIT:
                _scalars.clear()
            _scalars[key] = found
    return found
