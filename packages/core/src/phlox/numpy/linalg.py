"""Linear algebra (``numpy.linalg``). The last two axes are those of matrices, others number the matrices of a stack."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .._api.devices.out_sharding import OutSharding
from .._base.docstrings import docs_from
from .._base.errors import ShapeError
from .._base.public_names import publish
from .._ir.dimensions import is_symbolic
from .._operands.checks import check, type_of
from .._ops.linalg.dot import PrecisionLike
from ..typing import Array, ArrayLike, DTypeLike
from ._indexing import reading as _indexing
from ._linalg import axis_products as _products, products as _linear
from ._linalg.decompositions import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from ._linalg.determinants import det, slogdet
from ._linalg.norms import cond, matrix_norm, norm, vector_norm
from ._linalg.solving import inv, lstsq, matrix_power, matrix_rank, pinv, solve, tensorinv, tensorsolve
from ._manipulation.shapes import matrix_transpose

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors of three elements (as ``numpy.linalg.cross``).

    Args:
      x1, x2: arrays of numbers, not bools, with vectors along `axis`; the other axes are broadcast.
      axis: axis of the arrays and of the result that holds the vectors, by default the last.

    Returns:
      An array of the broadcast shape, of the promoted dtype.

    Raises:
      ShapeError: the vectors do not have three elements, or the other axes do not broadcast.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    return _products.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all elements of two vectors (as ``numpy.linalg.outer``).

    Args:
      x1, x2: vectors of m and n elements.

    Returns:
      A matrix of shape (m, n), of the promoted dtype.

    Raises:
      ShapeError: `x1` or `x2` is not a vector.

    >>> jnp.linalg.outer(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([[ 1,  2],
           [10, 20]], dtype=int32)
    """
    x1, x2 = check("outer", x1, x2)
    if type_of(x1).ndim != 1 or type_of(x2).ndim != 1:
        raise ShapeError(f"outer: takes two vectors, got {type_of(x1).short} and {type_of(x2).short}")
    return _linear.outer(x1, x2)


@docs_from(_products.vecdot)
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The inner products of vectors along `axis`, the first ones conjugated (as ``numpy.linalg.vecdot``).

    Args:
      precision, preferred_element_type: as for `phlox.numpy.dot`.

    >>> jnp.linalg.vecdot(jnp.array([1j]), jnp.array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    return _products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The matrix product, as `phlox.numpy.matmul` (as ``numpy.linalg.matmul``).

    Args:
      x1: array of shape (..., m, n), or a vector (n,), which is treated as a row.
      x2: array of shape (..., n, k), or a vector (n,), which is treated as a column; leading axes are broadcast.
      precision, preferred_element_type: as for `phlox.numpy.dot`.

    Returns:
      An array of shape (..., m, k), without the axis of m or k where that operand is a vector; of the promoted dtype or
      `preferred_element_type`.

    Raises:
      ShapeError: `x1` or `x2` is a scalar, the lengths n differ, or the leading axes do not broadcast.

    >>> jnp.linalg.matmul(jnp.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    return _linear.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The sum of products over pairs of axes, as `phlox.numpy.tensordot` (as ``numpy.linalg.tensordot``).

    Args:
      x1, x2: arrays of any shape.
      axes: axes to sum over. An integer n sums over the last n axes of `x1` and the first n axes of `x2`, in order; a
        pair (axes of `x1`, axes of `x2`) names the axes.
      precision, preferred_element_type, out_sharding: as for `phlox.numpy.dot`.

    Returns:
      An array with the axes of `x1`, then the axes of `x2`, that are not summed over; its dtype is the promoted one or
      `preferred_element_type`.

    Raises:
      ShapeError: paired axes or the two sequences have different lengths, or n is greater than the number of axes of
        `x1` or `x2`.
      ArgumentError: `axes` is neither a number nor a pair.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)))
    Array(6., dtype=float32)
    """
    options: dict[str, Any] = {
        "precision": precision,
        "preferred_element_type": preferred_element_type,
        "out_sharding": out_sharding,
    }
    return _linear.tensordot(x1, x2, axes, **options)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals number `offset` of matrices; 0 is the main one (as ``numpy.linalg.diagonal``).

    Args:
      x: array of shape (..., m, n), of any dtype.
      offset: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.

    Returns:
      An array of shape (..., length of the diagonal), of the dtype of `x`.

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _indexing.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices (as ``numpy.linalg.trace``).

    Args:
      x: array of shape (..., m, n).
      offset: number of the diagonal: 0 is the main diagonal, positive numbers lie above it, negative numbers below it.
      dtype: dtype of the accumulator and of the result; None chooses it as for `phlox.numpy.sum`.

    Returns:
      An array of shape (...).

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return _linear.trace(x, offset, -2, -1, dtype)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, in the order with the fewest multiplications (as ``numpy.linalg.multi_dot``).

    Args:
      arrays: sequence of two or more matrices whose product is defined. The first may be a vector, which is treated as
        a row, and the last a vector, which is treated as a column.
      precision: as for `phlox.numpy.dot`.

    Returns:
      A matrix of the promoted dtype; a vector if the first or the last array is a vector, an array of shape () if both
      are.

    Raises:
      ShapeError: there are fewer than two arrays, or their shapes do not match.

    >>> jnp.linalg.multi_dot([jnp.ones(2), jnp.eye(2), jnp.ones((2, 3))])
    Array([2., 2., 2.], dtype=float32)
    """
    factors = check("multi_dot", *arrays)
    shapes = [type_of(x).shape for x in factors]
    ends, inner = (shapes[0], shapes[-1]) if shapes else (), shapes[1:-1]
    fit = len(shapes) > 1 and all(len(s) in (1, 2) for s in ends) and all(len(s) == 2 for s in inner)
    if not fit or any(a[-1] != b[0] for a, b in itertools.pairwise(shapes)):
        raise ShapeError(
            f"multi_dot: takes two matrices or more that fit, got {', '.join(type_of(x).short for x in factors)}",
            shapes=shapes,
        )
    return _ordered_product(factors, precision)


def _ordered_product(factors: Sequence[Any], precision: Any) -> Any:
    """The product in the cheapest order, by dynamic programming: for each run of factors, shorter ones first, finds
    where to split it."""
    shapes = [type_of(x).shape for x in factors]
    # A vector counts as a row at the beginning of the product, and as a column at its end.
    sizes = [shapes[0][0] if len(shapes[0]) == 2 else 1, *[s[0] for s in shapes[1:]]]
    sizes.append(shapes[-1][1] if len(shapes[-1]) == 2 else 1)
    sizes = [1000 if is_symbolic(n) else n for n in sizes]  # symbolic lengths are taken as large
    count = len(factors)
    cost = {(i, i): 0 for i in range(count)}
    cut = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def multiply(i: int, j: int) -> Any:
        if i == j:
            return factors[i]
        return _linear.matmul(multiply(i, cut[i, j]), multiply(cut[i, j] + 1, j), precision=precision)

    return multiply(0, count - 1)


publish(__name__)
