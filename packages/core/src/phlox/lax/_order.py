"""Operations of ``phlox.lax`` that compare elements along an axis: sorting, and the positions of extrema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.docstrings import docs_from
from .._base.errors import ArgumentError
from .._ir import dtypes
from .._operands.checks import canonical_axis, check, check_one, integer, type_of
from .._ops.reductions import reduce as _reduce
from .._ops.structure.sort import sort as _sort
from ..typing import Array, ArrayLike, DTypeLike


def sort(
    operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """An array sorted in ascending order along an axis, or several arrays sorted together by the first ones
    (StableHLO's ``sort``).

    nan comes last; complex numbers are ordered by real part, then by imaginary part.

    Args:
      operand: an array, or a tuple or list of arrays of one shape.
      dimension: axis number to sort along; negative numbers count from the last axis.
      is_stable: whether equal elements keep their relative order.
      num_keys: number of leading arrays that are sort keys: ties in the first are resolved by the second, and so on.

    Returns:
      The sorted array, or a tuple of the sorted arrays.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: the shapes differ.
      OptionError: `num_keys` is not between 1 and the number of arrays.

    >>> sort(np.array([2, 1]))
    Array([1, 2], dtype=int32)
    """
    arrays = check("sort", *operand) if isinstance(operand, tuple | list) else check("sort", operand)
    if not arrays:
        raise ArgumentError("sort needs at least one array")
    at = canonical_axis(dimension, type_of(arrays[0]).ndim, "sort")
    outs = _sort(*arrays, dimension=at, is_stable=is_stable, num_keys=integer("sort", "num_keys", num_keys))
    return tuple(outs) if isinstance(operand, tuple | list) else outs[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """`keys` sorted in ascending order, and `values` permuted in the same way (StableHLO's ``sort``).

    Args:
      keys: array to sort; see `sort` for the order.
      values: array of the shape of `keys`, of any dtype.
      dimension: axis number to sort along; negative numbers count from the last axis.
      is_stable: whether values of equal keys keep their relative order.

    Returns:
      The pair (sorted keys, permuted values), of the shape and dtypes of `keys` and `values`.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: the shapes differ.

    >>> sort_key_val(np.array([2, 1]), np.array([5, 6]))
    (Array([1, 2], dtype=int32), Array([6, 5], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable, 1)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the largest element along `axis`, the first one if there are several; the first nan if there is one
    (as ``numpy.argmax``).

    Args:
      operand: array of any dtype; complex numbers are ordered by their real, then their imaginary parts.
      axis: axis number to search along, not negative.
      index_dtype: integer dtype of the result.

    Returns:
      An array of `index_dtype`, of the shape of `operand` without `axis`.

    Raises:
      DtypeError: `index_dtype` is not an integer dtype.
      ShapeError: `axis` is out of range, or has length 0.

    >>> argmax(np.array([1, 3, 2]), 0, "int32")
    Array(1, dtype=int32)
    """
    operand = check_one("argmax", operand)
    return _reduce.argmax(operand, axes=(integer("argmax", "axis", axis),), index_dtype=dtypes.user_dtype(index_dtype))


@docs_from(argmax)
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the smallest element along `axis`, the first one if there are several; the first nan if there is one
    (as ``numpy.argmin``).

    >>> argmin(np.array([3, 1, 2]), 0, "int32")
    Array(1, dtype=int32)
    """
    operand = check_one("argmin", operand)
    return _reduce.argmin(operand, axes=(integer("argmin", "axis", axis),), index_dtype=dtypes.user_dtype(index_dtype))
