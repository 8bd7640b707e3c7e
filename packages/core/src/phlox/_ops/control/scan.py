"""The `scan` primitive: runs a jaxpr on each slice of some arrays, and passes a carry from each step to the next.

    (constants, carry, slices) -> (carry, slices of results)

Its transpose is a scan in the other direction, over the residuals of the steps. As few residuals as possible are
stored: constants, scanned arrays and results exist anyway, and residuals that depend on constants alone are computed
once, outside of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.dependence import dependent_outputs
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, hoisted, memoized, narrowed, only, prune
from ..._ir.key_uses import KeyUses, repeated
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Body, Operands, ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, fill, instantiate, present_arrays, zeros
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes
from ..._transform.jaxprs import LinearizedJaxpr, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage
from ..._transform.residuals import recomputed
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add as plus, sub
from ..elementwise.families import lower_function
from ..elementwise.logic import lt
from .division import Policy, divide, divided_call
from .loop import while_p
from .once import Steps
from .padded_scan import scan_pad
from .rows import row_at, rows_at, with_rows, zero_array
from .turns import Loop, backward_step, carry_fixed_point, jvp_step, split_operands

Params = dict[str, Any]


def _scan_types(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, reverse: bool, unroll: int
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *[a.with_axis(0, length) for a in outs[num_carry:]]]


# --- as a loop ------------------------------------------------------------------------------------------


_ZERO = dtypes.int32.type(0)


def _as_loop(
    *args: Any, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, reverse: bool, unroll: int
) -> list[Any]:
    """The scan as a `while` loop with `unroll` steps in each iteration, then the remaining steps."""
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    ys = [zero_array(a.with_axis(0, length)) for a in jaxpr.out_avals[num_carry:]]

    def steps(
        i: Any, count: int, carry: Sequence[Any], ys: Sequence[Any], xs: Sequence[Any], consts: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        # A reversed scan begins with the last `count` rows; within them `results` is turned round below.
        at = sub(dtypes.int32.type(length - count), i) if reverse else i
        # One slice and one update for all steps of a turn, where each step would have its own.
        parts = [rows_at(x, at, count) for x in xs]
        results = []
        for k in reversed(range(count)) if reverse else range(count):
            outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *[row_at(part, k) for part in parts])
            carry = outs[:num_carry]
            results.append(outs[num_carry:])
        if reverse:
            results.reverse()
        return list(carry), [with_rows(y, rows, at) for y, rows in zip(ys, zip(*results, strict=True), strict=True)]

    turns = length // unroll
    # A loop of one turn is written out instead.
    done = turns * unroll if turns > 1 else 0
    if done:
        nconst, nxs = len(consts), len(xs)

        def body(*values: Any) -> list[Any]:
            fixed, (i, *moving) = values[: nconst + nxs], values[nconst + nxs :]
            inner = steps(i, unroll, moving[:num_carry], moving[num_carry:], fixed[nconst:], fixed[:nconst])
            return [plus(i, dtypes.int32.type(unroll)), *inner[0], *inner[1]]

        moving = [_ZERO, *carry, *ys]
        avals = [typeof(_ZERO), *[a.update(weak_type=False) for a in map(typeof, [*carry, *ys])]]
        fixed_avals = [typeof(x) for x in (*consts, *xs)]
        limit = dtypes.int32.type(done)
        test = restage(lambda i, *_: [lt(i, limit)], avals, jaxpr.jaxpr)
        turn = restage(body, [*fixed_avals, *avals], jaxpr.jaxpr)
        outs = Loop(test, turn, [], [*consts, *xs], moving, {}).bind(while_p)
        carry, ys = outs[1 : num_carry + 1], outs[num_carry + 1 :]
    if done < length:  # the remaining steps, or all of them
        carry, ys = steps(dtypes.int32.type(done), length - done, carry, ys, xs, consts)
    return [*carry, *ys]


def bind_scan(
    closed: ClosedJaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], options: Params
) -> tuple[list[Any], list[Any]]:
    """Binds `scan`; constants of the closed jaxpr become operands. Returns the last carry, and the stacked results.

    `options` are the parameters `length`, `reverse` and `unroll`.
    """
    params = {"num_consts": len(consts), "num_carry": len(carry), **options}
    outs = scan.rebind([*consts, *carry, *xs], params, [closed])
    return outs[: len(carry)], outs[len(carry) :]


def _scan_rebuild(
    args: Sequence[Any], params: Params, programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    (step,), first = programs, params["num_consts"]
    changes = {
        "jaxpr": hoisted(step),
        "num_consts": first + len(step.consts),
        "num_carry": params["num_carry"] + len(carried),
    }
    return [*step.consts, *args[:first], *carried, *args[first:]], {**params, **changes}


# --- forward mode ---------------------------------------------------------------------------------------


def _scan_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **options: Any
) -> tuple[list[Any], list[Any]]:
    has = [type(t) is not Zero for t in tangents]
    const_has, start_has, xs_has = map(tuple, split_operands(has, num_consts, num_carry))
    # A carry without a tangent at the start has one as soon as a step gives it one.
    carry_has = carry_fixed_point(
        start_has, lambda known: jvp_jaxpr(jaxpr, (*const_has, *known, *xs_has))[1][:num_carry]
    )
    step, present = jvp_step(jaxpr, const_has, carry_has, xs_has)
    consts, carry, xs = split_operands(primals, num_consts, num_carry)
    const_tangents, carry_tangents, xs_tangents = split_operands(tangents, num_consts, num_carry)
    last, ys = bind_scan(
        step,
        [*consts, *drop_zeros(const_tangents)],
        [*carry, *present_arrays(carry_tangents, carry_has)],
        [*xs, *drop_zeros(xs_tangents)],
        options,
    )
    width = len(jaxpr.out_avals) - num_carry
    outs = [*last[:num_carry], *ys[:width]]
    return outs, fill([*last[num_carry:], *ys[width:]], present, [typeof(x) for x in outs])


# --- reverse mode ---------------------------------------------------------------------------------------


class _Halves(NamedTuple):
    """A step split for reverse mode.

    `invariant` computes the residuals that are equal in all steps, from the constants. `primal` returns carry, slices
    of results, and the residuals of the step. `linear` takes fixed residuals, tangents of constants and of the carry,
    moving residuals, and tangents of slices; it returns the tangents of the carry and of slices selected by `nonzero`.
    `fixed` and `moving` list the sources of residuals that are equal in all steps and of those with a slice for each:
    ("const", i), ("invariant", i), ("xs", i), ("ys", i), or ("left", i) for those that only the derivative needs.
    """

    invariant: ClosedJaxpr
    primal: ClosedJaxpr
    linear: ClosedJaxpr
    fixed: list[tuple[str, int]]
    moving: list[tuple[str, int]]
    nonzero: tuple[bool, ...]


def _scan_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, **options: Any
) -> tuple[list[Any], list[Any]]:
    has = [type(t) is not Zero for t in tangents]
    const_has, start_has, xs_has = map(tuple, split_operands(has, num_consts, num_carry))
    carry_has = carry_fixed_point(
        start_has, lambda known: linearize_jaxpr(jaxpr, (*const_has, *known, *xs_has)).nonzero[:num_carry]
    )
    key = ("scan halves", const_has, carry_has, xs_has, axis_env.get())
    halves = memoized(jaxpr.jaxpr, key, lambda: _halves(jaxpr, const_has, carry_has, xs_has))
    consts, carry, xs = split_operands(primals, num_consts, num_carry)
    # Once, outside of the loop. A residual of the loop itself would be stored for each step.
    invariant = eval_jaxpr(halves.invariant.jaxpr, halves.invariant.consts, *consts)
    last, ys = bind_scan(halves.primal, consts, carry, xs, options)
    width = len(jaxpr.out_avals) - num_carry
    outs = [*last, *ys[:width]]
    sources = {"const": consts, "invariant": invariant, "xs": xs, "ys": ys[:width], "left": ys[width:]}
    fixed = [sources[kind][i] for kind, i in halves.fixed]
    moving = [sources[kind][i] for kind, i in halves.moving]
    if not any(halves.nonzero):
        return outs, [Zero(typeof(x).tangent()) for x in outs]
    const_tangents, carry_tangents, xs_tangents = split_operands(tangents, num_consts, num_carry)
    last_tangents, ys_tangents = bind_scan(
        halves.linear,
        [*fixed, *drop_zeros(const_tangents)],
        present_arrays(carry_tangents, carry_has),
        [*moving, *drop_zeros(xs_tangents)],
        options,
    )
    return outs, fill([*last_tangents, *ys_tangents], halves.nonzero, [typeof(x) for x in outs])


def _halves(
    jaxpr: ClosedJaxpr, const_has: tuple[bool, ...], carry_has: tuple[bool, ...], xs_has: tuple[bool, ...]
) -> _Halves:
    nconst, ncarry, outputs = len(const_has), len(carry_has), len(jaxpr.out_avals)
    s = linearize_jaxpr(jaxpr, (*const_has, *carry_has, *xs_has))
    inner = s.primal.jaxpr
    steady_vars, steady_eqns = _invariant(inner, nconst)
    invariant_vars: list[Any] = []  # outputs of the primal half that depend on constants alone
    left_vars: list[Any] = []  # residuals of a step that are neither inputs nor results of it
    fixed: list[tuple[str, int]] = []
    moving: list[tuple[str, int]] = []
    residual_indices: list[tuple[bool, int]] = []  # for each residual: whether it is fixed, and its position there

    def keep(sources: list[tuple[str, int]], source: tuple[str, int]) -> None:
        residual_indices.append((sources is fixed, position(sources, source)))

    def position(items: list[Any], item: Any) -> int:
        if item not in items:
            items.append(item)
        return items.index(item)

    stored: dict[Any, tuple[str, int]] = {v: ("const", i) for i, v in enumerate(inner.invars[:nconst])}
    stored |= {v: ("xs", i) for i, v in enumerate(inner.invars[nconst + ncarry :])}
    # A result that is an input of the step is stored already.
    stored |= {v: ("ys", i) for i, v in enumerate(inner.outvars[ncarry:outputs]) if type(v) is Var and v not in stored}
    residuals = [inner.invars[i] if kind == "in" else inner.outvars[i] for kind, i in s.residuals]
    # Inputs and results of the steps exist anyway, and invariant values are computed once: these cost nothing to store.
    recompute = recomputed(s.primal, residuals, [*stored, *(v for v in steady_vars if v not in stored)])
    for v in recompute.leaves:
        if v in stored:
            keep(fixed if stored[v][0] == "const" else moving, stored[v])
        elif v in steady_vars:
            keep(fixed, ("invariant", position(invariant_vars, v)))
        else:
            keep(moving, ("left", position(left_vars, v)))

    invariant, _ = prune(inner.replace(invars=inner.invars[:nconst], outvars=invariant_vars, eqns=steady_eqns))
    primal, _ = prune(inner.replace(outvars=[*inner.outvars[:outputs], *left_vars]))
    nonzero = (*carry_has, *s.nonzero[ncarry:])
    linear = _linear_step(jaxpr, s, recompute.program, residual_indices, fixed, moving, const_has, carry_has)
    return _Halves(
        ClosedJaxpr(invariant, s.primal.consts),
        ClosedJaxpr(primal, s.primal.consts),
        linear,
        fixed,
        moving,
        nonzero,
    )


def _invariant(jaxpr: Jaxpr, num_consts: int) -> tuple[set[Var], list[JaxprEqn]]:
    """The variables that depend only on the constants of a scan's step, and the equations that compute them."""
    invariant: set[Var] = {*jaxpr.constvars, *jaxpr.invars[:num_consts]}
    eqns = []
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(v in invariant for v in eqn.invars if type(v) is Var):
            invariant.update(eqn.outvars)
            eqns.append(eqn)
    return invariant, eqns


