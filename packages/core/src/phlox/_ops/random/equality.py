"""Whether elements are equal, of numbers or of PRNG keys, which are compared word by word."""

from __future__ import annotations

from typing import Any

from ..._ir import dtypes
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..elementwise.families import broadcast_shape, repeat_to, same_dtype
from ..elementwise.logic import eq, ne
from ..reductions.reduce import reduce_and, reduce_or
from .keys import random_unwrap


def equal(x: Any, y: Any) -> Any:
    """Elementwise x == y, for operands of one dtype."""
    return _compared(eq, reduce_and, x, y)


def not_equal(x: Any, y: Any) -> Any:
    """Elementwise x != y, for operands of one dtype."""
    return _compared(ne, reduce_or, x, y)


def _compared(primitive: Primitive, reduce: Primitive, x: Any, y: Any) -> Any:
    avals = typeof(x), typeof(y)
    if not all(dtypes.is_extended(aval.dtype) for aval in avals):
        return primitive.bind(x, y)
    same_dtype(primitive.name, avals)
    shape = broadcast_shape(primitive.name, avals)
    words = primitive.bind(*(random_unwrap(repeat_to(keys, shape)) for keys in (x, y)))
    return reduce.bind(words, axes=(len(shape),))
