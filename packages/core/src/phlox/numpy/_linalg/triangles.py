"""Triangles and diagonals of matrices: tril, triu, the positions of their elements, vander, fill_diagonal."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, ShapeError, UnsupportedError
from ..._ir.dimensions import min_dim
from ..._operands.broadcasting import where
from ..._operands.checks import check, check_one, integer, matrix_shape, type_of
from ..._operands.promotion import to_dtype
from ..._ops.elementwise import logic
from ..._ops.elementwise.families import literal
from ...typing import Array, ArrayLike
from .._creation.fill import arange, tri
from .._creation.from_data import asarray
from .._elementwise.binary import power
from .._elementwise.unary import is_kind
from .._indexing.reading import diag
from .._manipulation.repeat import tile
from .._manipulation.shapes import expand_dims, ravel

if TYPE_CHECKING:
    Positions = tuple[Array, Array]


def _triangle(m: Any, k: int, lower: bool) -> Any:
    rows, columns = matrix_shape("tril" if lower else "triu", m)
    # The upper triangle from diagonal k is all that is not in the lower triangle up to k - 1.
    mask = tri(rows, columns, k if lower else k - 1, bool)
    triangle = where(mask if lower else logic.not_(mask), m, literal(m, 0))
    return to_dtype(triangle, type_of(m).dtype, type_of(m).weak_type)


@jit(inline=True, static_argnames="k")
def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above the diagonal number `k` (as ``numpy.tril``).

    Args:
      m: stack of matrices of any dtype, of shape (..., rows, columns).
      k: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.

    Returns:
      An array of the shape and dtype of `m`.

    Raises:
      ShapeError: `m` has fewer than two axes.

    >>> jnp.tril(jnp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _triangle(check_one("tril", m), integer("tril", "k", k), lower=True)


@jit(inline=True, static_argnames="k")
@docs_from(tril)
def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below the diagonal number `k` (as ``numpy.triu``).

    >>> jnp.triu(jnp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triangle(check_one("triu", m), integer("triu", "k", k), lower=False)


# --- positions ------------------------------------------------------------------------------------------


def _positions(coordinates: tuple[np.ndarray, ...]) -> Any:
    return tuple(asarray(indices) for indices in coordinates)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> Positions:
    """Rows and columns of the elements on and below a diagonal of an `n` by `m` matrix (as ``numpy.tril_indices``).

    Args:
      n: number of rows, not traced.
      k: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.
      m: number of columns; None is `n`.

    Returns:
      Two vectors of integers, the row and the column indices, in row-major order.

    >>> tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _triangle_positions("tril_indices", n, k, m)


@docs_from(tril_indices)
def triu_indices(n: int, k: int = 0, m: int | None = None) -> Positions:
    """Rows and columns of the elements on and above a diagonal of an `n` by `m` matrix (as ``numpy.triu_indices``).

    >>> triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _triangle_positions("triu_indices", n, k, m)


def _triangle_positions(name: str, n: Any, k: Any, m: Any) -> Positions:
    """The result of NumPy's function of this name."""
    rows, offset = integer(name, "n", n), integer(name, "k", k)
    return _positions(getattr(np, name)(rows, offset, None if m is None else integer(name, "m", m)))


def _of_one_matrix(function: str, arr: Any) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else type_of(*check(function, arr)).shape
    if len(shape) != 2:
        raise ShapeError(f"{function}: takes a matrix, got an array of shape {shape}", shapes=[shape])
    rows, columns = shape
    return rows, columns


def tril_indices_from(arr: ArrayLike, k: int = 0) -> Positions:
    """`tril_indices` for a matrix of the shape of `arr` (as ``numpy.tril_indices_from``).

    Args:
      arr: matrix, of which only the shape is used.
      k: the diagonal, as for `tril_indices`.

    Returns:
      Two vectors of integers, the row and the column indices.

    Raises:
      ShapeError: `arr` does not have two axes.

    >>> tril_indices_from(np.ones((2, 1)))
    (Array([0, 1], dtype=int32), Array([0, 0], dtype=int32))
    """
    n, m = _of_one_matrix("tril_indices_from", arr)
    return tril_indices(n, k, m)


