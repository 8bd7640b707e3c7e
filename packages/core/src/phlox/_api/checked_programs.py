"""What `checkify` does with operations that hold programs: the error goes into the program and comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.pytree import PyTreeDef
from .._ir.jaxpr import ClosedJaxpr, JaxprEqn, hoisted, memoized
from .._ops.branch import cond
from .._ops.call import call, jit_p
from .._ops.check import Error
from .._ops.custom import custom_jvp_call, custom_vjp_call
from .._ops.loop import while_p
from .._ops.remat import checkpoint
from .._ops.scan import row_of, scan
from .._ops.shape import reshape
from .._ops.spmd import bind as bind_shard_map, inside, shard_map
from .._trace.axes import axis_env
from .._trace.interpret import eval_jaxpr
from .._trace.trace import typeof
from .._transform.jaxprs import restage
from .._transform.words import Zero, instantiate
from .._xla.mesh import PartitionSpec
from .checkify import RULES, Categories, checked_jaxpr, leaves_of, run_checked

Result = tuple[Error, list[Any]]


def _split(tree: PyTreeDef, outs: Sequence[Any]) -> Result:
    """The error and the other results of a checked program."""
    return tree.unflatten(outs[: tree.num_leaves]), list(outs[tree.num_leaves :])


def _types(values: Sequence[Any]) -> list[Any]:
    return [typeof(x) for x in values]


def _jit(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    leaves, tree, avals = leaves_of(error)
    closed, out_tree = checked_jaxpr(eqn.params["jaxpr"], enabled, tree, [*avals, *_types(values)])
    outs = call(closed, [*leaves, *values], name=eqn.params["name"], inline=eqn.params["inline"])
    return _split(out_tree, outs)


def _checkpoint(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    leaves, tree, avals = leaves_of(error)
    closed, out_tree = checked_jaxpr(eqn.params["jaxpr"], enabled, tree, [*avals, *_types(values)])
    params = {**eqn.params, "jaxpr": hoisted(closed)}
    return _split(out_tree, checkpoint.bind(*closed.consts, *leaves, *values, **params))


def _cond(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    index, operands = values[0], values[1:]

    def checked(given: Error) -> list[tuple[ClosedJaxpr, PyTreeDef]]:
        _, tree, avals = leaves_of(given)
        branches = eqn.params["branches"]
        return [checked_jaxpr(branch, enabled, tree, [*avals, *_types(operands)]) for branch in branches]

    kinds = [kind for _, tree in checked(error) for kind in _kinds(tree)]
    error = error.with_places(kinds)
    made = checked(error)
    consts = [c for closed, _ in made for c in closed.consts]
    leaves, _, _ = leaves_of(error)
    branches = tuple(_with_consts([closed for closed, _ in made]))
    outs = cond.bind(index, *consts, *leaves, *operands, branches=branches)
    errors = [_split(tree, outs)[0] for _, tree in made]
    return errors[0].with_reports(*errors[1:]), _split(made[0][1], outs)[1]


def _with_consts(programs: Sequence[ClosedJaxpr]) -> list[ClosedJaxpr]:
    """Programs that all take the constants of all of them first."""
    counts = [len(p.consts) for p in programs]
    if not any(counts):
        return list(programs)
    avals = [typeof(c) for p in programs for c in p.consts]
    result = []
    for i, p in enumerate(programs):
        start = sum(counts[:i])

        def fun(*xs: Any, p: ClosedJaxpr = p, start: int = start) -> list[Any]:
            return eval_jaxpr(p.jaxpr, xs[start : start + len(p.consts)], *xs[len(avals) :])

        result.append(restage(fun, [*avals, *p.in_avals], p.jaxpr))
    return result


def _kinds(tree: PyTreeDef) -> tuple[Any, ...]:
    """The kinds of errors that an error of this structure has places for."""
    return tree.unflatten([None] * tree.num_leaves).kinds


def _prepared(error: Error, make: Callable[[Error], PyTreeDef]) -> Error:
    """The error with all places that a loop body fills, so that it goes in as it comes out."""
    return error.with_places(_kinds(make(error)))


def _scan(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    params = eqn.params
    nconst, ncarry = params["num_consts"], params["num_carry"]
    both = nconst + ncarry
    row_avals = [row_of(typeof(x)) for x in values[both:]]

    def checked(given: Error) -> tuple[ClosedJaxpr, PyTreeDef]:
        _, tree, avals = leaves_of(given)
        in_avals = [*_types(values[:nconst]), *avals, *_types(values[nconst:both]), *row_avals]
        return checked_jaxpr(params["jaxpr"], enabled, tree, in_avals, nconst)

    error = _prepared(error, lambda e: checked(e)[1])
    closed, out_tree = checked(error)
    leaves, _, _ = leaves_of(error)
    how = {"num_consts": nconst + len(closed.consts), "num_carry": ncarry + len(leaves), "jaxpr": hoisted(closed)}
    outs = scan.bind(*closed.consts, *values[:nconst], *leaves, *values[nconst:], **{**params, **how})
    return _split(out_tree, outs)


def _while(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    condition, ncond = eqn.params["cond_jaxpr"], eqn.params["cond_nconsts"]
    nbody = eqn.params["body_nconsts"]
    cond_consts, body_consts, carry = values[:ncond], values[ncond : ncond + nbody], values[ncond + nbody :]
    error, _ = run_checked(condition.jaxpr, condition.consts, enabled, error, [*cond_consts, *carry])
    turn = _turn(eqn)
    carry_avals = turn.out_avals[: len(carry)]

    def checked(given: Error) -> tuple[ClosedJaxpr, PyTreeDef]:
        _, tree, avals = leaves_of(given)
        in_avals = [*_types(cond_consts), *_types(body_consts), *avals, *carry_avals]
        return checked_jaxpr(turn, enabled, tree, in_avals, ncond + nbody)

    error = _prepared(error, lambda e: checked(e)[1])
    closed, out_tree = checked(error)
    # The turn gives the carry, and whether it goes on, which is only there to be checked.
    step = closed.replace(jaxpr=closed.jaxpr.replace(outvars=closed.jaxpr.outvars[:-1]))
    leaves, tree, avals = leaves_of(error)

    def goes_on(*xs: Any) -> list[Any]:  # its checks were made at the end of the turn before
        given, rest = tree.unflatten(xs[ncond : ncond + len(leaves)]), [*xs[:ncond], *xs[ncond + len(leaves) :]]
        return run_checked(condition.jaxpr, condition.consts, enabled, given, rest)[1]

    test = restage(goes_on, [*_types(cond_consts), *avals, *carry_avals], condition.jaxpr)
    outs = while_p.bind(
        *test.consts,
        *cond_consts,
        *step.consts,
        *cond_consts,
        *body_consts,
        *leaves,
        *carry,
        cond_jaxpr=hoisted(test),
        cond_nconsts=len(test.consts) + ncond,
        body_jaxpr=hoisted(step),
        body_nconsts=len(step.consts) + ncond + nbody,
    )
    return _split(out_tree, outs)


def _turn(eqn: JaxprEqn) -> ClosedJaxpr:
    """One turn of a loop and the question whether it goes on: (their constants, carry) -> (carry, answer)."""
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    ncond, nbody = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]

    def fun(*xs: Any) -> list[Any]:
        carry = eval_jaxpr(body.jaxpr, body.consts, *xs[ncond:])
        return [*carry, *eval_jaxpr(condition.jaxpr, condition.consts, *xs[:ncond], *carry)]

    avals = [*condition.in_avals[:ncond], *body.in_avals[:nbody], *body.in_avals[nbody:]]
    key = ("turn", condition.jaxpr, axis_env.get())
    return memoized(body.jaxpr, key, lambda: restage(fun, avals, body.jaxpr))


def _shard_map(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    """Each device has an error of its own; that of the first device that has one is kept."""
    params = eqn.params
    mesh, inner, manual = params["mesh"], params["jaxpr"], params["manual"]
    leaves, tree, avals = leaves_of(error)
    with inside(mesh, manual):
        closed, out_tree = checked_jaxpr(inner, enabled, tree, [*avals, *inner.in_avals])
        width = out_tree.num_leaves

        def fun(*xs: Any) -> list[Any]:
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *xs)
            rows = [reshape(x, new_sizes=(1, *typeof(x).shape), dimensions=None) for x in outs[:width]]
            return [*rows, *outs[width:]]

        program = restage(fun, closed.in_avals, closed.jaxpr)
    in_specs = (*[PartitionSpec()] * len(leaves), *params["in_specs"])
    out_specs = (*[PartitionSpec(tuple(n for n in mesh.axis_names if n in manual))] * width, *params["out_specs"])
    outs = bind_shard_map(program, [*leaves, *values], mesh, in_specs, out_specs, manual)
    found, results = _split(out_tree, outs)
    return found.reduced(), results


# --- custom derivatives: rules are not checked, the function is -----------------------------------------


def _custom(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> tuple[Any, ...]:
    """(arguments, checked program, its number of constants, structures of the error before and after)."""
    count = eqn.params["num_consts"]
    leaves, tree, avals = leaves_of(error)
    in_avals = [*_types(values[:count]), *avals, *_types(values[count:])]
    closed, out_tree = checked_jaxpr(eqn.params["call_jaxpr"], enabled, tree, in_avals, count)
    args = [*closed.consts, *values[:count], *leaves, *values[count:]]
    return args, closed, values[:count], count + len(closed.consts), tree.num_leaves, out_tree


def _errors_after(closed: ClosedJaxpr, consts: Sequence[Any], primals: Sequence[Any], width: int) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *consts, *primals)[:width]


def _custom_jvp(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    args, closed, consts, num_consts, width, out_tree = _custom(error, enabled, eqn, values)
    given = eqn.params["jvp"]

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        after = _errors_after(closed, consts, primals, out_tree.num_leaves)
        outs, out_tangents = given.call(primals[width:], tangents[width:])
        return [*after, *outs], [*[instantiate(Zero(typeof(x).tangent())) for x in after], *out_tangents]

    params = {"call_jaxpr": hoisted(closed), "jvp": given._replace(call=rule), "num_consts": num_consts}
    return _split(out_tree, custom_jvp_call.bind(*args, **{**eqn.params, **params}))


def _custom_vjp(error: Error, enabled: Categories, eqn: JaxprEqn, values: list[Any]) -> Result:
    args, closed, consts, num_consts, width, out_tree = _custom(error, enabled, eqn, values)
    fwd, bwd = eqn.params["fwd"], eqn.params["bwd"]
    error_avals = [typeof(x) for x in args[num_consts : num_consts + width]]

    def run_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any]]:
        after = _errors_after(closed, consts, primals, out_tree.num_leaves)
        outs, residuals = fwd.call(primals[width:], perturbed[width:])
        return [*after, *outs], residuals

    def run_bwd(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        found = bwd.call(residuals, cotangents[out_tree.num_leaves :])
        return [*[Zero(a.tangent()) for a in error_avals], *found]

    params = {
        "call_jaxpr": hoisted(closed),
        "fwd": fwd._replace(call=run_fwd),
        "bwd": bwd._replace(call=run_bwd),
        "num_consts": num_consts,
    }
    return _split(out_tree, custom_vjp_call.bind(*args, **{**eqn.params, **params}))


RULES.update(
    {
        jit_p.name: _jit,
        checkpoint.name: _checkpoint,
        cond.name: _cond,
        scan.name: _scan,
        while_p.name: _while,
        shard_map.name: _shard_map,
        custom_jvp_call.name: _custom_jvp,
        custom_vjp_call.name: _custom_vjp,
    }
)
