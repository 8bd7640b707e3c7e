"""Logs that backward rules return, see `defvjp_with_logs`, and the way by which they leave other programs.

A log inside of a loop, a branch, a checkpoint or a `shard_map` leaves it as the cotangent of one more linear input of
that program, a slot, which nothing reads but the backward rule. So the transpose of each of these programs stacks logs
over the turns of a loop and over devices, and has zeros for branches that did not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._base import pytree
from ..._base.errors import FunctionTreeError, UnsupportedError
from ..._base.wrapping import wraps
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, jaxprs_in, memoized
from ..._ops.control.branch import cond
from ..._ops.control.call import jit_p
from ..._ops.control.custom_rules import Rule, custom_lin
from ..._ops.control.logs import Logs, current_logs, gather_logs
from ..._ops.control.remat import checkpoint
from ..._ops.control.scan import scan
from ..._ops.spmd.shard_map import ManualAxes, shard_map, whole_aval
from ..._ops.structure.shape import bitcast_convert_type, convert, reshape
from ..._trace.interpret import eval_jaxpr
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, instantiate
from ..._transform.jaxprs import restage
from ..._transform.transpose import Linear, backward_pass
from ..jit.arguments import as_arrays, fun_name


@pytree.register_dataclass
@dataclass(frozen=True)
class CondSum:
    """The logs of a `cond` or `switch` under one key: the index of the branch that ran, and a tree for each branch.

    The tree of a branch that did not run has zeros. It is None for a branch that does not log the key.
    """

    index: Any
    branches: list[Any]


def returns_logs(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """The rule without the logs that `bwd` returns beside the cotangents; they are added to those of the pass."""

    @wraps(bwd)
    def rule(*args: Any) -> Any:
        result = bwd(*args)
        if not isinstance(result, tuple | list) or len(result) != 2 or not isinstance(result[1], dict | None):
            raise FunctionTreeError(
                f"the backward rule {fun_name(bwd)} must return a pair (cotangents, logs); logs is a dict or None",
                instead="return cotangents, None",
                path=(),
                expected="a pair (cotangents, logs)",
                got=type(result).__name__,
            )
        cotangents, entries = result
        if entries and (logs := current_logs()) is not None:
            logs.add(fun_name(bwd), {key: as_arrays(value) for key, value in entries.items()})
        return cotangents

    rule.returns_logs = True  # type: ignore[attr-defined]
    return rule


def backward_pass_with_logs(
    program: Jaxpr, residuals: Sequence[Any], args: Sequence[Linear], cotangents: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The results of `backward_pass`, and the logs of the rules."""
    jaxpr, slots, entries = memoized(program, "with slots for logs", lambda: _with_slots_of_programs(program))
    with gather_logs() as logs:
        results = backward_pass(jaxpr, residuals, [*args, *map(Linear, slots)], cotangents)
        logs.add("", _filled(entries, results[len(args) :]))
    return results[: len(args)], logs.entries


class _Slot(NamedTuple):
    """A leaf of an entry: the position of the slot, and the type of the log."""

    position: int
    aval: ShapedArray


class _Slots(NamedTuple):
    """The slots of an equation: their types, the logs as dicts of trees of `_Slot`, and the function that binds the
    equation to values of its operands and slots."""

    avals: list[ShapedArray]
    entries: dict[str, Any]
    bind: Callable[[Sequence[Any], Sequence[Any]], Any]


def _map_slots(fun: Callable[[_Slot], Any], entries: Any) -> Any:
    return pytree.tree_map(fun, entries, is_leaf=lambda x: type(x) is _Slot)


def _moved(entries: dict[str, Any], offset: int) -> dict[str, Any]:
    """Entries whose slots come after `offset` others."""
    return _map_slots(lambda slot: slot._replace(position=slot.position + offset), entries)


# --- the slots of equations -----------------------------------------------------------------------------


def _with_slots_of_programs(jaxpr: Jaxpr) -> tuple[Jaxpr, list[ShapedArray], dict[str, Any]]:
    """The program with slots as last inputs, their types, and their entries. Jitted functions whose rules have logs are
    inlined. Rules that are not inside of another program have no slots: they run once, on the values themselves."""
    if not any(map(_has_logs, _programs_in(jaxpr))):
        return jaxpr, [], {}
    count = len(jaxpr.constvars)
    inputs = [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)]
    inlined = restage(lambda *xs: eval_jaxpr(jaxpr, xs[:count], *xs[count:], run=_run_inlined), inputs, jaxpr)
    flat, slots, entries = _with_slots(inlined, lambda eqn: eqn.primitive is not custom_lin)
    return flat.jaxpr.replace(constvars=flat.invars[:count], invars=flat.invars[count:]), slots, entries


