"""The `while` primitive: runs its body jaxpr as long as its condition jaxpr returns true.

Both jaxprs take their own constants, then the carry. The number of iterations is not known before the loop runs, so
reverse mode cannot store the residuals of each. It stores some states and computes the others again: see `loop_states`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from ..._base.errors import DerivativeError
from ..._ir.avals import ShapedArray
from ..._ir.dependence import dependent_outputs
from ..._ir.effects import ordered, refuse_io
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, effects_inside, hoisted, memoized, narrowed, only, prune
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
from .compact import CompactedLoop, compacts
from .loop_states import while_states
from .once import Steps
from .safe_rows import with_safe_rows
from .state_scan import scan_states
from .turns import (
    bind_loop,
    carry_fixed_point,
    jvp_loop,
    linear_turn,
    loop_bodies,
    rebuild_loop,
    repeat as repeat,  # importing it from here also defines `while`
    split_operands,
)


def _while_types(*avals: ShapedArray, body_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return body_jaxpr.out_avals


def _while_lower(
    f: Function,
    *args: Value,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **_: Any,
) -> list[Value]:
    cond_consts, body_consts, carry = split_operands(args, cond_nconsts, body_nconsts)
    in_order = ordered(effects_inside({"cond": cond_jaxpr, "body": body_jaxpr}))
    if in_order:
        return _ordered_while(f, cond_jaxpr, cond_consts, body_jaxpr, body_consts, carry)
    if not carry:  # the condition is constant: the loop runs never, or forever
        return []
    avals = [x.aval for x in carry]
    # Regions may use values from outside, so the constants need no place in the carry.
    go_on = f.region(
        avals, lambda g, *xs: lower_jaxpr(g, cond_jaxpr.jaxpr, [*cond_consts, *xs]), names=("while", "cond")
    )
    turn = f.region(
        avals, lambda g, *xs: lower_jaxpr(g, body_jaxpr.jaxpr, [*body_consts, *xs]), names=("while", "body")
    )
    return f.op("stablehlo.while", carry, avals, "", [go_on, turn])


def _ordered_while(
    f: Function,
    cond_jaxpr: ClosedJaxpr,
    cond_consts: Sequence[Value],
    body_jaxpr: ClosedJaxpr,
    body_consts: Sequence[Value],
    carry: Sequence[Value],
) -> list[Value]:
    """The loop with a token and the value of the condition in the carry.

    Ordered effects need a token, and the condition region of stablehlo.while cannot return one. The condition is
    therefore computed before the loop and at the end of the body.
    """

    def goes_on(g: Function, xs: Sequence[Value]) -> Value:
        return lower_jaxpr(g, cond_jaxpr.jaxpr, [*cond_consts, *xs])[0]

    def turn(g: Function, _: Value, token: Value, *xs: Value) -> list[Value]:
        g.token = token
        outs = lower_jaxpr(g, body_jaxpr.jaxpr, [*body_consts, *xs])
        test = goes_on(g, outs)
        return [test, g.order(), *outs]

    first = goes_on(f, carry)
    start = [first, f.order(), *carry]
    avals = [x.aval for x in start]
    regions = [f.region(avals, lambda g, test, *_: [test]), f.region(avals, turn, names=("while", "body"))]
    _, f.token, *outs = f.op("stablehlo.while", start, avals, "", regions)
    return outs


def _while_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    outs, carry_has = jvp_loop(while_p, primals, tangents, **params)
    count = len(carry_has)
    return outs[:count], fill(outs[count:], carry_has, [typeof(x) for x in outs[:count]])


def _while_linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None = None,
) -> tuple[list[Any], list[Any]]:
    """The loop with its states stored, and a scan over these states that carries the tangents."""
    both = cond_nconsts + body_nconsts
    has = tuple(type(t) is not Zero for t in tangents)
    const_has = has[cond_nconsts:both]
    # A tangent may reach other values of the carry in later turns.
    carry_has = carry_fixed_point(has[both:], lambda known: linearize_jaxpr(body_jaxpr, (*const_has, *known)).nonzero)
    programs = {"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr}
    counts = {"cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts}
    if not any(carry_has):  # no tangent passes through the carry, so no states have to be stored
        outs = while_p.bind(*primals, **programs, **counts)
        return outs, [Zero(typeof(x).tangent()) for x in outs]
    refuse_io(effects_inside(programs), "the derivative of while_loop", "which runs turns again")
    primals, tangents = list(primals), list(tangents)
    cond_axes = cond_jaxpr.out_avals[0].vma
    if cond_axes:
        programs["body_jaxpr"] = body_jaxpr = _with_varying_consts(body_jaxpr, body_nconsts, cond_axes)
        for i, aval in enumerate(body_jaxpr.in_avals[:body_nconsts], cond_nconsts):
            primals[i], tangents[i] = as_varying(primals[i], aval), as_varying(tangents[i], aval)
    rows = stored_states(body_jaxpr.out_avals, checkpoints)
    state_outs = while_states.bind(*primals, **programs, **counts, rows=rows)
    n = len(body_jaxpr.out_avals)
    outs, states, index = state_outs[:n], state_outs[n : 2 * n], state_outs[2 * n :]
    step = linear_turn(with_safe_rows(body_jaxpr), const_has, carry_has)
    body_consts = primals[cond_nconsts:both]
    step_consts = [*step.consts, *body_consts, *drop_zeros(tangents[cond_nconsts:both])]
    carry = present_arrays(tangents[both:], carry_has)
    operands = (primals[:cond_nconsts], body_consts, states, index, step_consts, carry)
    last = scan_states.bind(
        *(x for part in operands for x in part),
        **programs,
        step_jaxpr=hoisted(step),
        lengths=tuple(map(len, operands)),
        reverse=False,
    )
    return outs, fill(last, carry_has, body_jaxpr.out_avals)


def _with_varying_consts(body: ClosedJaxpr, nconsts: int, axes: frozenset[Any]) -> ClosedJaxpr:
    """The body with constants that vary along `axes`, along which devices take different numbers of turns.

    The cotangent of a constant that is equal on all devices is a sum over them. In the loop backwards the devices that
    take more turns would wait forever for the others, so the sum must come after the loop.
    """
    avals = [a.varying(a.vma | axes) for a in body.in_avals[:nconsts]]
    fun = lambda *xs: eval_jaxpr(body.jaxpr, body.consts, *xs)  # noqa: E731
    make = lambda: restage(fun, [*avals, *body.in_avals[nconsts:]], body.jaxpr)  # noqa: E731
    return memoized(body.jaxpr, ("varying constants", nconsts, axes, axis_env.get()), make)


def _while_transpose(
    cotangents: Sequence[Any],
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None = None,
) -> list[Any]:
    """The transpose of a loop that is linear in some of its carry. The other values of the carry, such as a counter,
    are the states of a loop of their own; `scan_states` runs the linear part for each of them."""
    counts = {"cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts}
    linear = _while_dependent(
        list(map(is_linear, args)), {"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr, **counts}
    )
    if all(linear):
        raise DerivativeError("while_loop is not linear: its condition depends on what it is transposed for")
    known = [not flag for flag in linear]
    cond, body = _narrowed_programs(cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts, known)
    read = narrowed(body_jaxpr, known)[1][:body_nconsts]
    cond_consts, body_consts, carry = split_operands(args, cond_nconsts, body_nconsts)
    rows = stored_states(body.out_avals, checkpoints)
    state_outs = while_states.bind(
        *cond_consts,
        *only(body_consts, read),
        *only(carry, known),
        cond_jaxpr=cond,
        body_jaxpr=body,
        cond_nconsts=cond_nconsts,
        body_nconsts=sum(read),
        rows=rows,
    )
    n = len(body.out_avals)
    states, index = state_outs[n : 2 * n], state_outs[2 * n :]
    invars = body_jaxpr.invars
    order = [*invars[:body_nconsts], *only(invars[body_nconsts:], linear), *only(invars[body_nconsts:], known)]
    step = body_jaxpr.jaxpr.replace(invars=order, outvars=only(body_jaxpr.outvars, linear))
    operands = (cond_consts, only(body_consts, read), states, index, body_consts, only(carry, linear))
    outs = scan_states.rule("transpose")(
        only(cotangents, linear),
        *(x for part in operands for x in part),
        cond_jaxpr=cond,
        body_jaxpr=body,
        step_jaxpr=body_jaxpr.replace(jaxpr=prune(step)[0]),
        lengths=tuple(map(len, operands)),
        reverse=False,
    )
    of_consts, of_carry = outs[-len(body_consts) - sum(linear) : -sum(linear)], iter(outs[-sum(linear) :])
    return [*[None] * cond_nconsts, *of_consts, *(next(of_carry) if flag else None for flag in linear)]


def _while_dependent(operands: Sequence[bool], params: dict[str, Any]) -> list[bool]:
    cond, body = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
    cond_consts, body_consts, carry = split_operands(operands, params["cond_nconsts"], params["body_nconsts"])
    carried = carry_fixed_point(carry, lambda known: dependent_outputs(body, [*body_consts, *known]))
    # If the condition depends on a marked operand, the number of turns does, and every result with it.
    is_cond_dependent = any(dependent_outputs(cond, [*cond_consts, *carried]))
    return [is_cond_dependent or flag for flag in carried]


def _while_drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    if all(used):
        return eqn
    params = eqn.params
    cond_nconsts, body_nconsts, body = params["cond_nconsts"], params["body_nconsts"], params["body_jaxpr"]
    # Values that the condition reads stay in the carry, though no result needs them.
    tested = [not unread for unread in unused_inputs(params["cond_jaxpr"].jaxpr)[cond_nconsts:]]
    start = [a or b for a, b in zip(used, tested, strict=True)]
    carried = carry_fixed_point(start, lambda known: narrowed(body, known)[1][body_nconsts:])
    if all(carried):
        return eqn
    cond, turn = _narrowed_programs(params["cond_jaxpr"], cond_nconsts, body, body_nconsts, carried)
    read = narrowed(body, carried)[1][:body_nconsts]
    return eqn.replace(
        invars=only(eqn.invars, [*[True] * cond_nconsts, *read, *carried]),
        outvars=only(eqn.outvars, carried),
        params={**params, "cond_jaxpr": cond, "body_jaxpr": turn, "body_nconsts": sum(read)},
    )


def _narrowed_programs(
    cond: ClosedJaxpr, cond_nconsts: int, body: ClosedJaxpr, body_nconsts: int, carried: Sequence[bool]
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Condition and body of a loop with the carries marked in `carried` alone, which do not depend on the others."""
    keep = [*[False] * body_nconsts, *carried]
    test = [*[True] * cond_nconsts, *carried]
    make = lambda: cond.replace(jaxpr=cond.jaxpr.replace(invars=only(cond.invars, test)))  # noqa: E731
    return memoized(cond.jaxpr, ("fewer carries", tuple(test)), make), narrowed(body, carried, keep)[0]


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
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **options: Any,
) -> tuple[list[Any], list[Dim]]:
    both = cond_nconsts + body_nconsts
    cond_dims, body_dims = tuple(dims[:cond_nconsts]), tuple(dims[cond_nconsts:both])
    loop = batched_loop(axis, cond_jaxpr, cond_dims, body_jaxpr, body_dims, dims[both:])
    carry_dims = list(batch_dims(loop.batched))
    carry = place_axes(axis, args[both:], dims[both:], loop.batched)
    cond_consts, body_consts = args[:cond_nconsts], args[cond_nconsts:both]
    if loop.cond_per_example is not None:
        effects = effects_inside({"cond": cond_jaxpr, "body": body_jaxpr})
        refuse_io(effects, "vmap of while_loop", "which goes on for examples that have stopped")
        if compacts(axis, cond_jaxpr, body_jaxpr, args):
            batched = [d is not None for d in dims[:both]]
            consts, const_dims = place_axes(axis, args[:both], dims[:both], batched), batch_dims(batched)
            bind = functools.partial(bind_loop, while_p, **options)
            loops = CompactedLoop(cond_jaxpr, body_jaxpr, const_dims[:cond_nconsts], const_dims[cond_nconsts:], bind)
            return loops.run(axis.size, consts, carry), carry_dims
        # The batched body computes the condition too, to keep the values of examples that have stopped.
        body_consts = [*cond_consts, *body_consts]
    return bind_loop(while_p, loop.cond, cond_consts, loop.body, body_consts, carry, **options), carry_dims