def _linear_step(
    jaxpr: ClosedJaxpr,
    s: LinearizedJaxpr,
    recompute: ClosedJaxpr,
    residual_indices: Sequence[tuple[bool, int]],
    fixed: Sequence[Any],
    moving: Sequence[Any],
    const_has: tuple[bool, ...],
    carry_has: tuple[bool, ...],
) -> ClosedJaxpr:
    """The linear jaxpr of a step, with inputs in the order of a scan: fixed residuals, tangents of constants, tangents
    of the carry, moving residuals, tangents of slices. `recompute` returns the residuals of `s` for the stored ones."""
    ncarry, nconst_t, ncarry_t = len(carry_has), sum(const_has), sum(carry_has)
    # By `is_fixed`: those of moving residuals at False, those of fixed ones at True.
    avals: list[list[Any]] = [[None] * len(moving), [None] * len(fixed)]
    for (is_fixed, i), aval in zip(residual_indices, recompute.in_avals, strict=True):
        avals[is_fixed][i] = aval
    tangent_avals = s.linear.in_avals[len(recompute.out_avals) :]

    def fun(*args: Any) -> list[Any]:
        rows = [args[: len(fixed)], args[len(fixed) + nconst_t + ncarry_t :]]
        residual_values = [rows[0][i] if is_fixed else rows[1][i] for is_fixed, i in residual_indices]
        residuals = eval_jaxpr(recompute.jaxpr, recompute.consts, *residual_values)
        inputs = [*args[len(fixed) : len(fixed) + nconst_t + ncarry_t], *rows[1][len(moving) :]]
        tangents_out = eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *inputs)
        outs = fill(tangents_out, s.nonzero, jaxpr.out_avals)
        return [
            *present_arrays(outs[:ncarry], carry_has),
            *drop_zeros(outs[ncarry:]),
        ]

    order = [
        *avals[True],
        *tangent_avals[: nconst_t + ncarry_t],
        *avals[False],
        *tangent_avals[nconst_t + ncarry_t :],
    ]
    return restage(fun, order, s.linear.jaxpr)


