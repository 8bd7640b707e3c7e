"""Keys as the value of arrays that `full`, `zeros_like` and their like fill."""

from __future__ import annotations

from typing import Any

from .._base.errors import DtypeError
from .._ir import dtypes
from .._ops.random.keys import KeyDtype, random_wrap
from .._ops.structure.shape import broadcast_to
from .checks import type_of
from .promotion import to_dtype


def as_keys(function: str, value: Any, dtype: Any) -> Any:
    """`value` as keys of this dtype. An integer becomes the key whose words are all equal to it."""
    aval = type_of(value)
    if aval.dtype == dtype:
        return value
    if not isinstance(dtype, KeyDtype) or dtypes.kind(aval.dtype) not in "biu" or aval.shape:
        raise DtypeError(f"{function}: arrays of {dtype} cannot be filled with {aval.short}", dtype=dtype)
    return random_wrap(broadcast_to(to_dtype(value, dtypes.uint32), dtype.impl.key_shape), impl=dtype.impl)
