"""Positions in sorted arrays, and counts: searchsorted, digitize, bincount."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._api.devices.out_sharding import OutSharding, takes_out_sharding
from ..._api.jit.jit import jit
from ..._base.errors import ConcretizationTypeError, DtypeError, OptionError, ShapeError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic, surely_at_least, value_of
from ..._operands.checks import check, check_one, integer, type_of
from ..._operands.integers import unheld
from ..._operands.promotion import promote_dtypes, to_dtype
from ..._operands.short_floats import round_to, widen
from ..._ops.elementwise import logic
from ..._trace.trace import Tracer
from ..._transform.sharding_types import in_device_memory
from ...typing import Array, ArrayLike
from .._creation.fill import zeros
from .._elementwise.binary import maximum
from .._elementwise.choose import where as select_elements
from .._elementwise.comparisons import less
from .._elementwise.unary import imag, is_kind, isnan, real
from .._indexing.at import At
from .._indexing.reading import take
from .._manipulation.broadcasting import broadcast_arrays
from .._manipulation.joining import concatenate
from .._manipulation.shapes import expand_dims, flip, ravel, reshape
from .._statistics import reductions as r
from .sorting import argsort

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")
#: A vector of at most 24 elements is compared as a whole with 4096 values or more.
_MAX_SHORT_LENGTH, _MIN_MANY_VALUES = 24, 4096
#: The number of steps of a search for many values that compare with up to 15 elements.
_COMPARED_BITS = 4


def _before(a: Any, b: Any) -> Any:
    """Where `a` is before `b` in sorted order: nan last, complex numbers by real, then imaginary part."""
    a, b = broadcast_arrays(a, b)
    if is_kind(a, "c"):
        return _before(real(a), real(b)) | (~_before(real(b), real(a)) & _before(imag(a), imag(b)))
    if not is_kind(a, "f"):
        return less(a, b)  # integers that no common dtype holds are not promoted
    return logic.lt(a, b) | (isnan(b) & ~isnan(a))


def _count_before(a: Any, v: Any, right: bool) -> Any:
    """The number of elements of `a` before each of `v`, from comparisons of all with all, in one pass over `v`."""
    rows, column = expand_dims(v, 0), reshape(a, (type_of(a).shape[0], *[1] * type_of(v).ndim))
    return r.sum(~_before(rows, column) if right else _before(column, rows), 0, np.int32)


def _bisect(a: Any, v: Any, right: bool, unroll: bool) -> Any:
    """Binary search for all `v` at once: steps of falling powers of two, from the elements that are known to be before.

    Unrolled steps would take as long, and XLA would compute all of them again for each use of the result. For many
    values the first four steps are comparisons with up to 15 elements, which read nothing by index: 1e6 values and 100
    elements take 0.7 of the time.
    """
    from ...lax import fori_loop  # here, as `phlox.numpy` does not wait for lax

    n: Any = type_of(a).shape[0]
    unrolled: int | bool | None = unroll or 1
    first, start = 0, zeros(type_of(v).shape, np.uint32)
    if is_symbolic(n):
        n = to_dtype(n.as_value(), dtypes.uint32)
        bits: Any = to_dtype(32 - logic.clz(n), dtypes.int32)
        top, unrolled = logic.shift_left(np.uint32(1), to_dtype(bits, dtypes.uint32)), None
    else:
        bits = n.bit_length()
        top = np.uint32(1 << bits)
        if bits > _COMPARED_BITS and not unroll and surely_at_least(type_of(v).size, _MIN_MANY_VALUES):
            first, block = _COMPARED_BITS, 1 << (bits - _COMPARED_BITS)
            start = to_dtype(_count_before(a[block - 1 :: block], v, right) * np.int32(block), dtypes.uint32)

    def step(i: Any, position: Any) -> Any:
        ahead = position + (top >> to_dtype(i + 1, dtypes.uint32))
        previous = At(a)[ahead - 1].get(mode="clip", wrap_negative_indices=False)
        passed = ~_before(v, previous) if right else _before(previous, v)
        return select_elements(passed & (ahead <= n), ahead, position)

    # One position is carried and not both ends of an interval, which takes half the time.
    position = fori_loop(first, bits, step, start, unroll=unrolled)
    return to_dtype(position, dtypes.int32)


def _ranks(a: Any) -> Any:
    """The rank of each element in the stable sorted order."""
    return to_dtype(argsort(argsort(a)), dtypes.int32)


@functools.partial(jit, static_argnames=("right", "method"))
def _searchsorted(a: Any, v: Any, right: bool, method: str) -> Any:
    # Integers that no common dtype holds, as int64 and uint64, are compared by value and not promoted.
    if unheld(a, v) is None:
        a, v = promote_dtypes(a, v)
    elif method == "sort":  # sorts both as one vector, of one dtype
        method = "scan"
    n, shape = type_of(a).shape[0], type_of(v).shape
    if n == 0:
        return zeros(shape, np.int32)
    is_short = not surely_at_least(n, _MAX_SHORT_LENGTH + 1) and surely_at_least(type_of(v).size, _MIN_MANY_VALUES)
    if method == "compare_all" or (method == "scan" and is_short):
        # Each value is compared with all of `a`: one pass, and for short `a` fewer operations than halving takes.
        return _count_before(a, v, right)
    if method == "sort":
        flat = ravel(v)
        # The sort is stable: with `flat` first its elements are before equal elements of `a`, else after them.
        both = _ranks(concatenate([a, flat]))[n:] if right else _ranks(concatenate([flat, a]))[: type_of(flat).shape[0]]
        # The rank among both vectors less that among the values is the number of elements of `a` before the value.
        return reshape(both - _ranks(flat), shape)
    return _bisect(a, v, right, unroll=method == "scan_unrolled")


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """The indices at which to insert `v` into sorted `a` so that it stays sorted (as ``numpy.searchsorted``).

    Args:
      a: vector sorted in ascending order, nan last; or, if `sorter` is given, in any order.
      v: values to insert, an array of any shape.
      side: 'left' returns the first suitable index, 'right' the last one.
      sorter: indices that sort `a`, as `argsort` returns them; None if `a` is sorted.
      method: search algorithm: 'scan' is a binary search in a loop, 'scan_unrolled' the same with the loop unrolled,
        'sort' sorts `a` and `v` together (good for many values `v` on accelerators), 'compare_all' compares each
        element of `a` with each of `v` (good for short `a`).

    Returns:
      An array of indices from 0 to ``len(a)``, int32, of the shape of `v`.

    Raises:
      OptionError: `side` or `method` is not one of the listed names.
      ShapeError: `a` or `sorter` is not a vector.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)
    """
    a, v = check("searchsorted", a, v)
    if side not in ("left", "right"):
        raise OptionError(f"searchsorted: side={side!r}", instead="'left' or 'right'")
    if method not in _METHODS:
        raise OptionError(f"searchsorted: method={method!r}", instead=", ".join(map(repr, _METHODS)))
    if sorter is not None:
        (sorter,) = check("searchsorted", sorter)
    for name, x in (("a", a), ("sorter", sorter)):
        if x is not None and type_of(x).ndim != 1:
            raise ShapeError(f"searchsorted: {name} must be a vector, got {type_of(x).short}")
    if sorter is not None:
        a = take(a, sorter)
    if not type_of(v).ndim:
        a = in_device_memory(a)  # where positions of one number are, as in JAX
    return _searchsorted(a, v, right=side == "right", method=method)


@functools.partial(jit, inline=True, static_argnames=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The index of the bin that contains each element of `x` (as ``numpy.digitize``).

    Bin i lies between ``bins[i - 1]`` and ``bins[i]``; bin 0 and bin ``len(bins)`` are for elements outside.

    Args:
      x: array of any shape.
      bins: vector of bin edges, in increasing or decreasing order.
      right: True if a bin includes its right edge, False if it includes its left edge.
      method: as for `searchsorted`; None is 'scan'.

    Returns:
      An array of bin indices, int32, of the shape of `x`.

    Raises:
      ShapeError: `bins` is not a vector.

    >>> jnp.digitize(jnp.array([0.5, 1.0, 7.0]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int32)
    """
    x, bins = check("digitize", x, bins)
    if type_of(bins).ndim != 1:
        raise ShapeError(f"digitize: bins must be a vector, got {type_of(bins).short}")
    n = type_of(bins).shape[0]
    if n == 0:
        return zeros(type_of(x).shape, np.int32)
    side, how = "left" if right else "right", "scan" if method is None else method
    rising = searchsorted(bins, x, side, method=how)
    n = value_of(n)
    falling = to_dtype(n, dtypes.int32) - searchsorted(flip(bins), x, side, method=how)
    # Whether the bins fall is known at run time only.
    return select_elements(_before(bins[-1], bins[0]), falling, rising)


