"""The `while` primitive: runs its body jaxpr as long as its condition jaxpr returns true.

Both jaxprs take their own constants, then the carry. The number of iterations is not known before the loop runs, so
reverse mode cannot store the residuals of each. It stores some states and computes the others again: see `loop_states`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._ir.avals import ShapedArray
from ..._ir.effects import ordered, refuse_io
from ..._ir.jaxpr import ClosedJaxpr, effects_inside, hoist_consts, hoisted, memoized, prune
from ..._ir.key_uses import KeyUses, repeated
from ..._ir.primitive import Primitive, sharding_in_types, vma_in_types
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, fill, instantiate
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.jaxprs import batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage
from ..._transform.varying import as_varying
from ..._xla.lower import lower_jaxpr
from ..._xla.text import Function, Value
from ..elementwise.logic import select_n
from ..reductions.reduce import reduce_or
from ..structure.shape import broadcast_in_dim
from .call import Steps, axes_used, call
from .compact import Compacted, compacts
from .masked import masked_jaxpr, masked_test


def _types(*avals: ShapedArray, body_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return body_jaxpr.out_avals


def _lower(
    f: Function,
    *args: Value,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **_: Any,
) -> list[Value]:
    both = cond_nconsts + body_nconsts
    cond_consts, body_consts, carry = args[:cond_nconsts], args[cond_nconsts:both], args[both:]
    in_order = ordered(effects_inside({"cond": cond_jaxpr, "body": body_jaxpr}))
    if in_order:
        return _ordered_while(f, cond_jaxpr, cond_consts, body_jaxpr, body_consts, carry)
    if not carry:  # the condition is constant: the loop runs never, or forever
        return []
    avals = [x.aval for x in carry]
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
        again = goes_on(g, outs)
        return [again, g.order(), *outs]

    first = goes_on(f, carry)
    start = [first, f.order(), *carry]
    avals = [x.aval for x in start]
    regions = [f.region(avals, lambda g, again, *_: [again]), f.region(avals, turn, names=("while", "body"))]
    _, f.token, *outs = f.op("stablehlo.while", start, avals, "", regions)
    return outs


def spread_carry(flags: Sequence[bool], out_flags: Any) -> tuple[bool, ...]:
    """The least fixed point of `out_flags` that contains `flags`.

    A flag of the carry (it has a tangent, is batched, is used) may set others after one step; `out_flags` maps the
    flags before a step to those after it.
    """
    known = tuple(flags)
    while True:
        wider = tuple(a or b for a, b in zip(known, out_flags(known), strict=True))
        if wider == known:
            return known
        known = wider


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **how: Any,
) -> tuple[list[Any], list[Any]]:
    both = cond_nconsts + body_nconsts
    has = tuple(type(t) is not Zero for t in tangents)
    const_has = has[cond_nconsts:both]
    carry_has = spread_carry(has[both:], lambda known: jvp_jaxpr(body_jaxpr, (*const_has, *known))[1])
    carry_tangents = [instantiate(t) for t, there in zip(tangents[both:], carry_has, strict=True) if there]
    body = jvp_body(body_jaxpr, const_has, carry_has)
    given = [t for t in tangents[cond_nconsts:both] if type(t) is not Zero]
    outs = _bind(
        with_ignored_inputs(cond_jaxpr, [typeof(t) for t in carry_tangents]),
        primals[:cond_nconsts],
        body,
        [*primals[cond_nconsts:both], *given],
        [*primals[both:], *carry_tangents],
        **how,
    )
    count = len(body_jaxpr.out_avals)
    return outs[:count], fill(outs[count:], carry_has, body_jaxpr.out_avals)


def jvp_body(body: ClosedJaxpr, const_has: tuple[bool, ...], carry_has: tuple[bool, ...]) -> ClosedJaxpr:
    """The jvp of the body, with the inputs (constants, their tangents, carry, its tangents)."""
    nconsts, ncarry = len(const_has), len(carry_has)

    def make() -> ClosedJaxpr:
        derived, _ = jvp_jaxpr(body, (*const_has, *carry_has), keep=carry_has)

        def fun(*args: Any) -> list[Any]:
            consts, rest = args[:nconsts], args[nconsts:]
            const_tangents, rest = rest[: sum(const_has)], rest[sum(const_has) :]
            return eval_jaxpr(derived.jaxpr, derived.consts, *consts, *rest[:ncarry], *const_tangents, *rest[ncarry:])

        avals = body.in_avals
        tangents = [a.tangent() for a in avals]
        order = [
            *avals[:nconsts],
            *[t for t, there in zip(tangents[:nconsts], const_has, strict=True) if there],
            *avals[nconsts:],
            *[t for t, there in zip(tangents[nconsts:], carry_has, strict=True) if there],
        ]
        return restage(fun, order, body.jaxpr)

    return memoized(body.jaxpr, ("jvp of a step", const_has, carry_has, axis_env.get()), make)


def with_ignored_inputs(closed: ClosedJaxpr, more: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr with further inputs of the types `more`, which it ignores."""
    if not more:
        return closed
    count = len(closed.in_avals)
    return memoized(
        closed.jaxpr,
        ("ignoring", tuple(more)),
        lambda: restage(
            lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs[:count]), [*closed.in_avals, *more], closed.jaxpr
        ),
    )