def _scan_transpose(
    cotangents: Sequence[Any],
    *args: Any,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int,
) -> list[Any]:
    """A scan in the other direction, with cotangents of constants (summed) and of the carry as its carry; cotangents of
    slices are its results."""
    linear = tuple(is_linear(x) for x in args)
    options: Params = {"length": length, "reverse": reverse, "unroll": unroll}
    step_params = {"jaxpr": jaxpr, "num_consts": num_consts, "num_carry": num_carry}
    is_carry_linear = _scan_dependent(linear, step_params)[:num_carry]
    if not all(is_carry_linear):
        return _transpose_mixed(cotangents, args, is_carry_linear, jaxpr, num_consts, num_carry, **options)
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    ys_cts = cotangents[num_carry:]
    # Cotangents of slices that are `Zero` are not scanned.
    ys_has = tuple(type(ct) is not Zero for ct in ys_cts)
    step = memoized(
        jaxpr.jaxpr,
        ("transposed step", linear, num_consts, num_carry, ys_has, axis_env.get()),
        lambda: backward_step(jaxpr, linear, num_consts, num_carry, ys_has),
    )
    sums = [zeros(x.aval.cotangent()) for x in consts if is_linear(x)]
    last, rows = bind_scan(
        step,
        [x for x in consts if not is_linear(x)],
        [*sums, *map(instantiate, cotangents[:num_carry])],
        [*[x for x in xs if not is_linear(x)], *drop_zeros(ys_cts)],
        {**options, "reverse": not reverse},
    )
    const_cts, carry_cts, xs_cts = iter(last[: len(sums)]), last[len(sums) :], iter(rows)
    return [
        *(next(const_cts) if is_linear(x) else None for x in consts),
        *(ct if is_linear(x) else None for x, ct in zip(carry, carry_cts, strict=True)),
        *(next(xs_cts) if is_linear(x) else None for x in xs),
    ]


