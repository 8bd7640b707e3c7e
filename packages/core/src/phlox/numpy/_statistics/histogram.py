"""Histograms, and the edges of their bins."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._api.devices.out_sharding import OutSharding, lay_out
from ..._base.errors import OptionError, ShapeError
from ..._base.strictness import composed
from ..._operands.checks import check, check_one, integer, sequence, type_of
from ..._operands.promotion import promote_inexact, to_dtype
from ..._operands.short_floats import round_to, widen
from ..._ops.structure.shape import as_array_or_tracer
from ...typing import Array, ArrayLike
from .._creation.fill import linspace, zeros
from .._creation.from_data import asarray
from .._elementwise.binary import divide, subtract
from .._elementwise.choose import where as select_elements
from .._elementwise.comparisons import equal
from .._indexing.at import At
from .._manipulation.joining import stack
from .._manipulation.shapes import ravel
from .._searches.searching import bincount, searchsorted
from . import reductions as r


@composed
def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Sequence[Any] | None = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of the bins of a histogram of `a` (as ``numpy.histogram_bin_edges``).

    Args:
      a: real array of any shape; integers become floats.
      bins: number of bins of equal width, or a vector of bin edges, which is then returned.
      range: lower and upper edge of the bins; by default the smallest and the largest element, or 0.5 below and above
        them if they are equal; 0 and 1 if there are no elements.
      weights: accepted for compatibility; has no effect.

    Returns:
      A float vector of ascending edges, one more than there are bins.

    Raises:
      ArgumentError: `bins` is neither an integer nor a vector.
      OptionError: `range` is not a pair.

    >>> jnp.histogram_bin_edges(jnp.array([1.0, 5.0]), bins=2)
    Array([1., 3., 5.], dtype=float32)
    """
    a, bins = check("histogram_bin_edges", a, bins)
    (a,) = promote_inexact(a)
    dtype = type_of(a).dtype
    if type_of(bins).ndim == 1:
        return as_array_or_tracer(to_dtype(bins, dtype))
    if range is None and 0 in type_of(a).shape:
        range = (0, 1)
    ends = (r.min(a), r.max(a)) if range is None else check("histogram", *sequence("histogram", "range", range))
    if len(ends) != 2:
        raise OptionError(f"histogram: range={range!r}", instead="a pair of numbers")
    low, high = (to_dtype(x, dtype) for x in ends)
    # Equal ends are moved apart by 1, as in NumPy, for bins that are not empty intervals.
    flat = equal(low, high)
    half = to_dtype(0.5, dtype)
    low, high = select_elements(flat, subtract(low, half), low), select_elements(flat, high + half, high)
    return linspace(low, high, integer("histogram", "bins", bins) + 1, dtype=dtype)


@composed
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """The number of elements of `a` in each bin, and the edges of the bins (as ``numpy.histogram``).

    A bin contains its lower edge, the last one also its upper edge.

    Args:
      a: real array of any shape; integers become floats.
      bins, range: as for `histogram_bin_edges`.
      weights: weights of the elements, an array of the shape of `a`; None counts each element as 1.
      density: True returns a probability density, whose integral over the bins is 1, in place of counts.
      out_sharding: sharding of the counts; None leaves it to the compiler.

    Returns:
      A float vector of counts, one for each bin, and the vector of edges, longer by one.

    Raises:
      ShapeError: `weights` are of another shape than `a`.
      ArgumentError: `bins` is neither an integer nor a vector.

    >>> jnp.histogram(jnp.array([1.0, 2.0, 2.0, 5.0]), bins=2)
    (Array([3., 1.], dtype=float32), Array([1., 3., 5.], dtype=float32))
    """
    a, bins = check("histogram", a, bins)
    if weights is None:
        (a,) = promote_inexact(a)
        counted: Any = to_dtype(1, type_of(a).dtype)
    else:
        weights = check_one("histogram", weights)
        if type_of(weights).shape != type_of(a).shape:
            raise ShapeError(f"histogram: {type_of(weights).short} as weights of {type_of(a).short}")
        a, counted = promote_inexact(a, weights)
        counted = ravel(counted)
    edges = histogram_bin_edges(a, bins, range)
    flat, edges = promote_inexact(ravel(a), edges)
    last = type_of(edges).shape[0] - 1
    # Bin 0 counts elements less than the first edge; those greater than the last edge are out of bounds, and dropped.
    # The last bin includes its right edge, as in NumPy.
    where = select_elements(equal(flat, edges[last]), np.int32(last), searchsorted(edges, flat, "right"))
    dtype, counted = type_of(counted).dtype, widen(counted)
    counts = At(zeros((last + 1,), type_of(counted).dtype))[where].add(counted, mode="drop")[1:]
    if density:
        counts = divide(divide(counts, widen(edges[1:] - edges[:-1])), r.sum(counts))
    return lay_out("histogram", round_to(counts, dtype), out_sharding), edges


