"""Reverse mode of `while`: loops over the states of another loop, of which K are stored.

    while_states   runs a loop, and stores its states at distances that double as the loop goes on
    scan_states    runs a step for each state of such a loop, in either direction

The number of turns is known only when the loop runs, and shapes must be static. `while_states` therefore has K rows for
each array of the carry. It stores the state before every turn. Once all rows are full it drops every second state, and
from then on stores half as often. Row i holds the state before turn ``i * stride``.

`scan_states` backwards needs the states in descending order. It uses the rows as a stack: the state before the next
turn is on top, or is computed from the top. The free rows take intermediate states, at the distances of binomial
checkpointing, which needs the fewest turns for a number of rows (Griewank and Walther, "Algorithm 799: revolve", 2000).
A loop with at most K turns has all its states in the rows, and computes none of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.jaxpr import ClosedJaxpr
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import fill
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes
from ..._transform.jvp import jvp
from ..._transform.padding import pads_programs
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add, div, mul, rem, sub
from ..elementwise.families import lower_function
from ..elementwise.logic import and_, eq, gt, le, lt, or_, select, select_n
from ..structure.slicing import along, dynamic_update_slice
from .batched_loop import batched_loop, masked_programs
from .rows import write_state, zero_array
from .turns import (
    Loop,
    jvp_loop,
    loop_bodies,
    rebuild_loop,
    repeat,
)

_int32 = dtypes.int32.type
INDEX = shaped((), dtypes.int32)
_ZERO, _ONE = _int32(0), _int32(1)


def _thinned(rows: Sequence[Any]) -> list[Any]:
    """The rows with every second state, in the first half of them."""
    halves = [along(x, 0, 0, typeof(x).shape[0], 2) for x in rows]
    return [dynamic_update_slice(x, half, *[_ZERO] * typeof(x).ndim) for x, half in zip(rows, halves, strict=True)]


# --- while_states: the loop that stores its states --------------------------------------------------------


def _states_types(*avals: ShapedArray, body_jaxpr: ClosedJaxpr, rows: int, **_: Any) -> list[ShapedArray]:
    outs = body_jaxpr.out_avals
    return [*outs, *[a.update(weak_type=False).with_axis(0, rows) for a in outs], INDEX, INDEX]


def _with_states(*args: Any, rows: int, **params: Any) -> list[Any]:
    """`while_states` in terms of `while`: (last carry, rows of states, number of turns, stride)."""
    loop = Loop.of(args, params)
    n = len(loop.carry)
    stored = [zero_array(a.with_axis(0, rows)) for a in loop.body.out_avals]

    # The first turns have a loop of their own, because an inner loop of one turn takes 0.1 µs more than the turn alone.
    def first(count: Any, *values: Any) -> list[Any]:
        return [add(count, _ONE), *loop.turn(values[:n]), *write_state(values[n:], values[:n], count)]

    def fits(count: Any, *values: Any) -> Any:
        return and_(lt(count, _int32(rows)), loop.goes_on(values[:n]))

    def widen(stride: Any, top: Any, count: Any, *values: Any) -> list[Any]:
        twice = mul(stride, _int32(2))

        def segment(top: Any, count: Any, *values: Any) -> list[Any]:
            turns, *carry = repeat(
                lambda turns, *carry: and_(lt(turns, twice), loop.goes_on(carry)),
                lambda turns, *carry: [add(turns, _ONE), *loop.turn(carry)],
                [_ZERO, *values[:n]],
            )
            return [add(top, _ONE), add(count, turns), *carry, *write_state(values[n:], values[:n], top)]

        start = [div(add(top, _ONE), _int32(2)), count, *values[:n], *_thinned(values[n:])]
        return [twice, *repeat(lambda top, _, *values: fits(top, *values), segment, start)]

    # The loop backwards needs free rows. It is fastest with few states, as long as all others up to the next one fit
    # into the free rows. Where there are many states, a quarter of that is enough, as few turns then run twice.
    def spares(stride: Any, top: Any) -> Any:
        fits = le(add(mul(stride, _int32(2)), div(top, _int32(2))), _int32(rows - 1))
        crowded = gt(stride, mul(_int32(4), sub(_int32(rows), top)))
        return and_(gt(stride, _ONE), or_(and_(gt(top, _int32(rows // 2)), crowded), fits))

    count, *values = repeat(fits, first, [_ZERO, *loop.carry, *stored])
    stride, _, count, *values = repeat(
        lambda stride, top, _, *values: or_(loop.goes_on(values[:n]), spares(stride, top)),
        widen,
        [_ONE, count, count, *values],
    )
    return [*values, count, stride]


def _states_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    outs, carry_has = jvp_loop(while_states, primals, tangents, params)
    n, all_n = len(carry_has), len(carry_has) + sum(carry_has)
    last, stored, index = outs[:all_n], outs[all_n : 2 * all_n], outs[2 * all_n :]
    results = [*last[:n], *stored[:n], *index]
    moved = [*carry_has, *carry_has, False, False]
    return results, fill([*last[n:], *stored[n:]], moved, [typeof(x) for x in results])


def _in_one_loop(*args: Any, rows: int, **params: Any) -> list[Any]:
    """As `_with_states`, for derivatives of derivatives: a loop with its rows in the carry is differentiated.

    One loop writes all rows in each turn, which is slow, but the second derivative of a loop then has a quarter of the
    text that it would have with `_with_states`, and compiles in a fifth of the time.
    """
    loop = Loop.of(args, params)
    n = len(loop.carry)

    def thin(stored: Sequence[Any], where: Any) -> list[Any]:
        return [select_n(where, x, thinner) for x, thinner in zip(stored, _thinned(stored), strict=True)]

    def turn(count: Any, stride: Any, *values: Any) -> list[Any]:
        full = eq(count, mul(stride, _int32(rows)))
        stride, stored = select(full, mul(stride, _int32(2)), stride), thin(values[n:], full)
        written = write_state(stored, values[:n], div(count, stride))
        is_row = eq(rem(count, stride), _ZERO)
        stored = [select_n(is_row, x, new) for x, new in zip(stored, written, strict=True)]
        return [add(count, _ONE), stride, *loop.turn(values[:n]), *stored]

    stored = [zero_array(a.with_axis(0, rows)) for a in loop.body.out_avals]
    start = [_ZERO, _ONE, *loop.carry, *stored]
    count, stride, *values = repeat(lambda _count, _stride, *values: loop.goes_on(values[:n]), turn, start)
    many = and_(gt(stride, _ONE), gt(count, mul(stride, _int32(rows // 2))))
    return [*values[:n], *thin(values[n:], many), count, select(many, mul(stride, _int32(2)), stride)]


def _states_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any
) -> tuple[list[Any], list[Dim]]:
    loop, of_operands = Loop.of(args, params), Loop.of(dims, params)
    batched = batched_loop(axis, of_operands)
    carry = place_axes(axis, loop.carry, of_operands.carry, batched.batched)
    # Where examples stop after different numbers of turns, the body computes the condition too, and has its constants.
    more_consts = [] if batched.cond_per_example is None else loop.cond_consts
    body_consts = [*more_consts, *loop.body_consts]
    outs = Loop(batched.cond, batched.body, loop.cond_consts, body_consts, carry, loop.options).bind(while_states)
    # Axis 0 of the rows counts the stored states, so their batch is axis 1.
    return outs, [*batch_dims(batched.batched), *batch_dims(batched.batched, 1), None, None]


def _states_lower(f: Function, *args: Value, **params: Any) -> list[Value]:
    # The values of `args` have physical types, so those of keys come from the jaxprs.
    avals = [*params["cond_jaxpr"].in_avals[: params["cond_nconsts"]], *params["body_jaxpr"].in_avals]
    return lower_function(f, lambda *xs: _with_states(*xs, **params), avals, args)


while_states = ProgramPrimitive(
    "while_states",
    bodies=loop_bodies,
    rebuild=rebuild_loop,
    types=_states_types,
    lower=_states_lower,
    jvp=_states_jvp,
    linearize=lambda primals, tangents, **params: jvp(lambda *xs: _in_one_loop(*xs, **params), primals, tangents),
    batch=_states_batch,
    pad=pads_programs,
    masked=lambda mask, *args, **params: while_states.rebind(args, params, masked_programs(mask, params)),
    expand=_with_states,
    unbounded=True,
)