def _transpose_mixed(
    cotangents: Sequence[Any],
    args: Sequence[Any],
    is_carry_linear: Sequence[bool],
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **options: Any,
) -> list[Any]:
    """The transpose of a scan whose carry also holds values that are not linear, such as a counter.

    A scan forwards computes these values and stores them for each step, as scanned arrays of the transpose. Those that
    no step changes become constants.
    """
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    steady, moving, linear = _kinds_of_carry(jaxpr, num_consts, is_carry_linear)
    key = ("carry as slices", num_consts, tuple(is_carry_linear))
    step = memoized(jaxpr.jaxpr, key, lambda: _with_slices_of_carry(jaxpr, num_consts, steady, moving, linear))
    known = [not is_linear(x) for x in (*consts, *xs)]
    first, rows = known[:num_consts], known[num_consts:]
    known_jaxpr = memoized(
        jaxpr.jaxpr,
        (*key, tuple(known)),
        lambda: _known_step(jaxpr, num_consts, num_carry, steady, moving, first, rows),
    )
    fixed = [carry[i] for i in steady]
    start = [carry[i] for i in moving]
    _, stacks = bind_scan(known_jaxpr, [*only(consts, first), *fixed], start, only(xs, rows), options)
    results = _scan_transpose(
        [*(cotangents[i] for i in linear), *cotangents[num_carry:]],
        *[*consts, *fixed, *(carry[i] for i in linear), *stacks, *xs],
        jaxpr=step,
        num_consts=num_consts + len(steady),
        num_carry=len(linear),
        **options,
    )
    const_cts, carry_cts, xs_cts = split_operands(results, num_consts + len(steady), len(linear))
    of_carry = dict(zip(linear, carry_cts, strict=True))
    return [*const_cts[:num_consts], *(of_carry.get(i) for i in range(num_carry)), *xs_cts[len(moving) :]]


