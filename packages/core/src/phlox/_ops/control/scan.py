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
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, hoisted, memoized, narrowed, only, prune
from ..._ir.key_uses import KeyUses, repeated
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Body, Operands, ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, fill, instantiate, present_arrays, zeros
from ..._transform.batch import BatchAxis, Dim, batch_dims, place_axes
from ..._transform.jaxprs import LinearizedJaxpr, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage
from ..._transform.padding import Padding
from ..._transform.residuals import recomputed
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add as plus, sub
from ..elementwise.families import lower_function
from ..elementwise.logic import lt
from .division import Policy, divide, divided_call
from .loop import while_p
from .once import Steps
from .rows import row_at, rows_at, with_rows, zero_array
from .turns import Loop, backward_step, carry_fixed_point, jvp_step, repeat, split_operands

Params = dict[str, Any]


class Scan(NamedTuple):
    """A scan: its step, the values of the constants, the carry and the scanned arrays, and further parameters.

    The values may also be tangents, or axes of a batch. `options` are `length`, `reverse` and `unroll`.
    """

    step: ClosedJaxpr
    consts: Sequence[Any]
    carry: Sequence[Any]
    xs: Sequence[Any]
    options: Params

    @classmethod
    def of(cls, values: Sequence[Any], params: Params) -> Scan:
        """The scan with these parameters, and values for its operands."""
        options = dict(params)
        step, *counts = (options.pop(name) for name in ("jaxpr", "num_consts", "num_carry"))
        return cls(step, *split_operands(values, *counts), options)

    def has_tangents(self) -> tuple[tuple[bool, ...], tuple[bool, ...], tuple[bool, ...]]:
        """For constants, carry and scanned arrays, whether they have tangents; the values are tangents."""
        consts, carry, xs = (tuple(type(t) is not Zero for t in part) for part in (self.consts, self.carry, self.xs))
        return consts, carry, xs

    def operation(self) -> Operands:
        """The operands and parameters of `scan`; the constants of the closed jaxpr become operands."""
        consts = [*self.step.consts, *self.consts]
        params = {"jaxpr": hoisted(self.step), "num_consts": len(consts), "num_carry": len(self.carry), **self.options}
        return [*consts, *self.carry, *self.xs], params

    def bind(self) -> tuple[list[Any], list[Any]]:
        """Binds `scan`; returns the last carry, and the stacked results."""
        args, params = self.operation()
        outs: list[Any] = scan.bind(*args, **params)
        return outs[: len(self.carry)], outs[len(self.carry) :]


def _scan_types(*avals: ShapedArray, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *[a.with_axis(0, length) for a in outs[num_carry:]]]


# --- as a loop ------------------------------------------------------------------------------------------


_ZERO, _ONE = dtypes.int32.type(0), dtypes.int32.type(1)


def _as_loop(*args: Any, **params: Any) -> list[Any]:
    """The scan as a `while` loop with `unroll` steps in each iteration, then the remaining steps."""
    jaxpr, consts, carry, xs, options = Scan.of(args, params)
    length, reverse, unroll = options["length"], options["reverse"], options["unroll"]
    num_carry = len(carry)
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