def _bind(
    cond: ClosedJaxpr,
    cond_consts: Sequence[Any],
    body: ClosedJaxpr,
    body_consts: Sequence[Any],
    carry: Sequence[Any],
    **how: Any,
) -> list[Any]:
    """Binds `while`; the constants of both closed jaxprs become operands."""
    first, second = hoisted(cond), hoisted(body)
    return while_p.bind(
        *cond.consts,
        *cond_consts,
        *body.consts,
        *body_consts,
        *carry,
        cond_jaxpr=first,
        cond_nconsts=len(cond.consts) + len(cond_consts),
        body_jaxpr=second,
        body_nconsts=len(body.consts) + len(body_consts),
        **how,
    )


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None = None,
) -> tuple[list[Any], list[Any]]:
    """The loop with its states stored, and a scan over these states that carries the tangents."""
    from .loop_states import while_states  # imports this module
    from .state_scan import scan_states

    both = cond_nconsts + body_nconsts
    has = tuple(type(t) is not Zero for t in tangents)
    const_has = has[cond_nconsts:both]
    carry_has = spread_carry(has[both:], lambda known: linearize_jaxpr(body_jaxpr, (*const_has, *known)).nonzero)
    programs = {"cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr}
    counts = {"cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts}
    if not any(carry_has):
        outs = while_p.bind(*primals, **programs, **counts)
        return outs, [Zero(typeof(x).tangent()) for x in outs]
    refuse_io(effects_inside(programs), "the derivative of while_loop", "which runs turns again")
    primals, tangents = list(primals), list(tangents)
    stops = cond_jaxpr.out_avals[0].vma
    if stops:
        programs["body_jaxpr"] = body_jaxpr = _with_varying_consts(body_jaxpr, body_nconsts, stops)
        for i, aval in enumerate(body_jaxpr.in_avals[:body_nconsts], cond_nconsts):
            primals[i], tangents[i] = as_varying(primals[i], aval), as_varying(tangents[i], aval)
    rows = rows_of(body_jaxpr.out_avals, checkpoints)
    found = while_states.bind(*primals, **programs, **counts, rows=rows)
    n = len(body_jaxpr.out_avals)
    outs, states, index = found[:n], found[n : 2 * n], found[2 * n :]
    step = _linear_turn(body_jaxpr, const_has, carry_has)
    given = [t for t in tangents[cond_nconsts:both] if type(t) is not Zero]
    moving = [instantiate(t) for t, there in zip(tangents[both:], carry_has, strict=True) if there]
    body_consts = primals[cond_nconsts:both]
    operands = (primals[:cond_nconsts], body_consts, states, index, [*step.consts, *body_consts, *given], moving)
    last = scan_states.bind(
        *(x for part in operands for x in part),
        **programs,
        step_jaxpr=hoisted(step),
        lengths=tuple(map(len, operands)),
        reverse=False,
    )
    return outs, fill(last, carry_has, body_jaxpr.out_avals)


def _with_varying_consts(body: ClosedJaxpr, nconsts: int, stops: frozenset[Any]) -> ClosedJaxpr:
    """The body with constants that vary along the axes `stops`, along which devices take different numbers of turns.

    The cotangent of a constant that is equal on all devices is a sum over them. In the loop backwards the devices that
    take more turns would wait forever for the others, so the sum must come after the loop.
    """
    avals = [a.varying(a.vma | stops) for a in body.in_avals[:nconsts]]
    fun = lambda *xs: eval_jaxpr(body.jaxpr, body.consts, *xs)  # noqa: E731
    make = lambda: restage(fun, [*avals, *body.in_avals[nconsts:]], body.jaxpr)  # noqa: E731
    return memoized(body.jaxpr, ("varying constants", nconsts, stops, axis_env.get()), make)


def _linear_turn(body: ClosedJaxpr, const_has: tuple[bool, ...], carry_has: tuple[bool, ...]) -> ClosedJaxpr:
    """The derivative of the body, with the inputs (constants, their tangents, tangents of the carry, carry)."""
    nconsts, const_count, carry_count = len(const_has), sum(const_has), sum(carry_has)

    def make() -> ClosedJaxpr:
        s = linearize_jaxpr(body, (*const_has, *carry_has))

        def fun(*args: Any) -> list[Any]:
            consts, tangents = args[:nconsts], args[nconsts : nconsts + const_count + carry_count]
            inputs = [*consts, *args[nconsts + const_count + carry_count :]]
            outs = eval_jaxpr(s.primal.jaxpr, s.primal.consts, *inputs)
            residuals = [inputs[i] if kind == "in" else outs[i] for kind, i in s.residuals]
            found = eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *tangents)
            results = fill(found, s.nonzero, body.out_avals)
            return [instantiate(t) for t, there in zip(results, carry_has, strict=True) if there]

        avals, tangent_avals = body.in_avals, s.linear.in_avals[len(s.residuals) :]
        step = restage(fun, [*avals[:nconsts], *tangent_avals, *avals[nconsts:]], body.jaxpr)
        return step.replace(jaxpr=prune(step.jaxpr)[0])

    return memoized(body.jaxpr, ("linear turn", const_has, carry_has, axis_env.get()), make)


#: The default number of stored states: as many as have this many bytes together, within the limits. One megabyte stays
#: in the cache of a core. With 1,024 rows XLA runs a short loop on its thread pool: 18 µs more a gradient.
_STATE_BYTES, _MIN_ROWS, _MAX_ROWS = 2**20, 64, 512


def rows_of(avals: Sequence[ShapedArray], checkpoints: int | None) -> int:
    """The number of states of these types that reverse mode stores, which is even."""
    if checkpoints is not None:
        return checkpoints - checkpoints % 2
    size = sum(a.physical.size * a.physical.dtype.itemsize for a in avals)
    rows = _MAX_ROWS
    while rows > _MIN_ROWS and rows * size > _STATE_BYTES:
        rows //= 2
    return rows


def _batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **how: Any,
) -> tuple[list[Any], list[Dim]]:
    both = cond_nconsts + body_nconsts
    cond_dims, body_dims = tuple(dims[:cond_nconsts]), tuple(dims[cond_nconsts:both])
    loop = batched_loop(axis, cond_jaxpr, cond_dims, body_jaxpr, body_dims, [d is not None for d in dims[both:]])
    carry_dims: list[Dim] = [0 if there else None for there in loop.carry]
    carry = [
        place_axis(x, d, 0, axis.size) if there else x
        for x, d, there in zip(args[both:], dims[both:], loop.carry, strict=True)
    ]
    cond_consts, body_consts = args[:cond_nconsts], args[cond_nconsts:both]
    if loop.stops:
        effects = effects_inside({"cond": cond_jaxpr, "body": body_jaxpr})
        refuse_io(effects, "vmap of while_loop", "which goes on for examples that have stopped")
        if compacts(axis, cond_jaxpr, body_jaxpr, args):
            consts = [
                x if d is None else place_axis(x, d, 0, axis.size) for x, d in zip(args, dims[:both], strict=False)
            ]
            first, second = (tuple(None if d is None else 0 for d in some) for some in (cond_dims, body_dims))
            compacted = Compacted(cond_jaxpr, body_jaxpr, first, second, functools.partial(_bind, **how), only_where)
            return compacted.run(axis.size, consts, carry), carry_dims
        body_consts = [*cond_consts, *body_consts]
    return _bind(loop.cond, cond_consts, loop.body, body_consts, carry, **how), carry_dims


