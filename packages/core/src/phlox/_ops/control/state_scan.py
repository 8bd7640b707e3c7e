"""The `scan_states` primitive: runs a step for each state of a loop that `while_states` has run.

    (constants, rows of states, carry) -> carry

It is the linear half of `while`: forward it pushes tangents through the turns, and its transpose pulls cotangents back
through them. See `loop_states` for how the states are found.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._base.errors import DerivativeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, hoisted, memoized, only, with_constants
from ..._ir.primitive import Primitive
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Body, Operands, ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, fill, instantiate, present_arrays, zeros
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes, place_axis
from ..._transform.jaxprs import batch_jaxpr, jvp_jaxpr
from ..._transform.jvp import jvp
from ..._transform.padding import pad_elementwise, pads_programs
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add, div, max_, min_, mul, rem, sub
from ..elementwise.families import lower_function
from ..elementwise.logic import and_, eq, ge, gt, le, lt, select
from ..reductions.reduce import reduce_max
from ..structure.iota import iota
from ..structure.shape import broadcast_in_dim, convert, squeeze
from .batched_loop import batched_loop, masked_programs, update_where
from .loop_states import INDEX
from .masked import masked_jaxpr
from .rows import row_at, rows_at, write_state, zero_array
from .turns import Loop, backward_step, carry_fixed_point, jvp_step, repeat, split_by, with_ignored_inputs

_int32 = dtypes.int32.type
_ZERO, _ONE = _int32(0), _int32(1)


class StateScan(NamedTuple):
    """The programs and the operands of `scan_states`: a loop with its stored states, and a step for each state.

    `counts` are the number of turns and the stride of the rows. The operands may also be tangents, or axes of a batch.
    """

    cond: ClosedJaxpr
    body: ClosedJaxpr
    step: ClosedJaxpr
    reverse: bool
    cond_consts: Sequence[Any]
    body_consts: Sequence[Any]
    states: Sequence[Any]
    counts: Sequence[Any]
    step_consts: Sequence[Any]
    carry: Sequence[Any]

    @classmethod
    def of(cls, values: Sequence[Any], params: dict[str, Any]) -> StateScan:
        """The scan with these parameters, and values for its operands."""
        cond, body, step = params["cond_jaxpr"], params["body_jaxpr"], params["step_jaxpr"]
        return cls(cond, body, step, params["reverse"], *split_by(values, params["lengths"]))

    @classmethod
    def of_loop(
        cls,
        loop: Loop,
        states: Sequence[Any],
        counts: Sequence[Any],
        step: ClosedJaxpr,
        step_consts: Sequence[Any],
        carry: Sequence[Any],
    ) -> StateScan:
        """The scan from the first to the last state of a loop."""
        return cls(
            loop.cond, loop.body, step, False, loop.cond_consts, loop.body_consts, states, counts, step_consts, carry
        )

    @property
    def loop(self) -> Loop:
        """The loop whose states are scanned, with the states as carry."""
        return Loop(self.cond, self.body, self.cond_consts, self.body_consts, self.states, {})

    def operation(self) -> Operands:
        """The operands and parameters; the constants of the closed jaxprs become operands."""
        operands = (
            [*self.cond.consts, *self.cond_consts],
            [*self.body.consts, *self.body_consts],
            self.states,
            self.counts,
            [*self.step.consts, *self.step_consts],
            self.carry,
        )
        params = {
            "cond_jaxpr": hoisted(self.cond),
            "body_jaxpr": hoisted(self.body),
            "step_jaxpr": hoisted(self.step),
            "lengths": tuple(map(len, operands)),
            "reverse": self.reverse,
        }
        return [x for part in operands for x in part], params

    def bind(self) -> list[Any]:
        """Binds `scan_states`."""
        args, params = self.operation()
        return scan_states.bind(*args, **params)


def _scan_states_bodies(params: dict[str, Any]) -> list[Body]:
    """Only the step, a user's backward rule, uses references."""
    _, _, _, _, nstep, _ = params["lengths"]
    return [Body(params["cond_jaxpr"], None), Body(params["body_jaxpr"], None), Body(params["step_jaxpr"], nstep)]


def _scan_states_rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    scan, (cond, body, step) = StateScan.of(args, params), programs
    return scan._replace(cond=cond, body=body, step=step, carry=[*carried, *scan.carry]).operation()


