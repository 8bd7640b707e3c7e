"""Arrays as sets: unique and its variants, isin, union1d.

All sort, so that equal elements are adjacent. The number of results depends on values, so the functions need a static
`size` under `jit`, as those of `_indexing/places.py` do.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, DtypeError, OptionError
from ..._base.strictness import composed
from ..._ir import dtypes
from ..._ir.dimensions import surely_at_least, value_of
from ..._operands.checks import canonical_axis, check, check_one, integer, type_of
from ..._operands.promotion import to_dtype
from ..._ops.structure.iota import iota
from ..._ops.structure.numbers import scalar_of
from ..._ops.structure.shape import pad
from ...typing import Array, ArrayLike
from .._creation.fill import full_like, zeros
from .._elementwise.choose import where as select_elements
from .._elementwise.comparisons import equal, not_equal
from .._elementwise.unary import is_kind, isnan, logical_not
from .._indexing.at import At
from .._indexing.places import first_places, known_count
from .._indexing.reading import take
from .._manipulation.joining import concatenate
from .._manipulation.shapes import expand_dims, moveaxis, ravel, reshape
from .._statistics import reductions as r
from .orders import lexsort
from .searching import searchsorted
from .sorting import argsort, sort

#: `isin` compares with up to this many test elements one by one. With 32, 100,000 elements take 0.2 ms, and 1 ms by
#: binary search; with 128 they take 13 ms and 13 MB, and 1.5 ms by binary search (float32, two cores).
_MAX_COMPARED = 32


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


@functools.partial(jit, static_argnames=("equal_nan", "ordered"))
def _grouped(rows: Any, equal_nan: bool, ordered: bool = True) -> tuple[Any, Any, Any]:
    """(rows with equal ones next to each other, mask of the first of equal rows, permutation of the rows).

    Without `ordered` the permutation may be None: to sort numbers takes half the time of finding their order.
    """
    n, width = type_of(rows).shape
    order = None
    if equal_nan and is_kind(rows, "c"):
        # Sorted by their real parts, numbers whose imaginary part is nan would not be next to each other.
        rows = select_elements(isnan(rows), to_dtype(np.nan, type_of(rows).dtype), rows)
    if width == 1 and not ordered:
        # Without a need for the permutation the values are sorted alone.
        rows = sort(rows, 0)
    elif width == 1:
        order = argsort(rows[:, 0])
    elif width:
        order = lexsort([rows[:, i] for i in reversed(range(width))])
    else:
        order = iota(dtype=dtypes.canonical(dtypes.int64), shape=(n,), dimension=0)
    if order is not None:
        rows = take(rows, order, 0)
    # Each row is compared with the one before, which is the shorter slice in a padded array. To compare two slices and
    # to concatenate takes ten times as long: XLA on CPUs writes such bools one by one.
    before = pad(rows, scalar_of(0, type_of(rows).dtype), padding_config=((1, -1, 0), (0, 0, 0)))
    differs = not_equal(rows, before)
    if equal_nan and is_kind(rows, "fc"):
        differs = differs & ~(isnan(rows) & isnan(before))
    is_first = equal(iota(dtype=dtypes.canonical(dtypes.int64), shape=(n,), dimension=0), 0)
    return rows, r.any(differs, 1) | is_first, order


def distinct(x: Any) -> tuple[Any, Any]:
    """(sorted elements, mask of the first of equal elements); all nan are one value."""
    x = ravel(x)
    if not type_of(x).shape[0]:
        return x, np.zeros(0, bool)
    rows, begins, _ = _grouped(x[:, None], equal_nan=True, ordered=False)
    return rows[:, 0], begins


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The unique elements of `ar`, or its unique slices along `axis`, sorted (as ``numpy.unique``).

    Args:
      ar: array of any dtype and shape.
      return_index: True also returns the indices of the first occurrences of the unique elements.
      return_inverse: True also returns, for each element of `ar`, the index of its value in the result.
      return_counts: True also returns the number of occurrences of each unique element.
      axis: axis whose slices are compared; None compares the elements of the flattened array.
      equal_nan: True treats all nan as one value.
      size: number of elements in the result; None returns all, and is not possible under `jit`, where the shape must
        not depend on values.
      fill_value: value that pads the result to `size`; None pads with the smallest element.
      sorted: has no effect: the result is always sorted.

    Returns:
      An array of the dtype of `ar`: a vector of unique elements, or with `axis` the unique slices, joined along it.
      With `return_` options, a tuple of it and the arrays of integers they ask for, in the order of the options:
      vectors, except that the inverse has the shape of `ar` where `axis` is None.

    Raises:
      ConcretizationTypeError: `ar` is traced and `size` is not given.
      OptionError: `ar` is empty and `size` is given without `fill_value`.
      ArgumentError: `size` is negative.
      DtypeError: `ar` is an array of random keys, which cannot be sorted.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    ar = check_one("unique", ar)
    if dtypes.is_extended(type_of(ar).dtype):
        raise DtypeError(f"unique: {type_of(ar).short} has no order")
    if size is not None and integer("unique", "size", size) < 0:
        raise ArgumentError(f"unique: size={size} elements", instead="a number that is not negative")
    shape = type_of(ar).shape
    a, at = (ravel(ar), 0) if axis is None else (ar, canonical_axis(axis, len(shape), "unique"))
    n = type_of(a).shape[at]
    a = moveaxis(a, at, 0)
    rest = type_of(a).shape[1:]
    index_dtype = dtypes.canonical(dtypes.int64)
    if n == 0:
        if size and fill_value is None:
            raise OptionError("unique of no elements with a size needs something to give", instead="fill_value=...")
        none = zeros((size or 0,), index_dtype)
        values = full_like(a, 0 if fill_value is None else fill_value, shape=(size or 0, *rest))
        extras: list[Any] = [none, zeros(shape if axis is None else (0,), index_dtype), none]
    else:
        rows = reshape(a, (n, math.prod(rest)))
        rows, begins, order = _grouped(rows, equal_nan=equal_nan, ordered=return_index or return_inverse)
        count = known_count("unique", begins) if size is None else int(size)
        end = to_dtype(value_of(n), dtypes.int32)
        # If `size` is too small, the last group ends where the next one would begin.
        bounds = first_places(begins, count + 1 if return_counts else count, end)
        starts = bounds[:count] if return_counts else bounds
        missing = equal(starts, end)
        # Without a fill value the smallest value fills the result, as in JAX.
        first = select_elements(missing, to_dtype(0, index_dtype), starts)
        values = reshape(take(rows, first, 0), (count, *rest))
        if fill_value is not None:
            column = reshape(missing, (count, *(1,) * len(rest)))
            values = select_elements(column, to_dtype(fill_value, type_of(a).dtype), values)
        extras = [None, None, None]
        if return_index:
            extras[0] = take(order, first)
        if return_inverse:
            number = r.cumsum(begins, dtype=index_dtype) - 1
            # The number of each sorted element, scattered back to where the element came from
            inverse = At(zeros((n,), index_dtype))[order].set(number)
            extras[1] = reshape(inverse, shape) if axis is None else inverse
        if return_counts:
            extras[2] = bounds[1:] - starts
    values = moveaxis(values, 0, at)
    results = [
        x for x, is_requested in zip(extras, (return_index, return_inverse, return_counts), strict=True) if is_requested
    ]
    return (values, *results) if results else values


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> _UniqueAllResult:
    """`unique` with everything it can return (as ``numpy.unique_all``); each nan is different from the others.

    Args:
      x: array of any dtype and shape.
      size, fill_value: as for `unique`.

    Returns:
      A named tuple of vectors `values`, `indices` and `counts`, and of `inverse_indices` in the shape of `x`.

    Raises:
      ConcretizationTypeError: `x` is traced and `size` is not given.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