class BatchedLoop(NamedTuple):
    """The programs of a loop over a batch; `stops`: whether the condition differs between the examples."""

    cond: ClosedJaxpr
    body: ClosedJaxpr
    carry: tuple[bool, ...]
    stops: bool
    one_cond: ClosedJaxpr


def batched_loop(
    axis: BatchAxis,
    cond_jaxpr: ClosedJaxpr,
    cond_dims: tuple[Dim, ...],
    body_jaxpr: ClosedJaxpr,
    body_dims: tuple[Dim, ...],
    carry: Sequence[bool],
) -> BatchedLoop:
    def after(known: tuple[bool, ...]) -> list[bool]:
        dims = tuple(0 if there else None for there in known)
        if batch_jaxpr(cond_jaxpr, axis, (*cond_dims, *dims))[1][0] is not None:
            return [True] * len(known)  # examples stop after different numbers of turns, so every carry is batched
        return [d is not None for d in batch_jaxpr(body_jaxpr, axis, (*body_dims, *dims))[1]]

    batched = spread_carry(carry, after)
    dims = tuple(0 if there else None for there in batched)
    cond, (stops,) = batch_jaxpr(cond_jaxpr, axis, (*cond_dims, *dims))
    body, _ = batch_jaxpr(body_jaxpr, axis, (*body_dims, *dims), batched)
    if stops is None:
        return BatchedLoop(cond, body, batched, False, cond)
    masked = memoized(
        body.jaxpr,
        ("only where", cond.jaxpr, axis_env.get()),
        lambda: only_where(cond, body, len(body_dims), len(cond_dims)),
    )
    return BatchedLoop(as_long_as_any(cond), masked, batched, True, cond)