@composed
def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Any, list[Any]]:
    """The number of points in each bin of a grid, and the edges along each axis (as ``numpy.histogramdd``).

    Args:
      sample: real matrix of points, one in each row.
      bins: number of bins of equal width along every axis, or a sequence with a number of bins or a vector of edges for
        each axis.
      range: sequence with the lower and upper edge of the bins, or None, for each axis.
      weights: vector of weights of the points; None counts each point as 1.
      density: True returns a probability density, whose integral is 1, in place of counts.

    Returns:
      An array of counts with an axis for each coordinate, int32 (int64 in x64 mode), or of floats with `weights` or
      `density`; and a list of the vectors of edges.

    Raises:
      ShapeError: `sample` is not a matrix, `weights` does not have one element for each row, or `bins` or `range` not
        one for each column.

    >>> jnp.histogramdd(jnp.array([[1.0, 1.0], [2.0, 5.0], [2.0, 5.0]]), bins=2)[0]
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    if weights is None:
        (sample,) = promote_inexact(*check("histogramdd", sample))
    else:
        sample, weights = check("histogramdd", sample, weights)
        if type_of(weights).shape != type_of(sample).shape[:1]:
            raise ShapeError(f"histogramdd: weights {type_of(weights).short} for points {type_of(sample).short}")
        sample, weights = promote_inexact(sample, weights)
    if type_of(sample).ndim != 2:
        raise ShapeError(
            f"histogramdd: the sample must have shape (points, coordinates), got {type_of(sample).short}",
            instead="x[:, None] for points with one coordinate",
            shapes=[type_of(sample).shape],
        )
    rank = type_of(sample).shape[1]
    if range is not None and (len(range) != rank or any(r is not None and len(r) != 2 for r in range)):
        raise ShapeError(f"histogramdd: range={range} for points with {rank} coordinates", instead="pairs or None")
    each: list[Any] = list(bins) if hasattr(bins, "__len__") else [bins] * rank  # type: ignore[arg-type]
    if len(each) != rank:
        raise ShapeError(f"histogramdd: {len(each)} bins for points with {rank} coordinates")
    flat: Any = 0
    lengths: list[int] = []
    edges: list[Any] = []
    for i, axis_bins in enumerate(each):
        x = sample[:, i]
        edge = histogram_bin_edges(x, axis_bins, None if range is None else range[i], weights)
        place = searchsorted(edge, x, side="right")
        # The last bin includes its right edge.
        place = select_elements(equal(x, edge[-1]), place - 1, place)
        # A bin more on each side counts the points outside; both are cut off below.
        count = type_of(edge).shape[0] + 1
        flat = flat * count + place
        lengths.append(count)
        edges.append(edge)
    counts = bincount(flat, weights, length=int(np.prod(lengths))).reshape(lengths)
    counts = counts[(slice(1, -1),) * rank]
    if density:
        counts = to_dtype(counts, type_of(sample).dtype)
        counts = divide(counts, r.sum(counts))
        for i, edge in enumerate(edges):
            widths = subtract(edge[1:], edge[:-1])
            counts = divide(counts, widths.reshape([-1 if i == j else 1 for j in builtins.range(rank)]))
    return counts, edges


@composed
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Any, Any, Any]:
    """The histogram of points in the plane (as ``numpy.histogram2d``): counts, edges of x, edges of y.

    Args:
      x, y: real vectors of one length, the coordinates of the points.
      bins: number of bins of equal width along both axes, or a pair with a number of bins or a vector of edges for each
        axis; one vector of more than two elements holds the edges of both axes.
      range: sequence with the lower and upper edge of the bins, or None, for each axis.
      weights: vector of weights of the points; None counts each point as 1.
      density: True returns a probability density, whose integral is 1, in place of counts.

    Returns:
      A matrix of counts, whose rows belong to bins of `x`, as `histogramdd` returns it; and the two vectors of edges.

    Raises:
      ShapeError: the vectors are of different lengths.

    >>> jnp.histogram2d(jnp.array([1.0, 2.0]), jnp.array([1.0, 5.0]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    x, y = check("histogram2d", x, y)
    # A vector of edges is for both axes.
    both: Any = [asarray(bins)] * 2 if hasattr(bins, "__len__") and len(bins) not in (1, 2) else bins
    counts, edges = histogramdd(stack(promote_inexact(x, y), 1), both, range, weights, density)
    return counts, edges[0], edges[1]