@docs_from(unique_all)
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """`unique` with the number of occurrences of each value (as ``numpy.unique_counts``); each nan is different from
    the others.

    Returns:
      A named tuple of vectors `values` and `counts`.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
    Array([1, 3], dtype=int32)
    """
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


@docs_from(unique_all)
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """`unique` with the indices that reconstruct `x` (as ``numpy.unique_inverse``).

    Args:
      x: array of any dtype and shape; each nan is different from the others.

    Returns:
      A named tuple of the vector `values`, and of `inverse_indices` in the shape of `x`.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


@docs_from(unique_all)
def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """`unique` in which each nan is different from the others (as ``numpy.unique_values``).

    Returns:
      A vector of the dtype of `x`, of length `size`.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


@composed
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element of `element` is in `test_elements` (as ``numpy.isin``).

    Args:
      element, test_elements: arrays of any shape; nan is not equal to nan.
      assume_unique: accepted for compatibility; has no effect.
      invert: True returns the opposite: True for elements that are not in `test_elements`.
      method: algorithm: 'compare_all' compares each element with each test element, which takes memory for all pairs;
        'binary_search' and 'sort' sort first; 'auto' compares with few test elements, else it is 'binary_search'.

    Returns:
      An array of bools of the shape of `element`.

    Raises:
      OptionError: `method` is not one of the listed names.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    a, b = check("isin", element, test_elements)
    b = ravel(b)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise OptionError(f"isin: method={method!r}", instead="'auto', 'compare_all', 'binary_search' or 'sort'")
    is_short = not surely_at_least(type_of(b).shape[0], _MAX_COMPARED + 1)
    if method == "compare_all" or (method == "auto" and is_short) or not type_of(b).shape[0]:
        is_member = r.any(equal(expand_dims(a, -1), b), -1)
    else:
        b = sort(b)
        # The first element that is not smaller is equal, or none is.
        is_member = equal(take(b, searchsorted(b, a, method="sort" if method == "sort" else "scan"), mode="clip"), a)
    return logical_not(is_member) if invert else is_member


@composed
def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The unique elements of both arrays, sorted (as ``numpy.union1d``).

    Args:
      ar1, ar2: arrays of any shape, flattened.
      size: number of elements in the result; None returns all, and is not possible under `jit`, where the shape must
        not depend on values.
      fill_value: value that pads the result to `size`; None pads with the smallest element.

    Returns:
      A vector of the promoted dtype, of length `size`.

    Raises:
      ConcretizationTypeError: an array is traced and `size` is not given.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    a, b = check("union1d", ar1, ar2)
    return unique(concatenate([ravel(a), ravel(b)]), size=size, fill_value=fill_value)
