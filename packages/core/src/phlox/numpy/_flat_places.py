"""Positions in an array and in the flattened array: one number or one for each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.errors import ConcretizationTypeError, DtypeError, OptionError, ShapeError
from .._ir import dtypes
from .._ops.shape import own
from .._trace.trace import Tracer
from ._binary import remainder
from ._choose import clip
from ._indexing import unstack_rows
from ._promote import check, promote_dtypes, to_dtype, type_of
from ._shapes import as_shape
from ._unary import is_kind


def ravel_multi_index(
    multi_index: Any, dims: Sequence[int], mode: str = "raise", order: str = "C", *, dtype: Any = None
) -> Any:
    """The flat positions in an array of shape `dims` of positions given for each axis (as ``numpy.ravel_multi_index``).

    Args:
      mode: what happens to positions outside: 'raise' (for values that are known, not under `jit`), 'clip' or 'wrap'.
      order: 'F' counts with the first axis changing fastest.
      dtype: an integer dtype for the result.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
    Array([2, 3], dtype=int32)
    """
    listed = isinstance(multi_index, tuple | list)
    parts = multi_index if listed else unstack_rows(*check("ravel_multi_index", multi_index))
    parts = check("ravel_multi_index", *parts)
    shape = as_shape(dims, "ravel_multi_index")
    if len(parts) != len(shape):
        raise ShapeError(f"ravel_multi_index: {len(parts)} arrays of positions for the shape {shape}")
    if mode not in ("raise", "clip", "wrap"):
        raise OptionError(f"ravel_multi_index: mode={mode!r}", instead="'raise', 'clip' or 'wrap'")
    if order not in ("C", "F"):
        raise OptionError(f"ravel_multi_index: order={order!r}", instead="'C' or 'F'")
    for x in parts:
        if not is_kind(x, "iu"):
            raise DtypeError(f"ravel_multi_index: positions must be integers, got {type_of(x).short}")
    if dtype is not None:
        parts = [to_dtype(x, dtypes.user_dtype(dtype, "ravel_multi_index")) for x in parts]
    parts = promote_dtypes(*parts)
    total: Any = 0
    for i, (x, n) in enumerate(zip(parts, shape, strict=True)):
        if mode == "raise":
            if isinstance(x, Tracer):
                x._refuse(ConcretizationTypeError, "ravel_multi_index with mode='raise'", "mode='clip' or 'wrap'")
            if ((np.asarray(x) < 0) | (np.asarray(x) >= n)).any():
                raise OptionError(f"ravel_multi_index: positions outside of axis {i} of the shape {shape}")
        x = clip(x, 0, n - 1) if mode == "clip" else remainder(x, n) if mode == "wrap" else x
        below = shape[i + 1 :] if order == "C" else shape[:i]
        total = total + x * math.prod(below)
    return own(total)