def _run_inlined(eqn: JaxprEqn, values: list[Any]) -> Any:
    if eqn.primitive is jit_p and _has_logs(eqn.params["jaxpr"].jaxpr):
        closed = eqn.params["jaxpr"]
        return eval_jaxpr(closed.jaxpr, closed.consts, *values, run=_run_inlined)
    return eqn.primitive.bind(*values, **eqn.params)


def _with_slots(
    closed: ClosedJaxpr, may_have: Callable[[JaxprEqn], bool] = lambda eqn: True
) -> tuple[ClosedJaxpr, list[ShapedArray], dict[str, Any]]:
    """The program with slots as last inputs, their types, and their entries."""
    slots_of = {id(eqn): _slots(eqn) for eqn in closed.eqns if may_have(eqn) and _eqn_has_logs(eqn)}
    avals: list[ShapedArray] = []
    logs = Logs()
    for slots in slots_of.values():
        logs.add("", _moved(slots.entries, len(avals)))
        avals += slots.avals

    def fun(*xs: Any) -> list[Any]:
        values = iter(xs[len(closed.in_avals) :])

        def run(eqn: JaxprEqn, operands: list[Any]) -> Any:
            slots = slots_of.get(id(eqn))
            if slots is None:
                return eqn.primitive.bind(*operands, **eqn.params)
            return slots.bind(operands, [next(values) for _ in slots.avals])

        return eval_jaxpr(closed.jaxpr, closed.consts, *xs[: len(closed.in_avals)], run=run)

    return restage(fun, [*closed.in_avals, *avals], closed.jaxpr), avals, logs.entries


def _slots(eqn: JaxprEqn) -> _Slots:
    """The slots of an equation that has logs."""
    rules = {custom_lin: _rule_slots, scan: _scan_slots, cond: _cond_slots, shard_map: _shard_map_slots}
    make: Any = rules.get(eqn.primitive, _call_slots if eqn.primitive in (jit_p, checkpoint) else None)
    if make is None:
        raise UnsupportedError(
            f"with_logs: a backward rule with logs runs inside of {eqn.primitive.name}",
            instead="a call of the function outside of while_loop, or inside of scan",
        )
    return make(eqn)


