"""Linear algebra (``numpy.linalg``): norms."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._api.jit import jit
from .._base.errors import OptionError, ShapeError
from .._ir import dtypes
from .._ops import elementwise as e
from ._promote import canonical_axis, check, promote_inexact, to_dtype, type_of
from ._reductions import max, min, sum

__all__ = ["norm"]


@functools.partial(jit, static_argnames=("ord", "axis", "keepdims"))
def _norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    (x,) = promote_inexact(x)
    rank = type_of(x).ndim
    if axis is None and (ord is None or (ord == 2 and rank == 1) or (ord in ("fro", "f") and rank == 2)):
        return e.sqrt(sum(_squares(x), None, keepdims=keepdims))
    axes = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(canonical_axis(a, rank, "norm") for a in axes)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ShapeError(f"norm: ord={ord!r} over {len(axes)} axes", instead="one axis for vectors, two for matrices")
    if ord in (None, "fro", "f"):
        return e.sqrt(sum(_squares(x), axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        row, column = axes
        inner, outer = (row, column) if abs(ord) == 1 else (column, row)
        totals = sum(e.abs_(x), inner, keepdims=True)
        out = (max if ord > 0 else min)(totals, outer, keepdims=True)
        return out if keepdims else out.reshape([n for i, n in enumerate(type_of(out).shape) if i not in axes])
    raise OptionError(f"norm: matrix norm ord={ord!r} is not there", instead="None, 'fro', 1, -1, inf or -inf")


def _squares(x: Any) -> Any:
    """|x|² elementwise, a float."""
    return e.real(e.mul(x, e.conj(x))) if dtypes.kind(type_of(x).dtype) == "c" else e.mul(x, x)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if ord == np.inf:
        return max(e.abs_(x), axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min(e.abs_(x), axis, keepdims=keepdims)
    if ord == 0:
        out = sum(x != 0, axis, keepdims=keepdims)
        return to_dtype(out, dtypes.real_part(type_of(x).dtype))
    if ord == 1:
        return sum(e.abs_(x), axis, keepdims=keepdims)
    if ord == 2:
        return e.sqrt(sum(_squares(x), axis, keepdims=keepdims))
    if isinstance(ord, str):
        raise OptionError(f"norm: vector norm ord={ord!r} is not there", instead="a number")
    return sum(e.abs_(x) ** ord, axis, keepdims=keepdims) ** (1.0 / ord)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a vector or matrix (as ``numpy.linalg.norm``).

    Args:
      x: array; integers become floats.
      ord: for vectors any number, inf or -inf (default 2); for matrices 'fro' (default), 1, -1, inf, -inf.
      axis: one axis for vectors, two for matrices; by default the whole array is one vector of its elements.
      keepdims: keep reduced axes with length one.

    >>> import phlox.numpy as jnp
    >>> norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    (x,) = check("norm", x)
    return _norm(x, ord=ord, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
