"""The `while` primitive: runs its body jaxpr as long as its condition jaxpr returns true.

Both jaxprs take their own constants, then the carry. The number of iterations is not known before the loop runs, so
reverse mode cannot store the residuals of each. It stores some states and computes the others again: see `loop_states`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..._base.errors import DerivativeError
from ..._ir.avals import ShapedArray
from ..._ir.dependence import dependent_outputs
from ..._ir.effects import ordered, refuse_io
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, effects_inside, memoized, narrowed, only, prune
from ..._ir.key_uses import KeyUses, repeated
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import ProgramPrimitive, RefValues
from ..._trace.refs import accesses
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, fill, present_arrays
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes
from ..._transform.jaxprs import linearize_jaxpr, restage, unused_inputs
from ..._transform.manual_axes import as_varying
from ..._transform.padding import pads_programs
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from .batched_loop import batched_loop, masked_programs
from .call import call
from .compact import compacts, run_compacted
from .loop_states import while_states
from .once import Steps
from .safe_rows import with_safe_rows
from .state_scan import StateScan, scan_states
from .turns import (
    Loop as Loop,
    carry_fixed_point,
    jvp_loop,
    linear_turn,
    loop_bodies,
    rebuild_loop,
    repeat as repeat,  # importing it from here also defines `while`
    split_by,
)


def _while_types(*avals: ShapedArray, body_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return body_jaxpr.out_avals


def _while_lower(f: Function, *args: Value, **params: Any) -> list[Value]:
    loop = Loop.of(args, params)
    if ordered(effects_inside(params)):
        return _ordered_while(f, loop)
    if not loop.carry:  # the condition is constant: the loop runs never, or forever
        return []
    avals = [x.aval for x in loop.carry]
    # Regions may use values from outside, so the constants need no place in the carry.
    go_on = f.region(
        avals, lambda g, *xs: lower_jaxpr(g, loop.cond.jaxpr, [*loop.cond_consts, *xs]), names=("while", "cond")
    )
    turn = f.region(
        avals, lambda g, *xs: lower_jaxpr(g, loop.body.jaxpr, [*loop.body_consts, *xs]), names=("while", "body")
    )
    return f.op("stablehlo.while", loop.carry, avals, "", [go_on, turn])


def _ordered_while(f: Function, loop: Loop) -> list[Value]:
    """The loop with a token and the value of the condition in the carry.

    Ordered effects need a token, and the condition region of stablehlo.while cannot return one. The condition is
    therefore computed before the loop and at the end of the body.
    """

    def goes_on(g: Function, xs: Sequence[Value]) -> Value:
        return lower_jaxpr(g, loop.cond.jaxpr, [*loop.cond_consts, *xs])[0]

    def turn(g: Function, _: Value, token: Value, *xs: Value) -> list[Value]:
        g.token = token
        outs = lower_jaxpr(g, loop.body.jaxpr, [*loop.body_consts, *xs])
        test = goes_on(g, outs)
        return [test, g.order(), *outs]

    first = goes_on(f, loop.carry)
    start = [first, f.order(), *loop.carry]
    avals = [x.aval for x in start]
    regions = [f.region(avals, lambda g, test, *_: [test]), f.region(avals, turn, names=("while", "body"))]
    _, f.token, *outs = f.op("stablehlo.while", start, avals, "", regions)
    return outs


def _while_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    outs, carry_has = jvp_loop(while_p, primals, tangents, params)
    count = len(carry_has)
    return outs[:count], fill(outs[count:], carry_has, [typeof(x) for x in outs[:count]])


def _while_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], checkpoints: int | None = None, **params: Any
) -> tuple[list[Any], list[Any]]:
    """The loop with its states stored, and a scan over these states that carries the tangents."""
    loop, t = Loop.of(primals, params), Loop.of(tangents, params)
    const_has, start_has = t.has_tangents()
    # A tangent may reach other values of the carry in later turns.
    carry_has = carry_fixed_point(start_has, lambda known: linearize_jaxpr(loop.body, (*const_has, *known)).nonzero)
    if not any(carry_has):  # no tangent passes through the carry, so no states have to be stored
        outs = while_p.bind(*primals, **params)
        return outs, [Zero(typeof(x).tangent()) for x in outs]
    refuse_io(effects_inside(params), "the derivative of while_loop", "which runs turns again")
    cond_axes = loop.cond.out_avals[0].vma
    if cond_axes:
        body = _with_varying_consts(loop.body, len(const_has), cond_axes)
        avals = body.in_avals[: len(const_has)]
        loop = loop._replace(body=body, body_consts=list(map(as_varying, loop.body_consts, avals)))
        t = t._replace(body_consts=list(map(as_varying, t.body_consts, avals)))
    outs, states, index = _run_with_states(loop, checkpoints)
    step = linear_turn(with_safe_rows(loop.body), const_has, carry_has)
    step_consts = [*loop.body_consts, *drop_zeros(t.body_consts)]
    carry = present_arrays(t.carry, carry_has)
    last = StateScan.of_loop(loop, states, index, step, step_consts, carry).bind()
    return outs, fill(last, carry_has, loop.body.out_avals)


def _run_with_states(loop: Loop, checkpoints: int | None) -> tuple[list[Any], list[Any], list[Any]]:
    """The last carry of a loop, its stored states, and (number of turns, stride)."""
    avals = loop.body.out_avals
    outs = loop._replace(options={"rows": stored_states(avals, checkpoints)}).bind(while_states)
    n = len(avals)
    return outs[:n], outs[n : 2 * n], outs[2 * n :]


def _with_varying_consts(body: ClosedJaxpr, nconsts: int, axes: frozenset[Any]) -> ClosedJaxpr:
    """The body with constants that vary along `axes`, along which devices take different numbers of turns.

    The cotangent of a constant that is equal on all devices is a sum over them. In the loop backwards the devices that
    take more turns would wait forever for the others, so the sum must come after the loop.
    """
    avals = [a.varying(a.vma | axes) for a in body.in_avals[:nconsts]]
    fun = lambda *xs: eval_jaxpr(body.jaxpr, body.consts, *xs)  # noqa: E731
    make = lambda: restage(fun, [*avals, *body.in_avals[nconsts:]], body.jaxpr)  # noqa: E731
    return memoized(body.jaxpr, ("varying constants", nconsts, axes, axis_env.get()), make)


def _while_transpose(cotangents: Sequence[Any], *args: Any, checkpoints: int | None = None, **params: Any) -> list[Any]:
    """The transpose of a loop that is linear in some of its carry. The other values of the carry, such as a counter,
    are the states of a loop of their own; `scan_states` runs the linear part for each of them."""
    linear = _while_dependent(list(map(is_linear, args)), params)
    if all(linear):
        raise DerivativeError("while_loop is not linear: its condition depends on what it is transposed for")
    known = [not flag for flag in linear]
    loop = Loop.of(args, params)
    narrow = _narrowed_loop(loop, known)
    _, states, index = _run_with_states(narrow, checkpoints)
    consts, carry = split_by(loop.body.invars, (len(loop.body_consts), len(linear)))
    invars, outvars = [*consts, *only(carry, linear), *only(carry, known)], only(loop.body.outvars, linear)
    step = loop.body.replace(jaxpr=prune(loop.body.jaxpr.replace(invars=invars, outvars=outvars))[0])
    scan = StateScan.of_loop(narrow, states, index, step, loop.body_consts, only(loop.carry, linear))
    operands, scan_params = scan.operation()
    outs = scan_states.rule("transpose")(only(cotangents, linear), *operands, **scan_params)
    of_consts, of_carry = outs[-len(consts) - sum(linear) : -sum(linear)], iter(outs[-sum(linear) :])
    return [*[None] * len(loop.cond_consts), *of_consts, *(next(of_carry) if flag else None for flag in linear)]


def _while_dependent(operands: Sequence[bool], params: dict[str, Any]) -> list[bool]:
    flags = Loop.of(operands, params)
    cond, body = flags.cond.jaxpr, flags.body.jaxpr
    carried = carry_fixed_point(flags.carry, lambda known: dependent_outputs(body, [*flags.body_consts, *known]))
    # If the condition depends on a marked operand, the number of turns does, and every result with it.
    is_cond_dependent = any(dependent_outputs(cond, [*flags.cond_consts, *carried]))
    return [is_cond_dependent or flag for flag in carried]


def _while_drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    if all(used):
        return eqn
    loop = Loop.of(eqn.invars, eqn.params)
    # Values that the condition reads stay in the carry, though no result needs them.
    tested = [not unread for unread in unused_inputs(loop.cond.jaxpr)[len(loop.cond_consts) :]]
    start = [a or b for a, b in zip(used, tested, strict=True)]
    nconsts = len(loop.body_consts)
    carried = carry_fixed_point(start, lambda known: narrowed(loop.body, known)[1][nconsts:])
    if all(carried):
        return eqn
    invars, params = _narrowed_loop(loop, carried).operation()
    return eqn.replace(invars=invars, outvars=only(eqn.outvars, carried), params=params)


def _narrowed_loop(loop: Loop, carried: Sequence[bool]) -> Loop:
    """The loop with the carries marked in `carried` alone, which do not depend on the others."""
    nconsts, cond = len(loop.body_consts), loop.cond
    test = [*[True] * len(loop.cond_consts), *carried]
    make = lambda: cond.replace(jaxpr=cond.jaxpr.replace(invars=only(cond.invars, test)))  # noqa: E731
    body, read = narrowed(loop.body, carried, [*[False] * nconsts, *carried])
    return loop._replace(
        cond=memoized(cond.jaxpr, ("fewer carries", tuple(test)), make),
        body=body,
        body_consts=only(loop.body_consts, read[:nconsts]),
        carry=only(loop.carry, carried),
    )


#: The default number of stored states: as many as have this many bytes together, within the limits. One megabyte stays
#: in the cache of a core. With 1,024 rows XLA runs a short loop on its thread pool: 18 µs more a gradient.
_STATE_BYTES, _MIN_ROWS, _MAX_ROWS = 2**20, 64, 512


def stored_states(avals: Sequence[ShapedArray], checkpoints: int | None) -> int:
    """The number of states of these types that reverse mode stores, which is even."""
    if checkpoints is not None:
        # Even, as rows that are full are thinned to half of them.
        return checkpoints - checkpoints % 2
    size = sum(a.physical.size * a.physical.dtype.itemsize for a in avals)
    rows = _MAX_ROWS
    while rows > _MIN_ROWS and rows * size > _STATE_BYTES:
        rows //= 2
    return rows


def _while_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any
) -> tuple[list[Any], list[Dim]]:
    loop, of_operands = Loop.of(args, params), Loop.of(dims, params)
    batched = batched_loop(axis, of_operands)
    carry_dims = list(batch_dims(batched.batched))
    loop = loop._replace(carry=place_axes(axis, loop.carry, of_operands.carry, batched.batched))
    if batched.cond_per_example is not None:
        refuse_io(effects_inside(params), "vmap of while_loop", "which goes on for examples that have stopped")
        if compacts(axis, loop.cond, loop.body, args):
            return run_compacted(while_p, axis, loop, of_operands), carry_dims
        # The batched body computes the condition too, to keep the values of examples that have stopped.
        loop = loop._replace(body_consts=[*loop.cond_consts, *loop.body_consts])
    return loop._replace(cond=batched.cond, body=batched.body).bind(while_p), carry_dims


def _while_steps(*args: Any, **params: Any) -> Steps:
    loop = Loop.of(args, params)
    carry = loop.carry
    for turn in itertools.count():
        (goes_on,) = yield loop.cond, [*loop.cond_consts, *carry], f"the condition of while, turn {turn}"
        if not goes_on:
            return
        carry = yield loop.body, [*loop.body_consts, *carry], f"turn {turn} of while"


def _while_checked(checks: Any, *args: Any, **params: Any) -> list[Any]:
    loop = Loop.of(args, params)
    ncond, both = len(loop.cond_consts), len(loop.cond_consts) + len(loop.body_consts)
    test_avals = [typeof(x) for x in (*loop.cond_consts, *loop.carry)]
    test, tree = checks.program(loop.cond, test_avals, ncond)
    checks.results(call(test, [*loop.cond_consts, *checks.leaves, *loop.carry], name="condition"), tree)
    turn = _turn(loop.cond, ncond, loop.body)
    # Traced twice: the first time shows which errors a turn can raise, for which the carry needs places.
    checks.make_room(checks.program(turn, turn.in_avals, both)[1])
    step, tree = checks.program(turn, turn.in_avals, both)
    # `turn` computes the condition as well, so that the step contains its checks; that result is dropped. The errors of
    # the condition itself can therefore be ignored.
    step = step.replace(jaxpr=step.jaxpr.replace(outvars=step.jaxpr.outvars[:-1]))
    test, _ = checks.program(loop.cond, test_avals, ncond)
    test = test.replace(jaxpr=test.jaxpr.replace(outvars=test.jaxpr.outvars[-1:]))
    step_consts, carry = [*loop.cond_consts, *loop.body_consts], [*checks.leaves, *loop.carry]
    outs = loop._replace(cond=test, body=step, body_consts=step_consts, carry=carry).bind(while_p)
    return checks.results(outs, tree)


def _turn(cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The body followed by the condition: (constants of condition and body, carry) -> (carry, condition)."""

    def fun(*xs: Any) -> list[Any]:
        carry = eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *xs[cond_nconsts:])
        return [*carry, *eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *xs[:cond_nconsts], *carry)]

    avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
    key = ("turn", cond_jaxpr.jaxpr, axis_env.get())
    return memoized(body_jaxpr.jaxpr, key, lambda: restage(fun, avals, body_jaxpr.jaxpr))