def _kinds_of_carry(
    jaxpr: ClosedJaxpr, num_consts: int, is_carry_linear: Sequence[bool]
) -> tuple[list[int], list[int], list[int]]:
    """The positions of carries that no step changes, of others that are not linear, and of those that are linear."""
    steady: list[int] = []
    moving: list[int] = []
    linear: list[int] = []
    for i, flag in enumerate(is_carry_linear):
        # A step that returns the variable of a carry does not change it.
        kind = linear if flag else steady if jaxpr.outvars[i] is jaxpr.invars[num_consts + i] else moving
        kind.append(i)
    return steady, moving, linear


def _with_slices_of_carry(
    jaxpr: ClosedJaxpr, num_consts: int, steady: Sequence[int], moving: Sequence[int], linear: Sequence[int]
) -> ClosedJaxpr:
    """The step with its `steady` carries as constants, and the `moving` ones as slices."""
    num_carry = len(steady) + len(moving) + len(linear)
    consts, carry, xs = split_operands(jaxpr.invars, num_consts, num_carry)
    fixed, slices, carried = ([carry[i] for i in part] for part in (steady, moving, linear))
    outvars = [*(jaxpr.outvars[i] for i in linear), *jaxpr.outvars[num_carry:]]
    return jaxpr.replace(jaxpr=jaxpr.jaxpr.replace(invars=[*consts, *fixed, *carried, *slices, *xs], outvars=outvars))


def _known_step(
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    steady: Sequence[int],
    moving: Sequence[int],
    known_consts: Sequence[bool],
    known_xs: Sequence[bool],
) -> ClosedJaxpr:
    """The step of the `moving` carries alone, which also returns their values before the step as slices."""
    consts, carry, xs = split_operands(jaxpr.invars, num_consts, num_carry)
    before = [carry[i] for i in moving]
    invars = [*only(consts, known_consts), *(carry[i] for i in steady), *before, *only(xs, known_xs)]
    step = jaxpr.jaxpr.replace(invars=invars, outvars=[*(jaxpr.outvars[i] for i in moving), *before])
    return jaxpr.replace(jaxpr=prune(step)[0])


# --- dead code, and policies of checkpoint --------------------------------------------------------------


def _scan_drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    if all(used):
        return eqn
    params = eqn.params
    step, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]

    def read(carried: Sequence[bool]) -> tuple[list[Any], list[Any], list[Any]]:
        used_inputs = narrowed(step, [*carried, *used[num_carry:]])[1]
        return split_operands(used_inputs, num_consts, num_carry)

    # A carry is needed if it is used after the scan, or if the next step reads it.
    carried = carry_fixed_point(used[:num_carry], lambda known: read(known)[1])
    consts, _, xs = read(carried)
    inputs = [*consts, *carried, *xs]
    outputs = [*carried, *used[num_carry:]]
    flags = [False] * len(consts) + [*carried] + [False] * len(xs)
    narrower = narrowed(step, outputs, flags)[0]
    params = {**params, "jaxpr": narrower, "num_consts": sum(consts), "num_carry": sum(carried)}
    return eqn.replace(invars=only(eqn.invars, inputs), outvars=only(eqn.outvars, outputs), params=params)


def _scan_dependent(operands: Sequence[bool], params: dict[str, Any]) -> list[bool]:
    step, num_carry = params["jaxpr"].jaxpr, params["num_carry"]
    consts, carry, xs = split_operands(operands, params["num_consts"], num_carry)
    carried = carry_fixed_point(carry, lambda known: dependent_outputs(step, [*consts, *known, *xs])[:num_carry])
    return [*carried, *dependent_outputs(step, [*consts, *carried, *xs])[num_carry:]]


