"""Histograms: how many numbers fall between edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import ShapeError
from .._ops.shape import own
from . import _reductions as r
from ._at import At
from ._binary import divide, equal, subtract
from ._choose import where as choose
from ._fill import linspace, zeros
from ._promote import check, promote_inexact, to_dtype, type_of
from ._searching import searchsorted
from ._shapes import ravel


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins of a histogram of `a` (as ``numpy.histogram_bin_edges``).

    Args:
      bins: how many bins of one width there are, or a vector of edges, which is the result then.
      range: the lowest and the highest edge; by default the smallest and the largest element, or half a unit around
        these if they are equal.
      weights: makes no difference.

    >>> jnp.histogram_bin_edges(jnp.array([1.0, 5.0]), bins=2)
    Array([1., 3., 5.], dtype=float32)
    """
    a, bins = check("histogram_bin_edges", a, bins)
    if type_of(bins).ndim == 1:
        return own(promote_inexact(a, bins)[1])
    (a,) = promote_inexact(a)
    dtype = type_of(a).dtype
    low, high = (r.min(a), r.max(a)) if range is None else [to_dtype(x, dtype) for x in check("histogram", *range)]
    flat = equal(low, high)
    half = to_dtype(0.5, dtype)
    low, high = choose(flat, subtract(low, half), low), choose(flat, high + half, high)
    return linspace(low, high, bins.__index__() + 1, dtype=dtype)


def histogram(a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None) -> Any:
    """How many elements of `a` are in each bin, and the edges of the bins (as ``numpy.histogram``).

    A bin contains its lower edge, the last one also its upper edge.

    Args:
      bins, range: as for `histogram_bin_edges`.
      weights: what each element counts, of the shape of `a`.
      density: divide by the total and the width of the bins, so that the integral is 1.

    Counts are floats. Raises `ShapeError` for weights of another shape.

    >>> jnp.histogram(jnp.array([1.0, 2.0, 2.0, 5.0]), bins=2)
    (Array([3., 1.], dtype=float32), Array([1., 3., 5.], dtype=float32))
    """
    a, bins = check("histogram", a, bins)
    if weights is None:
        (a,) = promote_inexact(a)
        counted: Any = to_dtype(1, type_of(a).dtype)
    else:
        (weights,) = check("histogram", weights)
        if type_of(weights).shape != type_of(a).shape:
            raise ShapeError(f"histogram: {type_of(weights).short} as weights of {type_of(a).short}")
        a, counted = promote_inexact(a, weights)
        counted = ravel(counted)
    edges = histogram_bin_edges(a, bins, range)
    flat, edges = promote_inexact(ravel(a), edges)
    last = type_of(edges).shape[0] - 1
    # Place 0 is what lies below the first edge; what lies above the last one is out of bounds, and dropped.
    where = choose(equal(flat, edges[last]), np.int32(last), searchsorted(edges, flat, "right"))
    counts = At(zeros((last + 1,), type_of(counted).dtype))[where].add(counted, mode="drop")[1:]
    if density:
        counts = divide(divide(counts, edges[1:] - edges[:-1]), r.sum(counts))
    return counts, edges