def as_long_as_any(go_on: ClosedJaxpr) -> ClosedJaxpr:
    def fun(*xs: Any) -> list[Any]:
        return [reduce_or(*eval_jaxpr(go_on.jaxpr, go_on.consts, *xs), axes=(0,))]

    return memoized(go_on.jaxpr, "any", lambda: restage(fun, go_on.in_avals, go_on.jaxpr))


def only_where(go_on: ClosedJaxpr, turn: ClosedJaxpr, nbody: int, ncond: int) -> ClosedJaxpr:
    """The batched body, which updates the carry of examples whose condition is true and keeps the others'."""

    def fun(*args: Any) -> list[Any]:
        cond_consts, body_consts, carry = args[:ncond], args[ncond : ncond + nbody], args[ncond + nbody :]
        (goes_on,) = eval_jaxpr(go_on.jaxpr, go_on.consts, *cond_consts, *carry)
        moved = eval_jaxpr(turn.jaxpr, turn.consts, *body_consts, *carry)
        return [
            select_n(broadcast_in_dim(goes_on, shape=typeof(x).shape, broadcast_dimensions=(0,)), x, y)
            for x, y in zip(carry, moved, strict=True)
        ]

    return restage(fun, [*go_on.in_avals[:ncond], *turn.in_avals], turn.jaxpr)