def _scan_divide(eqn: JaxprEqn, policy: Policy) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    """Saved values of a step become scanned results. Loop-invariant values are not saved, but computed in both halves,
    because they would be stored once for each step."""
    step, params = eqn.params["jaxpr"], eqn.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    divided = divide(step, policy, excepted=set(_invariant(step.jaxpr, num_consts)[1]))
    return divided_call(eqn, divided, lambda v: v.aval.with_axis(0, params["length"]), num_consts, num_carry)


# --- vmap -----------------------------------------------------------------------------------------------


def _scan_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **options: Any,
) -> tuple[list[Any], list[Dim]]:
    const_dims, carry_dims, xs_dims = split_operands(dims, num_consts, num_carry)
    is_xs_batched = [d is not None for d in xs_dims]
    slice_dims = batch_dims(is_xs_batched)

    def after(batched: tuple[bool, ...]) -> list[bool]:
        out_dims = batch_jaxpr(jaxpr, axis, (*const_dims, *batch_dims(batched), *slice_dims))[1]
        return [d is not None for d in out_dims[:num_carry]]

    batched = carry_fixed_point([d is not None for d in carry_dims], after)
    in_dims = (*const_dims, *batch_dims(batched), *slice_dims)
    must = (*batched, *[False] * (len(jaxpr.out_avals) - num_carry))
    derived, out_dims = batch_jaxpr(jaxpr, axis, in_dims, must)
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    carry = place_axes(axis, carry, carry_dims, batched)
    # Axis 0 of the rows counts the steps, so the batch is axis 1.
    xs = place_axes(axis, xs, xs_dims, is_xs_batched, 1)
    last, rows = bind_scan(derived, consts, carry, xs, options)
    return [*last, *rows], [*out_dims[:num_carry], *[None if d is None else 1 for d in out_dims[num_carry:]]]


def _scan_lower(f: Function, *args: Value, **params: Any) -> list[Value]:
    jaxpr, both = params["jaxpr"], params["num_consts"] + params["num_carry"]
    # The values of `args` have physical types, so those of keys come from the Jaxpr.
    avals = [*jaxpr.in_avals[:both], *(a.with_axis(0, params["length"]) for a in jaxpr.in_avals[both:])]
    return lower_function(f, lambda *xs: _as_loop(*xs, **params), avals, args)


def _scan_steps(
    *args: Any, jaxpr: ClosedJaxpr, length: int, num_consts: int, num_carry: int, reverse: bool, unroll: int
) -> Steps:
    consts, carry, xs = split_operands(args, num_consts, num_carry)
    for turn in range(length):
        at = dtypes.int32.type(length - 1 - turn if reverse else turn)
        outs = yield jaxpr, [*consts, *carry, *(row_at(x, at) for x in xs)], f"turn {turn} of scan"
        carry = outs[:num_carry]


def _scan_keys(eqn: JaxprEqn, uses_of: Any) -> KeyUses:
    """A turn may consume keys of the carry that it replaces, and keys of the rows; constants it shares with others."""
    params = eqn.params
    consts, carry = params["num_consts"], params["num_carry"]
    uses: KeyUses = uses_of(params["jaxpr"])
    for i, _ in uses.consumed:
        if i < consts or (i - consts < carry and i - consts not in uses.unused):
            raise repeated("scan body function", eqn, i)
    rows = tuple((i, mask if i < consts + carry else True) for i, mask in uses.consumed)
    return KeyUses(rows, tuple(uses.unused), uses.passed)


scan = ProgramPrimitive(
    "scan",
    bodies=lambda params: [Body(params["jaxpr"], params["num_consts"])],
    rebuild=_scan_rebuild,
    keeps_types=True,
    types=_scan_types,
    lower=_scan_lower,
    jvp=_scan_jvp,
    linearize=_scan_linearize,
    transpose=_scan_transpose,
    batch=_scan_batch,
    pad=scan_pad,
    steps=_scan_steps,
    drop_unused=_scan_drop_unused,
    dependent=_scan_dependent,
    divide=_scan_divide,
    keys=_scan_keys,
)
