"""The `cond` primitive: runs one of several jaxprs, chosen by an index at run time.

All branches take the same operands and return results of the same types. `runs_once` (once.py) adds the rules that
transform each branch and make the results uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from ..._base import config
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.effects import ordered, refuse_io
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, Var, effects_inside, memoized, narrowed, only, without
from ..._ir.key_uses import KeyUses, joined_masks
from ..._trace.axes import axis_env, tracked_axes
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import Operands
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, fill, present_arrays, zeros
from ..._transform.batch import BatchAxis, Dim, place_axis
from ..._transform.jaxprs import LinearizedJaxpr, batch_jaxpr, linearize_jaxpr, restage
from ..._transform.padding import pads_programs
from ..._xla.lower import lower_jaxpr
from ..._xla.text import TOKEN, Function, Number, Value
from ..elementwise.arithmetic import stop_gradient
from ..elementwise.families import literal
from ..elementwise.logic import eq, select, select_n
from ..random.keys import is_key, random_clone
from ..structure.shape import broadcast_in_dim, convert
from .call import call
from .division import Divided, Policy, divide
from .masked import masked_jaxpr, needs_mask
from .once import Steps, any_of, once_batch, runs_once
from .row_chunks import run_by_chunks, runs_by_chunks

Branches = tuple[ClosedJaxpr, ...]
Batching = Literal["select", "split"] | None


def _cond_types(
    index: ShapedArray, *avals: ShapedArray, branches: Branches, batching: Batching = None
) -> list[ShapedArray]:
    outs = branches[0].out_avals
    if not tracked_axes():
        return outs
    # A branch returns zeros where only others have a residual or a cotangent; these do not vary.
    columns = zip(*[branch.out_avals for branch in branches], strict=True)
    return [a.varying(index.vma.union(*[one.vma for one in column])) for a, column in zip(outs, columns, strict=True)]


def _cond_eager(index: Any, *operands: Any, branches: Branches, batching: Batching = None) -> list[Any]:
    chosen = branches[_clamped(index, branches)]
    outs = call(chosen, operands, name=chosen.jaxpr.name or "branch")
    if chosen.out_avals == branches[0].out_avals:
        return outs
    # Weak types may differ between branches. Those of the first are declared, as in JAX.
    return [convert(x, a.dtype, a.weak_type) for x, a in zip(outs, branches[0].out_avals, strict=True)]


def _clamped(index: Any, branches: Branches) -> int:
    """The number of the branch that runs, clamped as in `lax.switch`. StableHLO's `case` would run the last branch."""
    return min(max(int(index), 0), len(branches) - 1)


def _cond_lower(
    f: Function, index: Value, *operands: Value, branches: Branches, batching: Batching = None
) -> list[Value]:
    if isinstance(index, Number):  # known when lowering, as platform_index: other branches may not even lower here
        return lower_jaxpr(f, branches[_clamped(index.value, branches)].jaxpr, operands)
    outs = [aval.physical for aval in branches[0].out_avals]
    in_order = ordered(effects_inside({"branches": branches}))
    token = f.order() if in_order else None

    def run(g: Function, branch: ClosedJaxpr) -> list[Value]:
        # Each branch goes on from the token before the `cond`, and returns the token after its last effect.
        g.token = token
        results = lower_jaxpr(g, branch.jaxpr, operands)
        return [*results, g.order()] if in_order else results

    regions = [
        f.region([], lambda g, b=branch: run(g, b), names=("cond", f"branch_{i}_fun"))
        for i, branch in enumerate(branches)
    ]
    if not in_order:
        return f.op("stablehlo.case", [index], outs, "", regions)
    *results, f.token = f.op("stablehlo.case", [index], [*outs, TOKEN], "", regions)
    return results


def bind_branches(index: Any, branches: Branches, operands: Sequence[Any], batching: Batching = None) -> list[Any]:
    """Binds `cond`; the constants of all closed branches become operands."""
    return cond.rebind([index, *operands], cond_params(branches, batching), branches)


def cond_params(branches: Branches, batching: Batching) -> dict[str, Any]:
    """The parameters of `cond`. `batching` is one of them only if it is given, as JAX's `cond` has none."""
    return {"branches": branches} if batching is None else {"branches": branches, "batching": batching}