@takes_out_sharding
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The number of occurrences of each nonnegative integer in the vector `x` (as ``numpy.bincount``).

    Args:
      x: vector of integers or bools; negative numbers are counted as 0.
      weights: weights of the elements, which are summed in place of counts: an array of the shape of `x`.
      minlength: minimum length of the result; it is longer if the largest element of `x` requires it.
      length: length of the result; elements that are not less than it are not counted. None determines it from the
        values of `x`; under `jit` it is required.

    Returns:
      A vector of integers, or of the dtype of `weights`.

    Raises:
      ConcretizationTypeError: `x` is traced and `length` is not given.
      DtypeError: `x` is not of an integer dtype.
      ShapeError: `x` is not a vector, or `weights` have another shape.

    >>> jnp.bincount(jnp.array([1, 2, 2]))
    Array([0, 1, 2], dtype=int32)
    """
    x = check_one("bincount", x)
    if not is_kind(x, "biu"):
        raise DtypeError(f"bincount counts integers, got {type_of(x).short}", instead="x.astype(int), or histogram")
    if type_of(x).ndim != 1:
        raise ShapeError(f"bincount takes a vector, got {type_of(x).short}", instead="x.ravel()")
    x = to_dtype(x, dtypes.int32) if is_kind(x, "b") else x
    if length is None:
        if isinstance(x, Tracer):
            x._refuse(ConcretizationTypeError, "bincount without length", "length=...")
        largest = int(np.asarray(r.max(x))) + 1 if type_of(x).shape[0] else 0
        length = max(integer("bincount", "minlength", minlength), largest, 1 if type_of(x).shape[0] else 0)
    if weights is None:
        weights = np.ones((), dtypes.canonical(dtypes.int64))[()]
    else:
        weights = check_one("bincount", weights)
        if type_of(weights).shape != type_of(x).shape:
            raise ShapeError(f"bincount: {type_of(weights).short} as weights of {type_of(x).short}")
    # Negative numbers count as 0, as in JAX: a compiled program cannot raise.
    dtype, weights = type_of(weights).dtype, widen(weights)
    counts = At(zeros((length,), type_of(weights).dtype))[maximum(x, 0)].add(weights, mode="drop")
    return round_to(counts, dtype)
