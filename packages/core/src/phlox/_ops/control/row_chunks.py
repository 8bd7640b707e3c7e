"""`cond` with a batched index by chunks of rows: each branch runs for the rows that take it only.

The rows are ordered by branch and cut into chunks of a static size. Every chunk holds rows of one branch. A `scan` over
the chunks runs a `cond` whose index is not batched, so that derivatives and further batching follow from the rules of
these two primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._base.errors import OptionError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, memoized
from ..._trace.axes import axis_env
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axis
from ..._transform.jaxprs import batch_jaxpr, restage
from ..elementwise.arithmetic import add, div, mul, sub
from ..elementwise.logic import eq, ge, select
from ..reductions.reduce import reduce_min, reduce_sum
from ..reductions.running import cumsum
from ..structure.shape import convert, reshape
from .costs import cost, elements, obstacle
from .rows import broadcast, index_along, set_rows, take_rows, zero_array
from .scan import Scan

Branches = tuple[ClosedJaxpr, ...]

# --- the choice -----------------------------------------------------------------------------------------

#: In ns: a chunk costs two copies of buffers and the start of the branch; an element that moves to another row, its
#: reading and writing at a computed position.
_CHUNK_COST, _MOVE_COST = 30_000, 4
#: "split" must be this much cheaper by the estimate, as the estimate is coarse
_MARGIN = 1.5
#: with fewer rows than this, chunks are too small for vector instructions
_MIN_ROWS = 128


def runs_by_chunks(
    axis: BatchAxis, operands: Sequence[Any], dims: Sequence[Dim], branches: Branches, batching: str | None
) -> bool:
    """Whether the branches run by chunks of rows, as `batching` says or, if it is None, as costs do.

    The first operand is the index. Raises `OptionError` if "split" is demanded and impossible.
    """
    if batching == "select":
        return False
    reason = obstacle(axis, [branch.jaxpr for branch in branches], *operands)
    if reason is not None:
        if batching == "split":
            raise OptionError(f"cond: batching='split' under vmap, of branches with {reason}", instead="'select'")
        return False
    if batching == "split":
        return True
    batched = [typeof(x).without_axis(d) for x, d in zip(operands, dims, strict=True) if d is not None]
    return _is_cheaper(axis.size, branches, sum(elements(aval.shape) for aval in batched))


def _is_cheaper(count: int, branches: Branches, moved: int) -> bool:
    """Whether chunks are cheaper than all branches for all rows, with equally many rows for each branch.

    `moved` is the number of elements of a row of the batched operands.
    """
    if count < _MIN_ROWS:
        return False
    total = count * sum(cost(branch.jaxpr) for branch in branches)
    results = sum(elements(aval.shape) for aval in branches[0].out_avals)
    chunks = _chunk_count(count, len(branches), chunk_size(count))
    return total > _MARGIN * (total / len(branches) + chunks * _CHUNK_COST + count * _MOVE_COST * (moved + results))


# --- the rows of each chunk -----------------------------------------------------------------------------


def chunk_size(count: int) -> int:
    """The number of rows in a chunk: a power of two that makes about 32 chunks, at least 8."""
    return min(count, max(8, 1 << max(count // 32 - 1, 0).bit_length()))


def _chunk_count(count: int, branches: int, size: int) -> int:
    """The largest number of chunks that are needed: every branch may have one that is not full."""
    return -(-count // size) + branches - 1


class _Layout(NamedTuple):
    """The rows of each chunk.

    `branch` is the branch of each chunk, or the number of branches if the chunk is empty. `source` is the row at each
    position of the chunks. Positions that are left over repeat a row of the same branch, for which the branch is
    defined. `position` is the position of each row.
    """

    branch: Any
    source: Any
    position: Any


def _layout(index: Any, count: int, branches: int, size: int) -> _Layout:
    chunks = _chunk_count(count, branches, size)
    table = (count, branches)
    takes = eq(broadcast(index, table, 0), index_along(table, 1))
    ones = convert(takes, dtypes.int32)
    # The number of earlier rows that take the same branch.
    rank = sub(cumsum(ones, axis=0, reverse=False), broadcast(1, table))
    counts = reduce_sum(ones, axes=(0,))
    # The number of chunks of each branch, rounded up, and where its chunks begin and end.
    needed = div(add(counts, broadcast(size - 1, (branches,))), broadcast(size, (branches,)))
    end = cumsum(needed, axis=0, reverse=False)
    start = mul(sub(end, needed), broadcast(size, (branches,)))
    # One column of each row is 1, which the sum selects.
    position = reduce_sum(mul(ones, add(rank, broadcast(start, table, 1))), axes=(1,))
    first = reduce_min(select(takes, index_along(table, 0), broadcast(count - 1, table)), axes=(0,))
    by_chunk = (chunks, branches)
    done = convert(ge(index_along(by_chunk, 0), broadcast(end, by_chunk, 1)), dtypes.int32)
    # A chunk belongs to the branch after those whose chunks end before it. Empty chunks get the number of branches.
    branch = reduce_sum(done, axes=(1,))
    is_branch = convert(eq(broadcast(branch, by_chunk, 0), index_along(by_chunk, 1)), dtypes.int32)
    filler = reduce_sum(mul(is_branch, broadcast(first, by_chunk, 1)), axes=(1,))
    filler = reshape(broadcast(filler, (chunks, size), 0), new_sizes=(chunks * size,), dimensions=None)
    return _Layout(branch, set_rows(filler, position, index_along((count,))), position)


# --- the loop over chunks -------------------------------------------------------------------------------


def run_by_chunks(
    axis: BatchAxis,
    index: Any,
    operands: Sequence[Any],
    dims: Sequence[Dim],
    branches: Branches,
    bind: Callable[[Any, Branches, Sequence[Any]], list[Any]],
) -> list[Any]:
    """The results of the branches for all rows, batched along axis 0. `bind` binds `cond`."""
    size = chunk_size(axis.size)
    layout = _layout(index, axis.size, len(branches), size)
    chunks = typeof(layout.branch).shape[0]
    is_row = tuple(d is not None for d in dims)
    programs = _chunk_programs(branches, BatchAxis(size), is_row)
    fixed = [x for x, d in zip(operands, dims, strict=True) if d is None]
    moving = [
        take_rows(place_axis(x, d, 0, axis.size), layout.source)
        for x, d in zip(operands, dims, strict=True)
        if d is not None
    ]
    moving = [reshape(x, new_sizes=(chunks, size, *typeof(x).shape[1:]), dimensions=None) for x in moving]

    def step(*xs: Any) -> list[Any]:
        shared, which, rows = iter(xs[: len(fixed)]), xs[len(fixed)], iter(xs[len(fixed) + 1 :])
        return bind(which, programs, [next(rows if batched else shared) for batched in is_row])

    avals = [*map(typeof, fixed), *(typeof(x).without_axis(0) for x in (layout.branch, *moving))]
    make = lambda: restage(step, avals, branches[0].jaxpr)  # noqa: E731
    body = memoized(programs[0].jaxpr, ("step over chunks", *programs, tuple(avals), axis_env.get()), make)
    options = {"length": chunks, "reverse": False, "unroll": 1}
    _, stacks = Scan(body, fixed, [], [layout.branch, *moving], options).bind()
    flat = [reshape(y, new_sizes=(chunks * size, *typeof(y).shape[2:]), dimensions=None) for y in stacks]
    # Results go back to the order of the rows; those of repeated rows are not read.
    return [take_rows(y, layout.position) for y in flat]


def _chunk_programs(branches: Branches, axis: BatchAxis, is_row: tuple[bool, ...]) -> Branches:
    """The branches for a chunk of rows, and one for chunks that are not needed, which returns zeros."""
    dims = batch_dims(is_row)
    every = (True,) * len(branches[0].out_avals)
    programs = [batch_jaxpr(branch, axis, dims, every)[0] for branch in branches]
    first = programs[0]

    def nothing() -> ClosedJaxpr:
        avals: list[ShapedArray] = first.out_avals
        return restage(
            lambda *_: [zero_array(aval) for aval in avals], first.in_avals, Jaxpr([], [], [], [], name="no_rows")
        )

    return (*programs, memoized(first.jaxpr, "no rows", nothing))
