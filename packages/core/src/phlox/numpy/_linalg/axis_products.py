"""Products along given axes: vecdot, matvec, vecmat, cross, and the Kronecker product."""

from __future__ import annotations

import functools
from typing import Any

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ShapeError
from ..._operands.checks import canonical_axis, check, matrix_shape, type_of
from ..._operands.promotion import promote_dtypes, to_dtype
from ..._ops.linalg.dot import PrecisionLike
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.binary import multiply, subtract
from .._elementwise.unary import conj
from .._manipulation.broadcasting import broadcast_arrays
from .._manipulation.joining import stack
from .._manipulation.shapes import expand_dims, moveaxis, reshape, squeeze
from .products import matmul


def _check_vectors(function: str, x: Any) -> None:
    if not type_of(x).ndim:
        raise ShapeError(f"{function}: {type_of(x).short} needs at least 1 axis", shapes=[()])


def _check_lengths(function: str, x1: Any, x2: Any, n: int, m: int) -> None:
    if n != m:
        shapes = [type_of(x1).shape, type_of(x2).shape]
        raise ShapeError(f"{function}: {type_of(x1).short} and {type_of(x2).short} meet at {n} and {m}", shapes=shapes)


@functools.partial(jit, inline=True, static_argnames=("axis", "precision", "preferred_element_type"))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The inner products of the vectors along `axis`, the first ones conjugated (as ``numpy.vecdot``).

    Args:
      x1, x2: arrays with vectors of one length along `axis`; the other axes are broadcast.
      axis: axis of both arrays that holds the vectors, by default the last.
      precision, preferred_element_type: as for `dot`.

    Returns:
      An array of the broadcast shape without `axis`, of the promoted dtype or `preferred_element_type`.

    Raises:
      ShapeError: the lengths along `axis` differ, or the other axes do not broadcast.

    >>> jnp.vecdot(jnp.array([[1.0, 2.0], [0.0, 1.0]]), jnp.array([3.0, 4.0]))
    Array([11.,  4.], dtype=float32)
    """
    x1, x2 = check("vecdot", x1, x2)
    parts = []
    for x in (x1, x2):
        parts.append(moveaxis(x, canonical_axis(axis, type_of(x).ndim, "vecdot"), -1))
    _check_lengths("vecdot", x1, x2, type_of(parts[0]).shape[-1], type_of(parts[1]).shape[-1])
    # As products of 1 × n and n × 1 matrices, because XLA's product takes a precision and a dtype to sum in.
    row, column = expand_dims(conj(parts[0]), -2), expand_dims(parts[1], -1)
    out = matmul(row, column, precision=precision, preferred_element_type=preferred_element_type)
    return squeeze(out, (-2, -1))


@jit(inline=True)
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices and vectors, ``x1 @ x2[..., None]`` without its last axis (as ``numpy.matvec``).

    Args:
      x1: array of shape (..., m, n): a stack of matrices.
      x2: array of shape (..., n): a stack of vectors; stacks are broadcast.

    Returns:
      An array of shape (..., m), of the promoted dtype.

    Raises:
      ShapeError: the lengths n differ, there are too few axes, or the stacks do not broadcast.

    >>> jnp.matvec(jnp.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x1, x2 = check("matvec", x1, x2)
    _, columns = matrix_shape("matvec", x1)
    _check_vectors("matvec", x2)
    _check_lengths("matvec", x1, x2, columns, type_of(x2).shape[-1])
    return squeeze(matmul(x1, expand_dims(x2, -1)), -1)


@jit(inline=True)
@docs_from(matvec)
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors, conjugated, and matrices (as ``numpy.vecmat``).

    Args:
      x1: array of shape (..., n): a stack of vectors.
      x2: array of shape (..., n, m): a stack of matrices; stacks are broadcast.

    >>> jnp.vecmat(jnp.array([1.0, 2.0]), jnp.eye(2))
    Array([1., 2.], dtype=float32)
    """
    x1, x2 = check("vecmat", x1, x2)
    _check_vectors("vecmat", x1)
    rows, _ = matrix_shape("vecmat", x2)
    _check_lengths("vecmat", x1, x2, type_of(x1).shape[-1], rows)
    return squeeze(matmul(expand_dims(conj(x1), -2), x2), -2)


@functools.partial(jit, inline=True, static_argnames=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross products of vectors of three elements (as ``numpy.cross``).

    Args:
      a, b: arrays of numbers, not bools, with vectors along one axis; the other axes are broadcast.
      axisa, axisb: axes of `a` and of `b` that hold the vectors, of length 3.
      axisc: axis of the result that holds the vectors.
      axis: axis that replaces `axisa`, `axisb` and `axisc`; None uses these three.

    Returns:
      An array of the promoted dtype, with vectors of three elements along `axisc`.

    Raises:
      ShapeError: the vectors have another number of elements than three, or the other axes do not broadcast.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    a, b = check("cross", a, b)
    a, b = (to_dtype(x, type_of(x).dtype) for x in promote_dtypes(a, b))
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = (moveaxis(x, i, -1) for x, i in ((a, axisa), (b, axisb)))
    for x in (a, b):
        if type_of(x).shape[-1:] != (3,):
            raise ShapeError(
                f"cross: takes vectors of 3 elements, got {type_of(x).short}",
                instead="x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0] for vectors of 2 elements",
                shapes=[type_of(x).shape],
            )
    xs, ys = ([x[..., i] for i in range(3)] for x in (a, b))

    def minor(i: int, j: int) -> Any:
        return subtract(multiply(xs[i], ys[j]), multiply(xs[j], ys[i]))

    return moveaxis(stack(broadcast_arrays(minor(1, 2), minor(2, 0), minor(0, 1))), 0, axisc)


@jit(inline=True)
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: blocks of `b`, multiplied by each element of `a` (as ``numpy.kron``).

    Args:
      a, b: arrays of any shape; leading axes of length one are prepended to the one with fewer axes.

    Returns:
      An array of the promoted dtype, whose length along each axis is the product of those of `a` and `b`.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    a, b = promote_dtypes(*check("kron", a, b))
    rank = max(type_of(x).ndim for x in (a, b))
    shapes = [(1,) * (rank - type_of(x).ndim) + type_of(x).shape for x in (a, b)]
    # The axes of a and b alternate, and each pair is then merged.
    outer = reshape(a, tuple(n for m in shapes[0] for n in (m, 1)))
    inner = reshape(b, tuple(n for m in shapes[1] for n in (1, m)))
    return reshape(multiply(outer, inner), tuple(n * m for n, m in zip(*shapes, strict=True)))