@docs_from(tril_indices_from)
def triu_indices_from(arr: ArrayLike, k: int = 0) -> Positions:
    """`triu_indices` for a matrix of the shape of `arr` (as ``numpy.triu_indices_from``).

    Args:
      k: the diagonal, as for `triu_indices`.

    >>> triu_indices_from(np.ones((1, 2)))
    (Array([0, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, m = _of_one_matrix("triu_indices_from", arr)
    return triu_indices(n, k, m)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array with `ndim` axes of length `n` (as ``numpy.diag_indices``).

    Args:
      n: length of each axis, not traced.
      ndim: number of axes.

    Returns:
      A tuple of `ndim` vectors of the integers 0 to n - 1, one for each axis.

    Raises:
      ArgumentError: `n` or `ndim` is negative.

    >>> diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = integer("diag_indices", "n", n), integer("diag_indices", "ndim", ndim)
    if n < 0 or ndim < 0:
        raise ArgumentError(f"diag_indices: a length of {n} and {ndim} axes", instead="numbers that are not negative")
    return (arange(n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """`diag_indices` for the axes of `arr` (as ``numpy.diag_indices_from``).

    Args:
      arr: array with two or more axes of one length, of which only the shape is used.

    Returns:
      A tuple of vectors of the integers 0 to n - 1, one for each axis, where n is the length of the axes.

    Raises:
      ShapeError: `arr` has fewer than two axes, or axes of different lengths.

    >>> diag_indices_from(np.ones((1, 1)))
    (Array([0], dtype=int32), Array([0], dtype=int32))
    """
    arr = check_one("diag_indices_from", arr)
    shape = type_of(arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ShapeError(f"diag_indices_from: needs two or more axes of one length, got {type_of(arr).short}")
    return diag_indices(shape[0], len(shape))


# --- matrices from vectors ------------------------------------------------------------------------------


@functools.partial(jit, inline=True, static_argnames="k")
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v`, flattened, on a diagonal and zeros elsewhere (as ``numpy.diagflat``).

    Args:
      v: array of any shape, with n elements.
      k: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.

    Returns:
      A square matrix with n + abs(k) rows, of the dtype of `v`.

    >>> jnp.diagflat(jnp.array([[1], [2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = check_one("diagflat", v)
    return diag(to_dtype(ravel(v), type_of(v).dtype), k)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """`a` with `val` on its diagonal, as a new array (as ``numpy.fill_diagonal``, which changes `a`).

    Args:
      a: matrix, or array with more axes of one length.
      val: values of the diagonal: a number, or an array whose elements are repeated or cut off to the length of the
        diagonal.
      wrap: not supported, must be False.
      inplace: must be False, because arrays cannot be changed in place.

    Returns:
      An array of the shape and dtype of `a`.

    Raises:
      UnsupportedError: `inplace` or `wrap` is true.
      ShapeError: `a` has fewer than two axes, or more than two of different lengths.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3.0, inplace=False)
    Array([[3., 0.],
           [0., 3.]], dtype=float32)
    """
    if inplace or wrap:
        option = "inplace=True: arrays do not change" if inplace else "wrap=True"
        raise UnsupportedError(f"fill_diagonal: {option}", instead="a = fill_diagonal(a, val, inplace=False)")
    a, val = check("fill_diagonal", a, val)
    shape = type_of(a).shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) != 1):
        raise ShapeError(f"fill_diagonal: takes a matrix or axes of one length, got {type_of(a).short}")
    n = functools.reduce(min_dim, shape)
    if type_of(val).shape:
        val = ravel(val)
        val = tile(val, -(-n // max(type_of(val).shape[0], 1)))[:n]
    diagonal = arange(n, dtype=np.int32)
    return asarray(a).at[(diagonal,) * len(shape)].set(val)


@functools.partial(jit, inline=True, static_argnames=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix of `x`, whose columns are powers of `x` (as ``numpy.vander``).

    Args:
      x: vector of numbers, not bools.
      N: number of columns, not traced; None is ``len(x)``.
      increasing: True orders columns by increasing powers, False by decreasing powers.

    Returns:
      A matrix of shape (len(x), N), of the dtype of `x`.

    Raises:
      ShapeError: `x` is not a vector, or `N` is negative.
      ArgumentError: `x` is of dtype bool.

    >>> jnp.vander(jnp.array([1, 2, 3]))
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = check_one("vander", x)
    if type_of(x).ndim != 1:
        raise ShapeError(f"vander: takes a vector, got {type_of(x).short}")
    columns = type_of(x).shape[0] if N is None else integer("vander", "N", N)
    if columns < 0:
        raise ShapeError(f"vander: {columns} columns")
    if is_kind(x, "b"):
        raise ArgumentError(f"vander: powers of {type_of(x).short}", instead="x.astype(int)")
    powers = np.arange(columns) if increasing else np.arange(columns)[::-1]
    return power(expand_dims(x, 1), to_dtype(powers, type_of(x).dtype)[None, :])
