"""Comparisons of arrays: isclose, allclose, array_equal, array_equiv."""

from __future__ import annotations

import functools

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import common_dtype, promoted, to_dtype
from ..._ops.elementwise import arithmetic as e, logic
from ...typing import Array, ArrayLike
from .._creation.from_data import asarray, listed
from .._elementwise.comparisons import equal
from .._elementwise.unary import isfinite, isnan
from .._manipulation.broadcasting import broadcast_shapes
from .._statistics.reductions import all


@jit(static_argnames="equal_nan")
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Where |a - b| <= atol + rtol |b|, elementwise (as ``numpy.isclose``).

    Integers are compared as floats. Equal numbers are close; infinities are close to equal ones only.

    Args:
      a, b: arrays or numbers that broadcast against each other.
      rtol: relative tolerance.
      atol: absolute tolerance.
      equal_nan: True treats two nan as close.

    Returns:
      An array of bools, of the broadcast shape.

    >>> isclose(1.0, 1.0 + 1e-7)
    Array(True, dtype=bool)
    """
    a, b = check("isclose", a, b)
    if any(dtypes.is_extended(type_of(x).dtype) for x in (a, b)):  # PRNG keys
        return equal(a, b)
    dtype, _ = common_dtype(a, b)
    dtype = dtype if dtypes.is_inexact(dtype) else dtypes.canonical(dtypes.float64)
    a, b = promoted("isclose", to_dtype(a, dtype), to_dtype(b, dtype))
    real = dtypes.real_part(dtype)
    bound = e.add(to_dtype(atol, real), e.mul(to_dtype(rtol, real), e.abs_(b)))
    near = logic.le(e.abs_(e.sub(a, b)), bound)
    finite = logic.and_(isfinite(a), isfinite(b))
    out = logic.or_(logic.eq(a, b), logic.and_(finite, near))
    return logic.or_(out, logic.and_(isnan(a), isnan(b))) if equal_nan else out


@functools.partial(jit, inline=True, static_argnames="equal_nan")
@docs_from(isclose)
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether all elements are close in the sense of `isclose` (as ``numpy.allclose``).

    Returns:
      A bool array of shape ().

    >>> jnp.allclose(jnp.ones(2), 1.0)
    Array(True, dtype=bool)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


@jit(inline=True, static_argnames="equal_nan")
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have equal shapes and the same elements (as ``numpy.array_equal``).

    Args:
      a1, a2: arrays, or lists of numbers.
      equal_nan: True treats two nan as equal.

    Returns:
      A bool array of shape ().

    >>> jnp.array_equal(jnp.arange(2), jnp.array([0, 1]))
    Array(True, dtype=bool)
    """
    a1, a2 = listed("array_equal", a1, a2)
    if type_of(a1).shape != type_of(a2).shape:
        return asarray(np.False_)
    same = equal(a1, a2)
    if equal_nan:
        same = logic.or_(same, logic.and_(isnan(a1), isnan(a2)))
    return all(same)


@jit(inline=True)
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays have the same elements after broadcasting (as ``numpy.array_equiv``).

    Args:
      a1, a2: arrays, or lists of numbers.

    Returns:
      A bool array of shape (); False where the shapes do not broadcast.

    >>> jnp.array_equiv(jnp.ones(2), 1.0)
    Array(True, dtype=bool)
    """
    a1, a2 = listed("array_equiv", a1, a2)
    try:
        broadcast_shapes(type_of(a1).shape, type_of(a2).shape)
    except ShapeError:
        return asarray(np.False_)
    return all(equal(a1, a2))