def masked_programs(mask: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """Condition and body of a loop for the rows where `mask` is true; both take the mask as their first operand."""
    aval = typeof(mask)
    inner, turn = masked_jaxpr(cond_jaxpr, aval), masked_jaxpr(body_jaxpr, aval)

    def fun(*xs: Any) -> list[Any]:
        return [masked_test.bind(*eval_jaxpr(inner.jaxpr, inner.consts, *xs), xs[0])]

    return memoized(inner.jaxpr, "test", lambda: restage(fun, inner.in_avals, inner.jaxpr)), turn


def _masked(
    mask: Any,
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **how: Any,
) -> list[Any]:
    both = cond_nconsts + body_nconsts
    go_on, turn = masked_programs(mask, cond_jaxpr, body_jaxpr)
    return _bind(go_on, [mask, *args[:cond_nconsts]], turn, [mask, *args[cond_nconsts:both]], args[both:], **how)


def _steps(
    *args: Any, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int, **_: Any
) -> Steps:
    both = cond_nconsts + body_nconsts
    cond_consts, body_consts, carry = args[:cond_nconsts], args[cond_nconsts:both], list(args[both:])
    for turn in itertools.count():
        (goes_on,) = yield cond_jaxpr, [*cond_consts, *carry], f"the condition of while, turn {turn}"
        if not goes_on:
            return
        carry = yield body_jaxpr, [*body_consts, *carry], f"turn {turn} of while"


def _checked(
    checks: Any,
    *args: Any,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    **how: Any,
) -> list[Any]:
    both = cond_nconsts + body_nconsts
    cond_consts, body_consts, carry = args[:cond_nconsts], args[cond_nconsts:both], args[both:]
    test_avals = [typeof(x) for x in (*cond_consts, *carry)]
    test, tree = checks.program(cond_jaxpr, test_avals, cond_nconsts)
    checks.results(call(test, [*cond_consts, *checks.leaves, *carry], name="condition"), tree)
    turn = _turn(cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts)
    checks.make_room(checks.program(turn, turn.in_avals, both)[1])
    step, tree = checks.program(turn, turn.in_avals, both)
    # `turn` computes the condition as well, so that the step contains its checks; that result is dropped. The errors of
    # the condition itself can therefore be ignored.
    step = step.replace(jaxpr=step.jaxpr.replace(outvars=step.jaxpr.outvars[:-1]))
    test, _ = checks.program(cond_jaxpr, test_avals, cond_nconsts)
    test = test.replace(jaxpr=test.jaxpr.replace(outvars=test.jaxpr.outvars[-1:]))
    outs = _bind(test, cond_consts, step, [*cond_consts, *body_consts], [*checks.leaves, *carry], **how)
    return checks.results(outs, tree)


def _turn(cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int) -> ClosedJaxpr:
    """The body followed by the condition: (constants of condition and body, carry) -> (carry, condition)."""

    def fun(*xs: Any) -> list[Any]:
        carry = eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *xs[cond_nconsts:])
        return [*carry, *eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *xs[:cond_nconsts], *carry)]

    avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
    key = ("turn", cond_jaxpr.jaxpr, axis_env.get())
    return memoized(body_jaxpr.jaxpr, key, lambda: restage(fun, avals, body_jaxpr.jaxpr))


def _axes(params: dict[str, Any]) -> set[Any]:
    return axes_used(params["cond_jaxpr"]) | axes_used(params["body_jaxpr"])


def _keys(eqn: Any, uses_of: Any) -> KeyUses:
    """A turn may consume keys of the carry that it replaces; the condition and the body may not consume the same."""
    params = eqn.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    test: KeyUses = uses_of(params["cond_jaxpr"])
    body: KeyUses = uses_of(params["body_jaxpr"])
    for name, count, before, uses in (("cond", first, 0, test), ("body", second, first, body)):
        for i, _ in uses.consumed:
            if i < count or i - count not in body.fresh:
                raise repeated(
                    f"while_loop {name} function", eqn, i + (before if i < count else first + second - count)
                )
    tested = {i - first for i, _ in test.consumed}
    for i, _ in body.consumed:
        if i - second in tested:
            raise repeated("while_loop cond and body functions, which both use the key,", eqn, i + first)
    consumed = tuple((i + second, mask) for i, mask in test.consumed)
    consumed += tuple((i + first, mask) for i, mask in body.consumed)
    return KeyUses(consumed, body.fresh, tuple((i + first, o) for i, o in body.passed))


while_p = Primitive(
    "while",
    multiple_results=True,
    types=_types,
    vma=vma_in_types,
    sharding=sharding_in_types,
    lower=_lower,
    jvp=_jvp,
    linearize=_linearize,
    batch=_batch,
    extend=lambda params, trailing, *avals: params,
    masked=_masked,
    steps=_steps,
    axes=_axes,
    effects=effects_inside,
    keys=_keys,
    checked=_checked,
    unbounded=True,
)


def repeat(go_on: Callable[..., Any], turn: Callable[..., Sequence[Any]], start: Sequence[Any]) -> list[Any]:
    """Binds `while` for Python functions: ``values = turn(*values)`` as long as ``go_on(*values)``.

    For the lowering of primitives that are computed by a loop.
    """
    avals = [typeof(x) for x in start]
    cond_jaxpr, cond_consts = stage(lambda *xs: [go_on(*xs)], avals)
    body_jaxpr, body_consts = stage(turn, avals)
    return while_p(
        *cond_consts,
        *body_consts,
        *start,
        cond_jaxpr=ClosedJaxpr(hoist_consts(cond_jaxpr)),
        cond_nconsts=len(cond_consts),
        body_jaxpr=ClosedJaxpr(hoist_consts(body_jaxpr)),
        body_nconsts=len(body_consts),
    )