def _while_keys(eqn: Any, uses_of: Any) -> KeyUses:
    """A turn may consume keys of the carry that it replaces; the condition and the body may not consume the same."""
    params = eqn.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    test: KeyUses = uses_of(params["cond_jaxpr"])
    body: KeyUses = uses_of(params["body_jaxpr"])
    for name, count, before, uses in (("cond", first, 0, test), ("body", second, first, body)):
        for i, _ in uses.consumed:
            if i < count or i - count not in body.unused:
                raise repeated(
                    f"while_loop {name} function", eqn, i + (before if i < count else first + second - count)
                )
    tested = {i - first for i, _ in test.consumed}
    for i, _ in body.consumed:
        if i - second in tested:
            raise repeated("while_loop cond and body functions, which both use the key,", eqn, i + first)
    consumed = tuple((i + second, mask) for i, mask in test.consumed)
    consumed += tuple((i + first, mask) for i, mask in body.consumed)
    return KeyUses(consumed, tuple(body.unused), tuple((i + first, o) for i, o in body.passed))


def _refuse_writes_of_condition(refs: RefValues, params: dict[str, Any]) -> None:
    if accesses(params["cond_jaxpr"].jaxpr).written:
        refs.refuse_writes("the condition of a loop")


while_p = ProgramPrimitive(
    "while",
    bodies=loop_bodies,
    rebuild=rebuild_loop,
    keeps_types=True,
    check_refs=_refuse_writes_of_condition,
    types=_while_types,
    lower=_while_lower,
    jvp=_while_jvp,
    linearize=_while_linearize,
    transpose=_while_transpose,
    batch=_while_batch,
    pad=pads_programs,
    masked=lambda mask, *args, **params: while_p.rebind(args, params, masked_programs(mask, params)),
    steps=_while_steps,
    drop_unused=_while_drop_unused,
    dependent=_while_dependent,
    keys=_while_keys,
    checked=_while_checked,
    unbounded=True,
)
