"""Norms of vectors and matrices, and the condition number."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.errors import OptionError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import canonical_axis, check_one, check_square, hashable, several, type_of
from ..._operands.promotion import promote_inexact, to_dtype
from ..._operands.short_floats import round_to, widen
from ..._ops.elementwise import arithmetic as e
from ...typing import Array, ArrayLike
from .._elementwise.choose import where
from .._elementwise.unary import abs, is_kind, isnan, number
from .._manipulation.shapes import moveaxis
from .._statistics.reductions import any, max, min, sum
from .decompositions import svd
from .polar import nuclear_norm
from .solving import inv

Axis = int | tuple[int, ...] | None


@functools.partial(jit, static_argnames=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The norm of a vector or matrix (as ``numpy.linalg.norm``).

    Args:
      x: array of any shape; integers become floats.
      ord: order of the norm. For vectors: any number, inf or -inf; None is 2. For matrices: 'fro', 'nuc', 1, -1, 2, -2,
        inf or -inf; None is 'fro'.
      axis: axis of the vectors, or pair of axes of the matrices; None uses all axes. If `ord` is None too, `x` is
        flattened to one vector.
      keepdims: True keeps the reduced axes, with length one.

    Returns:
      An array of real floats, without the axes of the vectors or matrices.

    Raises:
      OptionError: `ord` is not an order of norms of vectors or matrices.
      ShapeError: `axis` consists of more than two axes, or of none.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    (x,) = promote_inexact(check_one("norm", x))
    return round_to(_norm(widen(x), ord, axis, keepdims), dtypes.real_part(type_of(x).dtype))


def _norm(x: Any, ord: Any, axis: Axis, keepdims: bool) -> Any:
    rank = type_of(x).ndim
    if axis is None and ord is None:
        return _root(sum(_squares(x), None, keepdims=keepdims))
    axes = tuple(range(rank)) if axis is None else several(axis)
    axes = tuple(canonical_axis(a, rank, "norm") for a in axes)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ShapeError(f"norm: ord={ord!r} over {len(axes)} axes", instead="one axis for vectors, two for matrices")
    return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return _root(sum(_squares(x), axes, keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        row, column = axes
        inner, outer = (row, column) if ord in (1, -1) else (column, row)
        out = _extremum(sum(abs(x), inner, keepdims=True), outer, ord > 0)
    elif ord in ("nuc", 2, -2):
        matrices = moveaxis(x, axes, (-2, -1))
        nuclear = ord == "nuc"
        reduced = nuclear_norm(matrices) if nuclear else _extremum(svd(matrices, compute_uv=False), -1, ord == 2)
        shape = list(type_of(x).shape)
        for axis in axes:
            shape[axis] = 1
        out = reduced.reshape(shape)
    else:
        raise OptionError(
            f"norm: Invalid order {ord!r} for matrix norm.", instead="'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    return out if keepdims else out.reshape([n for i, n in enumerate(type_of(out).shape) if i not in axes])


def _extremum(x: Any, axis: int, largest: bool) -> Any:
    # With 0 as the initial value a matrix without elements has a norm.
    return max(x, axis, keepdims=True, initial=0) if largest else min(x, axis, keepdims=True)


def _squares(x: Any) -> Any:
    """|x|² elementwise; bools count as numbers."""
    x = number(x)
    return e.real(e.mul(x, e.conj(x))) if dtypes.kind(type_of(x).dtype) == "c" else e.mul(x, x)


def _root(total: Any, degree: Any = 2) -> Any:
    """The root of this degree; where `total` is zero its derivative is zero, as that of abs at zero."""
    # The zeros are replaced before the root: reverse mode would multiply its infinite derivative there by 0.
    is_zero = total == 0
    positive = where(is_zero, 1, total)
    root = e.sqrt(positive) if degree == 2 else positive ** (1.0 / degree)
    return where(is_zero, 0 if degree > 0 else np.inf, root)


def _vector_norm(x: Any, ord: Any, axis: Axis, keepdims: bool) -> Any:
    if ord is None or ord == 2:
        # Integers first become floats, as their squares may wrap around.
        return _root(sum(_squares(*promote_inexact(x)), axis, keepdims=keepdims))
    if ord == np.inf:
        return max(abs(x), axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min(abs(x), axis, keepdims=keepdims)
    # "Norm" by name: the number of elements that are not 0
    if ord == 0:
        dtype = type_of(x).dtype
        if not dtypes.is_inexact(dtype):
            raise OptionError(f"vector_norm: ord=0 of {type_of(x).short}", instead="count_nonzero(x)")
        return to_dtype(sum(x != 0, axis, keepdims=keepdims), dtypes.finfo(dtype).dtype)
    if ord == 1:
        return sum(abs(x), axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise OptionError(f"norm: Invalid order {ord!r} for vector norm.", instead="a number such as phlox.numpy.inf")
    return _root(sum(abs(*promote_inexact(x)) ** ord, axis, keepdims=keepdims), ord)


def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: float | str = 2) -> Array:
    """The norm of vectors along some axes, or of all elements as one vector (as ``numpy.linalg.vector_norm``).

    Args:
      x: array of any shape.
      axis: axis or axes of the vectors; None flattens `x` to one vector.
      keepdims: True keeps the reduced axes, with length one.
      ord: order of the norm: any number, inf or -inf; 0 counts the nonzero elements.

    Returns:
      An array without the reduced axes, of a real dtype.

    Raises:
      OptionError: `ord` is a string; or it is 0 and `x` is of an integer dtype.

    >>> jnp.linalg.vector_norm(jnp.array([3.0, 4.0]), ord=1)
    Array(7., dtype=float32)
    """
    return _of_vectors(x, ord, hashable(axis), keepdims)


@functools.partial(jit, inline=True, static_argnames=("axis", "keepdims", "ord"))
def _of_vectors(x: Any, ord: Any, axis: Axis, keepdims: bool) -> Any:
    x = check_one("vector_norm", x)
    result = _vector_norm(widen(x), ord, axis, keepdims)
    return round_to(result, type_of(x).dtype) if is_kind(x, "f") else result


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = "fro") -> Array:
    """The norms of a stack of matrices (as ``numpy.linalg.matrix_norm``).

    Args:
      x: array of shape (..., m, n); integers become floats.
      keepdims: True keeps the last two axes, with length one.
      ord: order of the norm: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.

    Returns:
      An array of real floats of shape (...).

    Raises:
      OptionError: `ord` is not an order of matrix norms.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]), ord=2)
    Array(4., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


@functools.partial(jit, static_argnames=("p",))
def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """The condition numbers of matrices: how much they may enlarge relative errors (as ``numpy.linalg.cond``).

    Args:
      x: array of shape (..., m, n), not empty; of square matrices unless `p` is None, 2 or -2.
      p: order of the norm, as `ord` of `norm`; None and 2 give the ratio of the largest and the smallest singular
        value.

    Returns:
      An array of real floats of shape (...); inf for a singular matrix that is not all zeros.

    Raises:
      ShapeError: `x` has fewer than two axes, empty matrices, or matrices that are not square for another `p`.

    >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
    Array(2., dtype=float32)
    """
    x = check_one("cond", x)
    shape = type_of(x).shape
    if len(shape) < 2 or 0 in shape[-2:]:
        raise ShapeError(f"cond: takes matrices that are not empty, got {type_of(x).short}", shapes=[shape])
    if p is None or p == 2:
        s = svd(x, compute_uv=False)
        return s[..., 0] / s[..., -1]
    if p == -2:
        s = svd(x, compute_uv=False)
        result = s[..., -1] / s[..., 0]
    else:
        check_square(f"cond with p={p!r}", x)
        result = norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
    # The condition number of a singular matrix is infinity, although its inverse is nan.
    return where(isnan(result) & ~any(isnan(x), (-2, -1)), np.inf, result)