def with_shared_constants(branches: Sequence[ClosedJaxpr], order: Iterable[int]) -> tuple[list[Any], Branches]:
    """The constants of all branches, each once, and the branches with these constants as leading inputs.

    `order` lists the branches in the order in which their constants are collected.
    """
    # By identity: a constant that several branches share is one operand.
    positions: dict[int, int] = {}
    consts: list[Any] = []
    for c in (c for number in order for c in branches[number].consts):
        if id(c) not in positions:
            positions[id(c)] = len(consts)
            consts.append(c)
    avals = tuple(typeof(c) for c in consts)
    return consts, tuple(_with_constants(b, avals, tuple(positions[id(c)] for c in b.consts)) for b in branches)


def _with_constants(branch: ClosedJaxpr, avals: tuple[ShapedArray, ...], positions: tuple[int, ...]) -> ClosedJaxpr:
    """The branch with leading inputs of types `avals` for the constants of all branches; its own are at `positions`."""

    def make() -> ClosedJaxpr:
        own = dict(zip(positions, branch.jaxpr.constvars, strict=True))
        constants = [own.get(i) or Var(aval) for i, aval in enumerate(avals)]
        return ClosedJaxpr(branch.jaxpr.replace(constvars=[], invars=[*constants, *branch.jaxpr.invars]))

    return memoized(branch.jaxpr, ("with constants", avals, positions), make)


def _cond_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], branches: Branches, batching: Batching = None
) -> tuple[list[Any], list[Any]]:
    index, operands = primals[0], primals[1:]
    has_tangent = tuple(type(t) is not Zero for t in tangents[1:])
    split = [linearize_jaxpr(branch, has_tangent) for branch in branches]
    nonzero = any_of([s.nonzero for s in split])
    slots, slot_indices = _slots([s.primal.out_avals[len(branches[0].out_avals) :] for s in split])
    # Operands of the linear half are stored until it runs, so only those that some branch needs are passed.
    inputs, count = len(operands), len(branches[0].out_avals)
    needed = {(kind, i) for s in split for kind, i in s.residuals if kind == "in" or i < count}
    residuals = tuple(i for i in range(inputs) if ("in", i) in needed)
    residuals += tuple(inputs + i for i in range(count) if ("out", i) in needed)
    residuals += tuple(inputs + count + i for i in range(len(slots)))
    key = (has_tangent, tuple(slots), nonzero, residuals, axis_env.get())
    halves = []
    for branch, s, branch_slots in zip(branches, split, slot_indices, strict=True):
        make = partial(_branch_halves, branch, s, slots, branch_slots, residuals, nonzero)
        halves.append(memoized(branch.jaxpr, ("halves", *key, tuple(branch_slots)), make))
    results = bind_branches(index, tuple(primal for primal, _ in halves), operands, batching)
    values = [*operands, *results]
    linear = tuple(half for _, half in halves)
    operands = [*(values[i] for i in residuals), *drop_zeros(tangents[1:])]
    outs = bind_branches(index, linear, operands, batching) if any(nonzero) else []
    return results[:count], fill(outs, nonzero, branches[0].out_avals)


def _slots(extra: Sequence[Sequence[ShapedArray]]) -> tuple[list[ShapedArray], list[list[int]]]:
    """The types of the slots in which branches return values of the types `extra`, and the slots of each branch.

    Only one branch runs, so values of one type in different branches share a slot.
    """
    slots: list[ShapedArray] = []
    slot_indices = []
    for avals in extra:
        free = list(range(len(slots)))
        branch_slots = []
        for aval in avals:
            slot = next((i for i in free if slots[i] == aval), None)
            if slot is None:
                slot = len(slots)
                slots.append(aval)
            else:
                free.remove(slot)
            branch_slots.append(slot)
        slot_indices.append(branch_slots)
    return slots, slot_indices


def _with_slots(branch: ClosedJaxpr, slots: Sequence[ShapedArray], branch_slots: Sequence[int]) -> ClosedJaxpr:
    """A branch with its extra results in the slots `branch_slots`, and zeros in the other slots."""
    count = len(branch.out_avals) - len(branch_slots)

    def fun(*args: Any) -> list[Any]:
        results = eval_jaxpr(branch.jaxpr, branch.consts, *args)
        values = dict(zip(branch_slots, results[count:], strict=True))
        return [*results[:count], *(values[i] if i in values else zeros(aval) for i, aval in enumerate(slots))]

    return restage(fun, branch.in_avals, branch.jaxpr)