def _rule_slots(eqn: JaxprEqn) -> _Slots:
    """One slot for each leaf of the logs of a backward rule, which is traced to know them."""
    params = eqn.params
    rule, num_res = params["bwd"], params["num_res"]
    tree: Any = None

    def logged(*xs: Any) -> list[Any]:
        nonlocal tree
        with gather_logs() as logs:
            rule.call(xs[:num_res], xs[num_res:])
        leaves, tree = pytree.tree_flatten(logs.entries)
        return leaves

    def with_logs(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        with gather_logs() as logs:
            results = rule.call(residuals, cotangents)
        leaves, same_tree = pytree.tree_flatten(logs.entries)
        if same_tree != tree:
            raise UnsupportedError(f"with_logs: the backward rule {rule.name} logs {same_tree}, and {tree} before")
        return [*results, *map(_as_float, leaves)]

    avals = [v.aval for v in eqn.invars[:num_res]] + [a.cotangent() for a in params["out_avals"]]
    outs = [v.aval for v in stage(logged, avals)[0].outvars]
    changes = {**params, "bwd": rule._replace(call=with_logs, has_logs=False)}
    entries = tree.unflatten([_Slot(i, a) for i, a in enumerate(outs)])
    return _Slots([_float_aval(a) for a in outs], entries, lambda xs, slots: custom_lin.bind(*xs, *slots, **changes))


def _call_slots(eqn: JaxprEqn) -> _Slots:
    program, avals, entries = _with_slots(eqn.params["jaxpr"])
    primitive: Any = eqn.primitive  # runs a program
    return _Slots(avals, entries, lambda xs, slots: primitive.rebind([*xs, *slots], eqn.params, [program]))


def _scan_slots(eqn: JaxprEqn) -> _Slots:
    """Slots of the step are scanned over."""
    slots, length = _call_slots(eqn), eqn.params["length"]
    entries = _map_slots(lambda slot: slot._replace(aval=slot.aval.with_axis(0, length)), slots.entries)
    return slots._replace(avals=[a.with_axis(0, length) for a in slots.avals], entries=entries)


def _cond_slots(eqn: JaxprEqn) -> _Slots:
    """The slots of all branches, of which each reads its own, and one for the index."""
    index, *operands = [v.aval for v in eqn.invars]
    parts = [_with_slots(branch) for branch in eqn.params["branches"]]
    avals: list[ShapedArray] = [_float_aval(index)]
    programs, entries = [], []
    total = 1 + sum(len(slots) for _, slots, _ in parts)
    all_slots = [*avals, *(a for _, slots, _ in parts for a in slots)]
    for program, slots, branch_entries in parts:
        first, width = len(operands) + len(avals), len(slots)

        def run(*xs: Any, program: ClosedJaxpr = program, first: int = first, width: int = width) -> list[Any]:
            own = xs[first : first + width]
            return eval_jaxpr(program.jaxpr, program.consts, *xs[: len(operands)], *own)

        programs.append(restage(run, [*operands, *all_slots], program.jaxpr))
        entries.append(_moved(branch_entries, len(avals)))
        avals += slots
    keys = dict.fromkeys(key for branch_entries in entries for key in branch_entries)
    sums = {key: CondSum(_Slot(0, index), [e.get(key) for e in entries]) for key in keys}

    def bind(xs: Sequence[Any], slots: Sequence[Any]) -> list[Any]:
        first, *others = cond.rebind([*xs, *slots], eqn.params, programs)
        # The index is the log of an identity.
        rule = Rule(lambda residuals, cotangents: [*cotangents, *map(_as_float, residuals)], "index", True)
        first = custom_lin.bind(xs[0], first, slots[0], bwd=rule, num_res=1, out_avals=(typeof(first),))
        return [*first, *others]

    return _Slots(avals[:total], sums, bind)


def _shard_map_slots(eqn: JaxprEqn) -> _Slots:
    """Slots are split over the devices along their first axis; a number of each device becomes a row."""
    params = eqn.params
    axes = ManualAxes(*(params[name] for name in ManualAxes._fields))
    with axes.inside():
        program, avals, entries = _with_slots(params["jaxpr"])
        rows = [a if a.shape else a.with_axis(0, 1) for a in avals]

        def run(*xs: Any) -> list[Any]:
            count = len(xs) - len(rows)
            slots = [reshape(x, new_sizes=a.shape, dimensions=None) for x, a in zip(xs[count:], avals, strict=True)]
            return eval_jaxpr(program.jaxpr, program.consts, *xs[:count], *slots)

        by_row = restage(run, [*program.in_avals[: len(program.in_avals) - len(avals)], *rows], program.jaxpr)
    specs = axes.stacked_specs(rows)
    wholes = [whole_aval(a, axes.mesh, spec, axes.manual) for a, spec in zip(rows, specs, strict=True)]
    params = {**params, "in_specs": (*params["in_specs"], *specs)}
    entries = _map_slots(lambda slot: slot._replace(aval=wholes[slot.position].update(dtype=slot.aval.dtype)), entries)
    return _Slots(wholes, entries, lambda xs, slots: shard_map.rebind([*xs, *slots], params, [by_row]))


def _programs_in(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The programs in the equations of `jaxpr`."""
    return [inner for eqn in jaxpr.eqns for inner in jaxprs_in(eqn.params)]


def _eqn_has_logs(eqn: JaxprEqn) -> bool:
    if eqn.primitive is custom_lin:
        return eqn.params["bwd"].has_logs
    return any(map(_has_logs, jaxprs_in(eqn.params)))


def _has_logs(jaxpr: Jaxpr) -> bool:
    """Whether a backward rule in the program, at any depth, has logs."""
    return any(map(_eqn_has_logs, jaxpr.eqns))


# --- logs as cotangents: these are inexact --------------------------------------------------------------

_FLOATS = {16: dtypes.float16, 32: dtypes.float32, 64: dtypes.float64}


def _float_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the slot of a log: integers keep their bits, or are numbers if they have less than 16."""
    if dtypes.is_inexact(aval.dtype):
        return aval
    if dtypes.kind(aval.dtype) not in "iub":
        raise UnsupportedError(f"with_logs: a log of type {aval.short} inside of another program")
    return aval.update(dtype=_FLOATS.get(dtypes.bits(aval.dtype), dtypes.float32), weak_type=False)


def _as_float(x: Any) -> Any:
    aval = typeof(x)
    target = _float_aval(aval).dtype
    if dtypes.bits(aval.dtype) == dtypes.bits(target):
        return x if target == aval.dtype else bitcast_convert_type.bind(x, new_dtype=target)
    return convert(x, target)


def _from_float(x: Any, aval: ShapedArray) -> Any:
    x = instantiate(x)
    if dtypes.is_inexact(aval.dtype):
        return x
    if dtypes.bits(aval.dtype) == dtypes.bits(typeof(x).dtype):
        x = bitcast_convert_type.bind(x, new_dtype=aval.dtype)
    return convert(x, aval.dtype, aval.weak_type)


def _filled(entries: dict[str, Any], cotangents: Sequence[Any]) -> dict[str, Any]:
    """The logs, given the cotangents of the slots; without those of rules that did not run."""

    def ran(entry: Any) -> bool:
        # The index of a branch is logged also if the branches get no cotangent.
        trees = entry.branches if isinstance(entry, CondSum) else entry
        flags: list[bool] = []
        _map_slots(lambda slot: flags.append(type(cotangents[slot.position]) is not Zero), trees)
        return any(flags)

    value = lambda slot: _from_float(cotangents[slot.position], slot.aval)  # noqa: E731
    return {key: _map_slots(value, entry) for key, entry in entries.items() if ran(entry)}