def _scan_rebuild(
    args: Sequence[Any], params: Params, programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    s, (step,) = Scan.of(args, params), programs
    return s._replace(step=step, carry=[*carried, *s.carry]).operation()


# --- forward mode ---------------------------------------------------------------------------------------


def _scan_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    s, t = Scan.of(primals, params), Scan.of(tangents, params)
    const_has, start_has, xs_has = t.has_tangents()
    num_carry = len(s.carry)
    # A carry without a tangent at the start has one as soon as a step gives it one.
    carry_has = carry_fixed_point(
        start_has, lambda known: jvp_jaxpr(s.step, (*const_has, *known, *xs_has))[1][:num_carry]
    )
    step, present = jvp_step(s.step, const_has, carry_has, xs_has)
    last, ys = Scan(
        step,
        [*s.consts, *drop_zeros(t.consts)],
        [*s.carry, *present_arrays(t.carry, carry_has)],
        [*s.xs, *drop_zeros(t.xs)],
        s.options,
    ).bind()
    width = len(s.step.out_avals) - num_carry
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


def _scan_linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    s, t = Scan.of(primals, params), Scan.of(tangents, params)
    const_has, start_has, xs_has = t.has_tangents()
    num_carry = len(s.carry)
    carry_has = carry_fixed_point(
        start_has, lambda known: linearize_jaxpr(s.step, (*const_has, *known, *xs_has)).nonzero[:num_carry]
    )
    key = ("scan halves", const_has, carry_has, xs_has, axis_env.get())
    halves = memoized(s.step.jaxpr, key, lambda: _halves(s.step, const_has, carry_has, xs_has))
    # Once, outside of the loop. A residual of the loop itself would be stored for each step.
    invariant = eval_jaxpr(halves.invariant.jaxpr, halves.invariant.consts, *s.consts)
    last, ys = s._replace(step=halves.primal).bind()
    width = len(s.step.out_avals) - num_carry
    outs = [*last, *ys[:width]]
    sources = {"const": s.consts, "invariant": invariant, "xs": s.xs, "ys": ys[:width], "left": ys[width:]}
    fixed = [sources[kind][i] for kind, i in halves.fixed]
    moving = [sources[kind][i] for kind, i in halves.moving]
    if not any(halves.nonzero):
        return outs, [Zero(typeof(x).tangent()) for x in outs]
    last_tangents, ys_tangents = Scan(
        halves.linear,
        [*fixed, *drop_zeros(t.consts)],
        present_arrays(t.carry, carry_has),
        [*moving, *drop_zeros(t.xs)],
        s.options,
    ).bind()
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


def _scan_transpose(cotangents: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
    """A scan in the other direction, with cotangents of constants (summed) and of the carry as its carry; cotangents of
    slices are its results."""
    linear = tuple(is_linear(x) for x in args)
    s = Scan.of(args, params)
    num_consts, num_carry = len(s.consts), len(s.carry)
    is_carry_linear = _scan_dependent(linear, params)[:num_carry]
    if not all(is_carry_linear):
        return _transpose_mixed(cotangents, s, is_carry_linear)
    ys_cts = cotangents[num_carry:]
    # Cotangents of slices that are `Zero` are not scanned.
    ys_has = tuple(type(ct) is not Zero for ct in ys_cts)
    step = memoized(
        s.step.jaxpr,
        ("transposed step", linear, num_consts, num_carry, ys_has, axis_env.get()),
        lambda: backward_step(s.step, linear, num_consts, num_carry, ys_has),
    )
    sums = [zeros(x.aval.cotangent()) for x in s.consts if is_linear(x)]
    last, rows = Scan(
        step,
        [x for x in s.consts if not is_linear(x)],
        [*sums, *map(instantiate, cotangents[:num_carry])],
        [*[x for x in s.xs if not is_linear(x)], *drop_zeros(ys_cts)],
        {**s.options, "reverse": not s.options["reverse"]},
    ).bind()
    const_cts, carry_cts, xs_cts = iter(last[: len(sums)]), last[len(sums) :], iter(rows)
    return [
        *(next(const_cts) if is_linear(x) else None for x in s.consts),
        *(ct if is_linear(x) else None for x, ct in zip(s.carry, carry_cts, strict=True)),
        *(next(xs_cts) if is_linear(x) else None for x in s.xs),
    ]


def _transpose_mixed(cotangents: Sequence[Any], s: Scan, is_carry_linear: Sequence[bool]) -> list[Any]:
    """The transpose of a scan whose carry also holds values that are not linear, such as a counter.

    A scan forwards computes these values and stores them for each step, as scanned arrays of the transpose. Those that
    no step changes become constants.
    """
    num_consts, num_carry = len(s.consts), len(s.carry)
    steady, moving, linear = _kinds_of_carry(s.step, num_consts, is_carry_linear)
    key = ("carry as slices", num_consts, tuple(is_carry_linear))
    step = memoized(s.step.jaxpr, key, lambda: _with_slices_of_carry(s.step, num_consts, steady, moving, linear))
    first, rows = ([not is_linear(x) for x in part] for part in (s.consts, s.xs))
    known_step = memoized(
        s.step.jaxpr,
        (*key, tuple(first), tuple(rows)),
        lambda: _known_step(s.step, num_consts, num_carry, steady, moving, first, rows),
    )
    fixed, start, others = ([s.carry[i] for i in part] for part in (steady, moving, linear))
    _, stacks = Scan(known_step, [*only(s.consts, first), *fixed], start, only(s.xs, rows), s.options).bind()
    args, params = Scan(step, [*s.consts, *fixed], others, [*stacks, *s.xs], s.options).operation()
    results = _scan_transpose([*(cotangents[i] for i in linear), *cotangents[num_carry:]], *args, **params)
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
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any
) -> tuple[list[Any], list[Dim]]:
    s, d = Scan.of(args, params), Scan.of(dims, params)
    num_carry = len(s.carry)
    is_xs_batched = [dim is not None for dim in d.xs]
    slice_dims = batch_dims(is_xs_batched)

    def after(batched: tuple[bool, ...]) -> list[bool]:
        out_dims = batch_jaxpr(s.step, axis, (*d.consts, *batch_dims(batched), *slice_dims))[1]
        return [dim is not None for dim in out_dims[:num_carry]]

    batched = carry_fixed_point([dim is not None for dim in d.carry], after)
    in_dims = (*d.consts, *batch_dims(batched), *slice_dims)
    must = (*batched, *[False] * (len(s.step.out_avals) - num_carry))
    derived, out_dims = batch_jaxpr(s.step, axis, in_dims, must)
    carry = place_axes(axis, s.carry, d.carry, batched)
    # Axis 0 of the rows counts the steps, so the batch is axis 1.
    xs = place_axes(axis, s.xs, d.xs, is_xs_batched, 1)
    last, rows = s._replace(step=derived, carry=carry, xs=xs).bind()
    return [*last, *rows], [*out_dims[:num_carry], *[None if dim is None else 1 for dim in out_dims[num_carry:]]]


# --- padded axes, and lowering --------------------------------------------------------------------------


def _scan_pad(padding: Padding, eqn: JaxprEqn, *args: Any) -> list[Any]:
    """A scan over a padded axis is a loop that stops after the true length."""
    s = Scan.of(args, eqn.params)
    symbolic, num_carry = s.options["length"], len(s.carry)
    if not is_symbolic(symbolic):
        last, rows = s._replace(step=padding.program(s.step)).bind()
        return [*last, *rows]
    length, capacity = padding.length(symbolic), padding.capacity(symbolic)
    ys = [zero_array(padding.aval(a).with_axis(0, capacity)) for a in s.step.out_avals[num_carry:]]

    def turn(i: Any, *values: Any) -> list[Any]:
        # A reversed scan begins at the true end, not at the end of the padding.
        at = sub(sub(length, _ONE), i) if s.options["reverse"] else i
        rows = [row_at(rows_at(x, at, 1), 0) for x in s.xs]
        outs = padding.run(s.step, [*s.consts, *values[:num_carry], *rows])
        written = [with_rows(y, [row], at) for y, row in zip(values[num_carry:], outs[num_carry:], strict=True)]
        return [plus(i, _ONE), *outs[:num_carry], *written]

    return repeat(lambda i, *_: lt(i, length), turn, [_ZERO, *s.carry, *ys])[1:]


def _scan_lower(f: Function, *args: Value, **params: Any) -> list[Value]:
    jaxpr, both = params["jaxpr"], params["num_consts"] + params["num_carry"]
    # The values of `args` have physical types, so those of keys come from the Jaxpr.
    avals = [*jaxpr.in_avals[:both], *(a.with_axis(0, params["length"]) for a in jaxpr.in_avals[both:])]
    return lower_function(f, lambda *xs: _as_loop(*xs, **params), avals, args)


def _scan_steps(*args: Any, **params: Any) -> Steps:
    jaxpr, consts, carry, xs, options = Scan.of(args, params)
    length = options["length"]
    for turn in range(length):
        at = dtypes.int32.type(length - 1 - turn if options["reverse"] else turn)
        outs = yield jaxpr, [*consts, *carry, *(row_at(x, at) for x in xs)], f"turn {turn} of scan"
        carry = outs[: len(carry)]


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
    pad=_scan_pad,
    steps=_scan_steps,
    drop_unused=_scan_drop_unused,
    dependent=_scan_dependent,
    divide=_scan_divide,
    keys=_scan_keys,
)