def _while_steps(
    *args: Any, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int, **_: Any
) -> Steps:
    cond_consts, body_consts, carry = split_operands(args, cond_nconsts, body_nconsts)
    for turn in itertools.count():
        (goes_on,) = yield cond_jaxpr, [*cond_consts, *carry], f"the condition of while, turn {turn}"
        if not goes_on:
            return
        carry = yield body_jaxpr, [*body_consts, *carry], f"turn {turn} of while"


def _while_checked(
    checks: Any,
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **options: Any,
) -> list[Any]:
    both = cond_nconsts + body_nconsts
    cond_consts, body_consts, carry = split_operands(args, cond_nconsts, body_nconsts)
    test_avals = [typeof(x) for x in (*cond_consts, *carry)]
    test, tree = checks.program(cond_jaxpr, test_avals, cond_nconsts)
    checks.results(call(test, [*cond_consts, *checks.leaves, *carry], name="condition"), tree)
    turn = _turn(cond_jaxpr, cond_nconsts, body_jaxpr)
    # Traced twice: the first time shows which errors a turn can raise, for which the carry needs places.
    checks.make_room(checks.program(turn, turn.in_avals, both)[1])
    step, tree = checks.program(turn, turn.in_avals, both)
    # `turn` computes the condition as well, so that the step contains its checks; that result is dropped. The errors of
    # the condition itself can therefore be ignored.
    step = step.replace(jaxpr=step.jaxpr.replace(outvars=step.jaxpr.outvars[:-1]))
    test, _ = checks.program(cond_jaxpr, test_avals, cond_nconsts)
    test = test.replace(jaxpr=test.jaxpr.replace(outvars=test.jaxpr.outvars[-1:]))
    step_consts, carry = [*cond_consts, *body_consts], [*checks.leaves, *carry]
    outs = bind_loop(while_p, test, cond_consts, step, step_consts, carry, **options)
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