def _scan_states_types(*avals: ShapedArray, step_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return step_jaxpr.out_avals


# --- as loops -------------------------------------------------------------------------------------------


def _as_loops(*args: Any, differentiated: bool = False, **params: Any) -> list[Any]:
    """`scan_states` in terms of `while`: in a form that is run, or in one that is differentiated."""
    o = StateScan.of(args, params)

    def step(carry: Sequence[Any], state: Sequence[Any]) -> list[Any]:
        return eval_jaxpr(o.step.jaxpr, o.step.consts, *o.step_consts, *carry, *state)

    if not o.reverse:
        return _ascending(o.loop, step, o)
    return (_descending_from_rows if differentiated else _descending)(o.loop, step, o)


Step = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def _ascending(loop: Loop, step: Step, o: StateScan) -> list[Any]:
    """Runs the steps from the first turn to the last. Each turn of the loop runs again, before its step."""
    n, (count, _) = len(o.states), o.counts

    def turn(i: Any, *values: Any) -> list[Any]:
        return [add(i, _ONE), *loop.turn(values[:n]), *step(values[n:], values[:n])]

    start = [_ZERO, *_read(o.states, _ZERO), *o.carry]
    return repeat(lambda i, *_: lt(i, count), turn, start)[n + 1 :]


def _descending(loop: Loop, step: Step, o: StateScan) -> list[Any]:
    """Runs the steps from the last turn to the first.

    The rows are a stack of states in ascending order; `top` is the row on top, and `turns` has the turn of each row. A
    round fills the free rows with the states up to that before the last turn that is left, and takes the steps of those
    that follow each other. Only a jump writes to `turns`: all later rows are read in the same round.
    """
    n, (count, stride) = len(o.states), o.counts
    rows = typeof(o.states[0]).shape[0]
    last = _int32(rows - 1)
    whole = eq(stride, _ONE)

    def round_(left: Any, top: Any, turns: Any, *values: Any) -> list[Any]:
        goal = sub(left, _ONE)

        def is_far(top: Any, turn: Any, *_: Any) -> Any:
            return gt(sub(goal, turn), sub(last, top))

        def jump(top: Any, turn: Any, turns: Any, *states: Any) -> list[Any]:
            far = _jump(sub(goal, turn), sub(last, top))
            state = _advance(loop, far, _read(states, top))
            top, turn = add(top, _ONE), add(turn, far)
            return [top, turn, *write_state([turns, *states], [turn, *state], top)]

        turn = _read([turns], top)[0]
        base, turn, turns, *states = repeat(is_far, jump, [top, turn, turns, *values[:n]])
        end = add(base, sub(goal, turn))
        # The state is carried along, because a loop that reads and writes one array copies it in each turn.
        top, *values_ = repeat(
            lambda top, *_: lt(top, end),
            lambda top, *values: _push(loop, top, values[:n], values[n:]),
            [base, *_read(states, base), *states],
        )
        states = values_[n:]
        # With stride 1 every state is stored, and one round takes all steps.
        base = select(whole, _ZERO, base)
        below, *carry = repeat(
            lambda top, *_: ge(top, base),
            lambda top, *carry: [sub(top, _ONE), *step(carry, _read(states, top))],
            [top, *values[n:]],
        )
        return [sub(left, sub(top, below)), below, turns, *states, *carry]

    used = div(add(count, sub(stride, _ONE)), stride)
    counts = iota(dtype=dtypes.int32, shape=(rows,), dimension=0)
    turns = mul(counts, broadcast_in_dim(stride, shape=(rows,), broadcast_dimensions=()))
    start = [count, sub(used, _ONE), turns, *o.states, *o.carry]
    return repeat(lambda left, *_: gt(left, _ZERO), round_, start)[3 + n :]


def _advance(loop: Loop, turns: Any, state: Sequence[Any]) -> list[Any]:
    """The state after this number of turns."""
    return repeat(lambda i, *_: lt(i, turns), lambda i, *state: [add(i, _ONE), *loop.turn(state)], [_ZERO, *state])[1:]


def _push(loop: Loop, top: Any, state: Sequence[Any], states: Sequence[Any]) -> list[Any]:
    """Puts the state after `state`, which is on top, on the stack."""
    state, top = loop.turn(state), add(top, _ONE)
    return [top, *state, *write_state(states, state, top)]


def _read(rows: Sequence[Any], at: Any) -> list[Any]:
    """The state in row `at`."""
    return [row_at(rows_at(x, at, 1), 0) for x in rows]


def _jump(distance: Any, free: Any) -> Any:
    """The number of turns to the next state that is stored, on the way to a state at this distance.

    With `free` rows, and at most r times each turn, states at distances below ``binomial(free + r, r)`` can be reached.
    With the smallest such r the first jump is ``binomial(free + r - 1, r - 1)``.
    """
    # Binomials soon exceed int32. A jump need not be exact: any one is right, some cost more turns.
    goal, rows = convert(distance, dtypes.float32), convert(free, dtypes.float32)
    one = dtypes.float32.type(1)

    def wider(r: Any, _: Any, reach: Any) -> list[Any]:
        return [add(r, one), reach, div(mul(reach, add(rows, r)), r)]

    # Few rows and a long way need a large r; past the limit halves of the way do.
    _, jump, reach = repeat(
        lambda r, _, reach: and_(le(reach, goal), lt(r, dtypes.float32.type(_LIMIT))), wider, [one, one, one]
    )
    jump = min_(max_(convert(jump, dtypes.int32), _ONE), distance)
    jump = select(le(reach, goal), max_(jump, div(distance, _int32(2))), jump)
    return select(le(free, _ONE), distance, jump)


#: the largest r that `_jump` tries
_LIMIT = 64


def _scan_states_lower(f: Function, *args: Value, **params: Any) -> list[Value]:
    ncond, nbody, _, _, nstep, ncarry = params["lengths"]
    rows = args[ncond + nbody].aval.shape[0]
    step = params["step_jaxpr"].in_avals
    avals = [
        *params["cond_jaxpr"].in_avals[:ncond],
        *params["body_jaxpr"].in_avals[:nbody],
        *[a.with_axis(0, rows) for a in params["body_jaxpr"].out_avals],
        *[INDEX, INDEX],
        *step[: nstep + ncarry],
    ]
    return lower_function(f, lambda *xs: _as_loops(*xs, **params), avals, args)


# --- derivatives ----------------------------------------------------------------------------------------


def _scan_states_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    o, t = StateScan.of(primals, params), StateScan.of(tangents, params)
    parts = (t.body_consts, t.states, t.step_consts, t.carry)
    const_has, states_have, step_has, start_has = (tuple(type(x) is not Zero for x in part) for part in parts)
    state_has = carry_fixed_point(states_have, lambda known: jvp_jaxpr(o.body, (*const_has, *known))[1])
    carry_has = carry_fixed_point(start_has, lambda known: jvp_jaxpr(o.step, (*step_has, *known, *state_has))[1])
    derived = o._replace(
        cond=with_ignored_inputs(o.cond, [a.tangent() for a in only(o.body.out_avals, state_has)]),
        body=jvp_step(o.body, const_has, state_has, ())[0],
        step=jvp_step(o.step, step_has, carry_has, state_has)[0],
        body_consts=[*o.body_consts, *drop_zeros(t.body_consts)],
        states=[*o.states, *present_arrays(t.states, state_has)],
        step_consts=[*o.step_consts, *drop_zeros(t.step_consts)],
        carry=[*o.carry, *present_arrays(t.carry, carry_has)],
    )
    outs, count = derived.bind(), len(o.carry)
    return outs[:count], fill(outs[count:], carry_has, o.step.out_avals)


def _scan_states_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    return jvp(lambda *xs: _as_loops(*xs, **params, differentiated=True), primals, tangents)


def _descending_from_rows(loop: Loop, step: Step, o: StateScan) -> list[Any]:
    """As `_descending`, for derivatives of derivatives: each state is computed from the row before it.

    The loops are differentiated as such, and those of `_descending` would give a program of ten times the size.
    """
    count, stride = o.counts

    def turn(left: Any, *carry: Any) -> list[Any]:
        left = sub(left, _ONE)
        state = _advance(loop, rem(left, stride), _read(o.states, div(left, stride)))
        return [left, *step(carry, state)]

    return repeat(lambda left, *_: gt(left, _ZERO), turn, [count, *o.carry])[1:]


def _scan_states_transpose(cotangents: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    """The same states in the other direction, with cotangents of constants (summed) and of the carry as carry."""
    o = StateScan.of(args, params)
    before = sum(params["lengths"][:4])
    if any(is_linear(x) for x in args[:before]):
        raise DerivativeError("scan_states is linear in the constants of its step and its carry only")
    const_lin = tuple(map(is_linear, o.step_consts))
    linear = (*const_lin, *(True for _ in o.carry), *(False for _ in o.states))
    step = memoized(
        o.step.jaxpr,
        ("transposed step", linear, axis_env.get()),
        lambda: backward_step(o.step, linear, len(const_lin), len(o.carry), ()),
    )
    sums = [zeros(x.aval.cotangent()) for x in o.step_consts if is_linear(x)]
    known = [x for x in o.step_consts if not is_linear(x)]
    carry = [*sums, *map(instantiate, cotangents)]
    outs = o._replace(step=step, reverse=not o.reverse, step_consts=known, carry=carry).bind()
    total = iter(outs[: len(sums)])
    return [
        *[None] * before,
        *(next(total) if lin else None for lin in const_lin),
        *(ct if is_linear(x) else None for x, ct in zip(o.carry, outs[len(sums) :], strict=True)),
    ]


# --- vmap -----------------------------------------------------------------------------------------------


def _scan_states_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any
) -> tuple[list[Any], list[Dim]]:
    o, d = StateScan.of(args, params), StateScan.of(dims, params)
    if any(x is not None for x in d.counts):
        outs = _row_by_row(functools.partial(scan_states.bind, **params), axis.size, args, dims, o.step.out_avals)
        return outs, [0] * len(outs)
    loop = batched_loop(axis, d.loop)
    states = place_axes(axis, o.states, d.states, loop.batched, 1)
    state_dims = batch_dims(loop.batched)

    def after(batched: tuple[bool, ...]) -> list[bool]:
        if loop.cond_per_example is not None:
            return [True] * len(batched)
        dims = (*d.step_consts, *batch_dims(batched), *state_dims)
        return [x is not None for x in batch_jaxpr(o.step, axis, dims)[1]]

    batched = carry_fixed_point([x is not None for x in d.carry], after)
    carry_dims = batch_dims(batched)
    step, _ = batch_jaxpr(o.step, axis, (*d.step_consts, *carry_dims, *state_dims), batched)
    scan = o._replace(
        cond=loop.cond, body=loop.body, step=step, states=states, carry=place_axes(axis, o.carry, d.carry, batched)
    )
    if loop.cond_per_example is not None:
        scan = scan._replace(
            step=update_where(loop.cond_per_example, step, len(o.cond_consts), d.step_consts),
            body_consts=[*o.cond_consts, *o.body_consts],
            step_consts=[*o.cond_consts, *o.step_consts],
        )
    return scan.bind(), list(carry_dims)


def _row_by_row(
    run: Callable[..., Sequence[Any]], size: int, args: Sequence[Any], dims: Sequence[Dim], avals: Sequence[ShapedArray]
) -> list[Any]:
    """The results, of types `avals`, of `run` for each row: for loops that are not one loop over a batch."""
    args = [x if d is None else place_axis(x, d, 0, size) for x, d in zip(args, dims, strict=True)]

    def turn(i: Any, *outs: Any) -> list[Any]:
        row = [x if d is None else squeeze(rows_at(x, i, 1), dimensions=(0,)) for x, d in zip(args, dims, strict=True)]
        return [add(i, _ONE), *write_state(outs, run(*row), i)]

    start = [zero_array(aval.with_axis(0, size)) for aval in avals]
    return repeat(lambda i, *_: lt(i, _int32(size)), turn, [_ZERO, *start])[1:]


def _scan_states_masked(mask: Any, *args: Any, **params: Any) -> list[Any]:
    o = StateScan.of(args, params)
    # `cond` has put the counts of other branches into the rows that do not run this loop.
    ends = zip(o.counts, (_ZERO, _ONE), strict=True)
    counts = [common_count.bind(select(mask, count, end)) for count, end in ends]
    cond, body = masked_programs(mask, params)
    step = with_constants(masked_jaxpr(o.step, typeof(mask)), [mask])
    return o._replace(cond=cond, body=body, step=step, counts=counts).bind()


#: The count of a loop, of which every row of a batch has the same or, where it does not take part, a smaller one.
common_count = Primitive(
    "common_count",
    remembers=True,
    types=lambda count: count,
    lower=lambda f, count: count,
    batch=lambda axis, args, dims: (common_count.bind(reduce_max(args[0], axes=(dims[0],))), None),
    pad=pad_elementwise,
    nan_checked=False,
)


scan_states = ProgramPrimitive(
    "scan_states",
    bodies=_scan_states_bodies,
    rebuild=_scan_states_rebuild,
    keeps_types=True,
    types=_scan_states_types,
    lower=_scan_states_lower,
    jvp=_scan_states_jvp,
    linearize=_scan_states_linearize,
    transpose=_scan_states_transpose,
    batch=_scan_states_batch,
    pad=pads_programs,
    masked=_scan_states_masked,
    expand=_as_loops,
    unbounded=True,
)