def _branch_halves(
    branch: ClosedJaxpr,
    s: LinearizedJaxpr,
    slots: Sequence[ShapedArray],
    branch_slots: Sequence[int],
    residual_indices: Sequence[int],
    nonzero: Sequence[bool],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The primal half of a branch, with slots, and its linear jaxpr.

    The inputs of the linear jaxpr are tangents, after the operands and results of the primal half at the positions
    `residual_indices`.
    """
    inputs, outputs = len(branch.in_avals), len(branch.out_avals)

    def place(kind: str, i: int) -> int:
        """The position of a residual among operands, results and slots."""
        return i if kind == "in" else inputs + (i if i < outputs else outputs + branch_slots[i - outputs])

    def fun(*args: Any) -> list[Any]:
        values = dict(zip(residual_indices, args, strict=False))
        residuals = [values[place(kind, i)] for kind, i in s.residuals]
        tangents_out = eval_jaxpr(s.linear.jaxpr, s.linear.consts, *residuals, *args[len(residual_indices) :])
        tangents = fill(tangents_out, s.nonzero, branch.out_avals)
        return present_arrays(tangents, nonzero)

    avals = [*branch.in_avals, *branch.out_avals, *slots]
    tangent_avals = s.linear.in_avals[len(s.residuals) :]
    linear = restage(fun, [*(avals[i] for i in residual_indices), *tangent_avals], s.linear.jaxpr)
    return _with_slots(s.primal, slots, branch_slots), linear


def _cond_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], branches: Branches, batching: Batching = None
) -> tuple[list[Any], list[Dim]]:
    index, operands, in_dims = args[0], args[1:], tuple(dims[1:])
    if dims[0] is not None:
        if runs_by_chunks(axis, args, dims, branches, batching):
            index = place_axis(index, dims[0], 0, axis.size)
            outs = run_by_chunks(axis, index, operands, in_dims, branches, bind_branches)
            return outs, [0] * len(outs)
        settings = config.current()
        if settings.debug_nans or settings.debug_infs:  # of one program only the results are checked
            fun = lambda *xs: _batch_choice(axis, xs[0], xs[1:], in_dims, branches)[0]  # noqa: E731
            jaxpr, consts = stage(fun, [typeof(x) for x in args], name="cond")
            outs = call(ClosedJaxpr(jaxpr, consts), args, name="cond")
            return outs, [0] * len(outs)
        return _batch_choice(axis, index, operands, in_dims, branches)
    return once_batch(cond, 1, axis, args, dims, **cond_params(branches, batching))


def _batch_choice(
    axis: BatchAxis, index: Any, operands: Sequence[Any], in_dims: tuple[Dim, ...], branches: Branches
) -> tuple[list[Any], list[Dim]]:
    """For a batched index: computes all branches for all examples, and selects among their results."""
    refuse_io(effects_inside({"branches": branches}), "vmap of cond", "which runs every branch for every example")
    every = []
    for number, branch in enumerate(branches):
        chosen = eq(index, literal(index, number))
        inputs, dims = _only_chosen(axis, chosen, operands, in_dims)
        if number:  # of each example one branch counts, so that no key is used twice
            inputs = [random_clone.bind(x) if is_key(typeof(x)) else x for x in inputs]
        if needs_mask(branch.jaxpr):  # for rows that do not take the branch a loop might never end
            branch = masked_jaxpr(branch, typeof(chosen).without_axis(0))
            inputs, dims = [chosen, *inputs], (0, *dims)
        derived, out_dims = batch_jaxpr(branch, axis, dims)
        results = call(derived, inputs, name=branch.jaxpr.name or "branch")
        every.append([place_axis(x, d, 0, axis.size) for x, d in zip(results, out_dims, strict=True)])
    outs = []
    for cases in zip(*every, strict=True):
        shape = typeof(cases[0]).shape
        # `select_n` takes an index of the shape of its cases, or a single one.
        which = index if len(shape) == 1 else broadcast_in_dim(index, shape=shape, broadcast_dimensions=(0,))
        outs.append(select_n(which, *cases))
    return outs, [0] * len(outs)


def _only_chosen(
    axis: BatchAxis, chosen: Any, operands: Sequence[Any], in_dims: tuple[Dim, ...]
) -> tuple[list[Any], tuple[Dim, ...]]:
    """The operands of a branch, with gradients stopped for the examples that do not choose this branch.

    Their cotangents are zero, but zero times an infinite derivative of a branch that was not chosen would be nan.
    """
    inputs, dims = list(operands), list(in_dims)
    for i, (x, dim) in enumerate(zip(operands, in_dims, strict=True)):
        # Integers have no gradient that could become nan.
        if typeof(x).tangent().dtype != dtypes.float0:
            x, dims[i] = place_axis(x, dim, 0, axis.size), 0
            which = broadcast_in_dim(chosen, shape=typeof(x).shape, broadcast_dimensions=(0,))
            inputs[i] = select(which, x, stop_gradient(x))
    return inputs, tuple(dims)


def _cond_steps(index: Any, *operands: Any, branches: Branches, batching: Batching = None) -> Steps:
    chosen = _clamped(index, branches)
    yield branches[chosen], operands, f"branch {chosen} of cond"


def _cond_divide(eqn: JaxprEqn, policy: Policy) -> tuple[JaxprEqn, JaxprEqn, list[Var]]:
    divided = [divide(branch, policy) for branch in eqn.params["branches"]]
    # A result that all branches save is passed to the second half as it is.
    results = [d.forward.jaxpr.outvars[: len(eqn.outvars)] for d in divided]
    missing = [any(v not in d.residuals for v, d in zip(vs, divided, strict=True)) for vs in zip(*results, strict=True)]
    divided = [_for_results(d, missing) for d in divided]
    slots, slot_indices = _slots([[v.aval for v in d.residuals] for d in divided])
    residual_vars = [Var(aval) for aval in slots]
    forward = tuple(_with_slots(d.forward, slots, indices) for d, indices in zip(divided, slot_indices, strict=True))
    recompute = tuple(_from_slots(d, slots, indices) for d, indices in zip(divided, slot_indices, strict=True))
    return (
        eqn.replace(outvars=[*eqn.outvars, *residual_vars], params={**eqn.params, "branches": forward}),
        eqn.replace(
            invars=[*eqn.invars, *residual_vars],
            outvars=only(eqn.outvars, missing),
            params={**eqn.params, "branches": recompute},
        ),
        [*without(eqn.outvars, missing), *residual_vars],
    )


def _for_results(divided: Divided, missing: Sequence[bool]) -> Divided:
    """The halves of a branch, of which the second computes the results that are `missing`.

    Saved values that it does not read are left out: they would occupy slots that other branches read."""
    forward, inputs = divided.forward, len(divided.forward.in_avals)
    recompute, read = narrowed(divided.recompute, missing, [i < inputs for i in range(inputs + len(divided.residuals))])
    saved = only(divided.residuals, read[inputs:])
    outvars = [*forward.jaxpr.outvars[: len(missing)], *saved]
    return Divided(forward.replace(jaxpr=forward.jaxpr.replace(outvars=outvars)), recompute, saved)


def _from_slots(divided: Divided, slots: Sequence[ShapedArray], branch_slots: Sequence[int]) -> ClosedJaxpr:
    """The second half of a split branch, which takes its saved values from their slots."""
    jaxpr = divided.recompute.jaxpr
    saved = dict(zip(branch_slots, divided.residuals, strict=True))
    slot_vars = [saved[i] if i in saved else Var(aval) for i, aval in enumerate(slots)]
    invars = [*jaxpr.invars[: len(jaxpr.invars) - len(branch_slots)], *slot_vars]
    return divided.recompute.replace(jaxpr=jaxpr.replace(invars=invars))


def _cond_keys(eqn: JaxprEqn, uses_of: Any) -> KeyUses:
    """A key is consumed if any branch consumes it. A result is used if a branch returns a used key, or one passed in
    that any branch consumes; else it is passed on if all branches pass it, and fresh if not."""
    every = [uses_of(branch) for branch in eqn.params["branches"]]
    consumed = tuple((i + 1, mask) for uses in every for i, mask in uses.consumed)
    # Which branch runs is not known: a use in any of them counts, and a key is passed on only if all pass it.
    passed = set.intersection(*(set(uses.passed) for uses in every))
    unused = [uses.unused | {o for i, o in uses.passed if all(i != j for j, _ in uses.consumed)} for uses in every]
    fresh = set.intersection(*unused) - {o for _, o in passed}
    return KeyUses(joined_masks(consumed), tuple(fresh), tuple((i + 1, o) for i, o in passed))


def _cond_rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """The constants of all branches become operands of each."""
    consts: list[Any] = []
    branches = tuple(programs)
    if any(branch.consts for branch in branches):
        consts, branches = with_shared_constants(branches, range(len(branches)))
    return [args[0], *consts, *carried, *args[1:]], {**params, "branches": branches}


cond = runs_once(
    "cond",
    selectors=1,
    rebuild=_cond_rebuild,
    keeps_types=True,
    types=_cond_types,
    lower=_cond_lower,
    linearize=_cond_linearize,
    batch=_cond_batch,
    pad=pads_programs,
    steps=_cond_steps,
    eager=_cond_eager,
    divide=_cond_divide,
    keys=_cond_keys,
)
