"""The primitive behind `nonzero`: the positions of the first true elements along the last axis."""

from __future__ import annotations

import math
from typing import Any

from ..._base.errors import DtypeError, ShapeError
from ..._ir.avals import ShapedArray, shaped
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, check_whole, entries_of
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, move_axis, zeros
from ..._transform.batch import batch_of_one
from ..._transform.padding import Padding, pad_elementwise
from ..elementwise.arithmetic import min_
from ..elementwise.families import literal, lowered_as
from ..elementwise.logic import lt, select
from ..reductions.running import cumsum
from .dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from .iota import iota
from .scatter import scatter_add
from .shape import broadcast_in_dim, convert, reshape
from .slicing import along


def _first_places_types(mask: ShapedArray, size: int, index_dtype: Any) -> ShapedArray:
    if mask.dtype != bool or not mask.ndim:
        raise DtypeError(f"first_places takes bools with at least one axis, got {mask.short}")
    if size < 0:
        raise ShapeError(f"first_places: size={size}")
    return shaped((*mask.shape[:-1], size), index_dtype)


@lowered_as
def _first_places_lower(mask: Any, size: int, index_dtype: Any) -> Any:
    """The position of the i-th true element is the number of elements at which the count of true ones is at most i."""
    *before, n = typeof(mask).shape
    rows, out = math.prod(before), (*before, size)
    if not (rows and n and size):
        return broadcast_in_dim(literal(zeros(shaped((), index_dtype)), n), shape=out, broadcast_dimensions=())
    mask = reshape(mask, new_sizes=(rows, n), dimensions=None)
    counts = cumsum(convert(mask, index_dtype), axis=1, reverse=False)
    at = reshape(counts, new_sizes=(rows, n, 1), dimensions=None)
    one = literal(counts, 1)
    reached = scatter_add(
        zeros(shaped((rows, size), index_dtype)),
        at,
        broadcast_in_dim(one, shape=(rows, n), broadcast_dimensions=()),
        dimension_numbers=ScatterDimensionNumbers((), (1,), (1,), (0,), (0,)),
        indices_are_sorted=True,
        unique_indices=False,
        # Counts from `size` on are dropped.
        mode=GatherScatterMode.FILL_OR_DROP,
    )
    positions = cumsum(reached, axis=1, reverse=False)
    order = iota(dtype=index_dtype, shape=(rows, size), dimension=1)
    total = broadcast_in_dim(along(counts, 1, n - 1, n), shape=(rows, size), broadcast_dimensions=(0, 1))
    positions = select(lt(order, total), positions, literal(positions, n))
    return reshape(positions, new_sizes=out, dimensions=None)


def _first_places_sharding(out: ShapedArray, mask: ShapedArray, **_: Any) -> Entries:
    check_whole("first_places", mask, [mask.ndim - 1])
    return entries_of(mask)


def _first_places_pad(padding: Padding, eqn: JaxprEqn, mask: Any) -> Any:
    aval, dtype = eqn.invars[0].aval, eqn.params["index_dtype"]
    last = aval.ndim - 1
    positions = pad_elementwise(padding, eqn, padding.filled(mask, aval, False, (last,)))
    # Where there are no more true elements, the result is the length.
    return min_(positions, convert(padding.length(aval.shape[last]), dtype))


#: The positions of the first `size` true elements along the last axis, and its length where there are no more.
first_places = Primitive(
    "first_places",
    types=_first_places_types,
    sharding=_first_places_sharding,
    lower=_first_places_lower,
    jvp=lambda primals, tangents, **params: (
        out := first_places.bind(*primals, **params),
        Zero(typeof(out).tangent()),
    ),
    batch=batch_of_one(lambda x, dim, **params: (first_places(move_axis(x, dim, 0), **params), 0)),
    pad=_first_places_pad,
    nan_checked=False,
)
