"""Operations on two arrays as sets: intersect1d, setdiff1d, setxor1d."""

from __future__ import annotations

from typing import Any

from ..._base.docstrings import docs_from
from ..._base.strictness import composed
from ..._ir import dtypes
from ..._ir.dimensions import value_of
from ..._operands.checks import check, integer, type_of
from ..._operands.promotion import promote_dtypes, to_dtype
from ...typing import Array, ArrayLike
from .._creation.fill import full_like, ones
from .._elementwise.choose import where as select_elements
from .._elementwise.unary import logical_not
from .._indexing.places import first_places, known_count
from .._indexing.reading import take
from .._manipulation.joining import concatenate
from .._manipulation.shapes import ravel
from .searching import searchsorted
from .sets import distinct, isin
from .sorting import argsort


def _masked_elements(function: str, x: Any, mask: Any, size: int | None, fill: Any) -> tuple[Any, Any]:
    """(elements of a vector at which `mask` is true, then `fill` or for None the first of them; mask of the fill)."""
    aval = type_of(x)
    n = aval.shape[0]
    count = known_count(function, mask) if size is None else integer(function, "size", size)
    end = to_dtype(value_of(n), dtypes.int32)
    # Positions beyond the last true element are `end`, which no element has.
    positions = first_places(mask, count, end)
    missing = positions == end
    if size is None:
        return take(x, positions), missing
    if not n:
        # An empty vector has no first element that could fill the result.
        return full_like(x, 0 if fill is None else fill, shape=count), missing
    if not count:
        return take(x, positions), missing
    instead = (
        take(x, positions[0], fill_value=0) if fill is None else to_dtype(fill, type_of(x).dtype, type_of(x).weak_type)
    )
    return select_elements(missing, instead, take(x, positions, mode="clip")), missing


@composed
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The unique elements of `ar1` that are not in `ar2`, sorted (as ``numpy.setdiff1d``).

    Args:
      ar1, ar2: arrays of any shape, flattened.
      assume_unique: True promises that the elements of `ar1` are unique; the result then keeps their order.
      size: number of elements in the result; None returns all, and is not possible under `jit`, where the shape must
        not depend on values.
      fill_value: value that pads the result to `size`; None is 0.

    Returns:
      A vector of the dtype of `ar1`, of length `size`.

    Raises:
      ConcretizationTypeError: an array is traced and `size` is not given.

    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([1]))
    Array([2, 3], dtype=int32)
    """
    a, b = check("setdiff1d", ar1, ar2)
    a = ravel(a)
    mask: Any = ones(type_of(a).shape, bool)
    if not assume_unique:
        a, mask = distinct(a)
    fill = 0 if fill_value is None else fill_value
    return _masked_elements("setdiff1d", a, mask & logical_not(isin(a, b)), size, fill)[0]


def _operands(function: str, a: Any, b: Any, size: int | None) -> list[Any]:
    """The two arrays as vectors of one dtype, strongly typed if there is a `size`, as in JAX."""
    vectors = [ravel(x) for x in promote_dtypes(*check(function, a, b))]
    return vectors if size is None else [to_dtype(x, type_of(x).dtype) for x in vectors]


@composed
@docs_from(setdiff1d)
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The unique elements that are in exactly one of two arrays, sorted (as ``numpy.setxor1d``).

    Args:
      assume_unique: accepted for compatibility; has no effect.
      fill_value: value that pads the result to `size`; None pads with its first element, or 0 if it is empty.

    Returns:
      A vector of the promoted dtype, of length `size`.

    >>> jnp.setxor1d(jnp.array([3, 1, 2]), jnp.array([1, 5]))
    Array([2, 3, 5], dtype=int32)
    """
    (a, in_a), (b, in_b) = map(distinct, _operands("setxor1d", ar1, ar2, size))
    both, mask = concatenate([a, b]), concatenate([in_a & logical_not(isin(a, b)), in_b & logical_not(isin(b, a))])
    order = argsort(both)
    return _masked_elements("setxor1d", take(both, order), take(mask, order), size, fill_value)[0]


def _first(x: Any, values: Any, missing: Any) -> Any:
    """The position of the first occurrence of each value in a vector; the vector's length for `missing` values."""
    # The sort is stable, so the first of equal elements in order is the first in the vector.
    order = argsort(x)
    indices = take(order, searchsorted(take(x, order), values), mode="clip")
    return select_elements(missing, to_dtype(type_of(x).shape[0], type_of(indices).dtype), indices)


@composed
@docs_from(setxor1d)
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The unique elements that are in both arrays, sorted (as ``numpy.intersect1d``).

    Args:
      return_indices: True also returns the indices of the first occurrences in the flattened arrays.

    Returns:
      A vector of the promoted dtype, of length `size`; with `return_indices` a tuple of it and two vectors of integers.

    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([1, 3, 7]))
    Array([1, 3], dtype=int32)
    """
    a, b = _operands("intersect1d", ar1, ar2, size)
    both, mask = distinct(concatenate([a, b]))
    common, missing = _masked_elements("intersect1d", both, mask & isin(both, a) & isin(both, b), size, fill_value)
    return (common, _first(a, common, missing), _first(b, common, missing)) if return_indices else common
