"""`ravel_multi_index`: positions along each axis as positions in the flattened array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import ConcretizationTypeError, DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.promotion import promote
from ..._operands.checks import as_shape, check, type_of
from ..._operands.promotion import to_dtype
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.binary import remainder
from .._elementwise.choose import clip
from .._elementwise.unary import is_kind
from .rows import unstack_rows


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Indices along each axis converted to flat indices into an array of shape `dims` (as ``numpy.ravel_multi_index``).

    Args:
      multi_index: sequence of integer arrays with the indices along each axis, which broadcast; or one array whose rows
        are these.
      dims: shape of the array, a sequence of integers.
      mode: treatment of out-of-bounds indices: 'raise' raises an error (not possible under `jit`), 'clip' moves them to
        the nearest end, 'wrap' wraps them around, 'ignore' computes with them unchanged.
      order: order of the flattened array: 'C' with the last axis index changing fastest, 'F' with the first.
      dtype: integer dtype of the result, wide enough for the number of elements; by default the promoted dtype of the
        indices.

    Returns:
      An integer array of the broadcast shape.

    Raises:
      ShapeError: the number of index arrays differs from the number of axes.
      OptionError: `mode` or `order` is not one of the listed names, or with mode 'raise' an index is out of bounds.
      DtypeError: indices are not integers, or `dtype` is not an integer dtype or too narrow.
      ConcretizationTypeError: an index is traced, with mode 'raise'.

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
    Array([2, 3], dtype=int32)
    """
    listed = isinstance(multi_index, tuple | list)
    parts = multi_index if listed else unstack_rows(*check("ravel_multi_index", multi_index))
    parts = check("ravel_multi_index", *parts)
    shape = as_shape(dims, "ravel_multi_index")
    if len(parts) != len(shape):
        raise ShapeError(f"ravel_multi_index: {len(parts)} arrays of positions for the shape {shape}")
    if mode not in ("raise", "clip", "wrap", "ignore"):
        raise OptionError(f"ravel_multi_index: invalid mode={mode!r}", instead="'raise', 'clip', 'wrap' or 'ignore'")
    if order not in ("C", "F"):
        raise OptionError(f"ravel_multi_index: order={order!r}", instead="'C' or 'F'")
    for x in parts:
        if not is_kind(x, "iu"):
            raise DtypeError(f"ravel_multi_index: positions must be integers, got {type_of(x).short}")
    if dtype is None:
        out_dtype, _ = promote(
            ((dtypes.canonical(dtypes.int64), True), *((a.dtype, a.weak_type) for a in map(type_of, parts)))
        )
    else:
        out_dtype = dtypes.user_dtype(dtype, "ravel_multi_index")
    if dtypes.kind(out_dtype) not in "iu":
        raise DtypeError(f"ravel_multi_index: dtype={out_dtype.name} is not an integer type", instead="dtype=int")
    # The largest result is the position of the last element.
    if math.prod(shape) - 1 > dtypes.iinfo(out_dtype).max:
        raise DtypeError(
            f"ravel_multi_index: dtype={out_dtype.name} not large enough to hold flattened index for dims={shape}",
            instead="a wider dtype, for example 'int32'",
            dtype=out_dtype,
        )
    total: Any = to_dtype(0, out_dtype)
    for i, (x, n) in enumerate(zip(parts, shape, strict=True)):
        if mode == "raise":
            # A compiled program cannot raise for the values of a traced index.
            if isinstance(x, Tracer):
                use = (
                    "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. "
                    "Use mode='wrap' or mode='clip' instead. It"
                )
                x._refuse(ConcretizationTypeError, use, "mode='wrap' or mode='clip'")
            if ((np.asarray(x) < 0) | (np.asarray(x) >= n)).any():
                raise OptionError(
                    f"invalid entry in coordinates array: ravel_multi_index of positions outside of axis {i} of the "
                    f"shape {shape}"
                )
        x = clip(x, 0, n - 1) if mode == "clip" else remainder(x, n) if mode == "wrap" else x
        below = shape[i + 1 :] if order == "C" else shape[:i]
        total = total + to_dtype(x, out_dtype) * math.prod(below)
    return as_array_or_tracer(total)
