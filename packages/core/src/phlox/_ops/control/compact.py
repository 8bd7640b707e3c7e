"""`while` with a batched condition in which finished rows stop costing.

The loop runs for all rows until 1/32 of them is left. The rows that go on are then copied into a batch of that size.
The loop continues there in the same way, and its results are written back into the larger batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir import dtypes
from ..._ir.jaxpr import ClosedJaxpr, memoized
from ..._ir.primitive import Primitive
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes
from ..._transform.jaxprs import batch_jaxpr, restage
from ..elementwise.arithmetic import add, sub
from ..elementwise.logic import clamp, gt, select
from ..random.keys import is_key
from ..reductions.reduce import reduce_sum
from ..reductions.running import cumsum
from ..structure.shape import convert
from .batched_loop import update_where
from .costs import cost, count_equations, obstacle
from .rows import broadcast, index_along, set_rows, take_rows
from .turns import Loop

#: Each batch has 1/32 of the rows of the one before: 1,000 rows make 3 batches. The body is compiled once for each, and
#: XLA's compile time is what a smaller factor costs.
_FACTOR = 32
#: smaller batches are not compacted: their turns cost little more than those of one row
_MIN_ROWS = 64
#: A turn of all rows takes at least this time in ns: the further sizes of the body take a second to compile.
_MIN_TURN_COST = 100_000
#: a body with more equations is not compacted, as it is compiled once for each size
_MAX_EQUATIONS = 100


def compacts(axis: BatchAxis, cond: ClosedJaxpr, body: ClosedJaxpr, operands: Sequence[Any]) -> bool:
    """Whether finished rows are removed: the body is expensive, and small enough to be compiled several times."""
    jaxprs = [cond.jaxpr, body.jaxpr]
    # First, as a symbolic size, which is one, cannot be compared.
    if obstacle(axis, jaxprs, *operands) is not None or any(is_key(typeof(x)) for x in operands):
        return False
    if axis.size < _MIN_ROWS or sum(map(count_equations, jaxprs)) > _MAX_EQUATIONS:
        return False
    return axis.size * sum(map(cost, jaxprs)) >= _MIN_TURN_COST


def _smaller_size(count: int) -> int:
    """The size of the batch after one of `count` rows: a power of two, or 0 after one row."""
    return 0 if count == 1 else 1 << max((count - 1) // _FACTOR, 0).bit_length()


def run_compacted(primitive: Primitive, axis: BatchAxis, loop: Loop, dims: Loop) -> list[Any]:
    """The last carry of a `while` loop over rows, in batches of decreasing sizes. Axis 0 of the carry is the batch."""
    cond_batched, body_batched = ([d is not None for d in part] for part in (dims.cond_consts, dims.body_consts))
    loop = loop._replace(
        cond_consts=place_axes(axis, loop.cond_consts, dims.cond_consts, cond_batched),
        body_consts=place_axes(axis, loop.body_consts, dims.body_consts, body_batched),
    )
    return _run_rows(primitive, loop, batch_dims(cond_batched), batch_dims(body_batched), axis.size)


def _run_rows(
    primitive: Primitive, loop: Loop, cond_dims: tuple[Dim, ...], body_dims: tuple[Dim, ...], count: int
) -> list[Any]:
    smaller, axis, carry_dims = _smaller_size(count), BatchAxis(count), (0,) * len(loop.carry)
    go_on, _ = batch_jaxpr(loop.cond, axis, (*cond_dims, *carry_dims), (True,))
    turn, _ = batch_jaxpr(loop.body, axis, (*body_dims, *carry_dims), (True,) * len(carry_dims))
    # Rows that have ended keep their carry until the batch is compacted.
    turn = update_where(go_on, turn, len(loop.cond_consts), body_dims)
    consts = [*loop.cond_consts, *loop.body_consts]
    carry = loop._replace(cond=_while_more_than(go_on, smaller), body=turn, body_consts=consts).bind(primitive)
    if not smaller:
        return carry
    (goes_on,) = eval_jaxpr(go_on.jaxpr, go_on.consts, *loop.cond_consts, *carry)
    rows = _remaining_rows(goes_on, count, smaller)
    # Positions that are left over have rows out of bounds: any row is read for them, and none is written.
    inside = clamp(dtypes.int32.type(0), rows, dtypes.int32.type(count - 1))

    def fewer(values: Sequence[Any], value_dims: Sequence[Dim]) -> list[Any]:
        return [x if d is None else take_rows(x, inside) for x, d in zip(values, value_dims, strict=True)]

    remaining = loop._replace(
        cond_consts=fewer(loop.cond_consts, cond_dims),
        body_consts=fewer(loop.body_consts, body_dims),
        carry=fewer(carry, carry_dims),
    )
    last = _run_rows(primitive, remaining, cond_dims, body_dims, smaller)
    return [set_rows(x, rows, y) for x, y in zip(carry, last, strict=True)]


def _while_more_than(go_on: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """The condition that more than `count` rows go on."""

    def fun(*xs: Any) -> list[Any]:
        (goes_on,) = eval_jaxpr(go_on.jaxpr, go_on.consts, *xs)
        return [gt(reduce_sum(convert(goes_on, dtypes.int32), axes=(0,)), dtypes.int32.type(count))]

    key = ("more than", count, axis_env.get())
    return memoized(go_on.jaxpr, key, lambda: restage(fun, go_on.in_avals, go_on.jaxpr))


def _remaining_rows(goes_on: Any, count: int, size: int) -> Any:
    """A vector of this size with the rows of `count` that go on. Further elements are out of bounds, and differ."""
    index = index_along((count,))
    rank = sub(cumsum(convert(goes_on, dtypes.int32), axis=0, reverse=False), broadcast(1, (count,)))
    # Rows that have ended get different ones out of bounds, as `set_rows` promises XLA that no two indices are equal.
    position = select(goes_on, rank, add(index, broadcast(count, (count,))))
    return set_rows(add(index_along((size,)), broadcast(count, (size,))), position, index)
