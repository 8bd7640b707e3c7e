"""Transformations of Jaxprs, for the rules of primitives that hold Jaxprs. Results are cached on the Jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from .._base.errors import DtypeError, ShapeError
from .._ir.jaxpr import ClosedJaxpr, Jaxpr, Var, hoist_consts, memoized, only, without
from .._trace.axes import axis_env
from .._trace.interpret import as_function
from .._trace.staging import JaxprTracer, stage
from .._trace.trace import typeof
from .array_operations import Zero, present_arrays
from .batch import BatchAxis, Dim, place_axis, run_batched
from .jvp import jvp
from .linearize import Linearized, linearize, separate
from .manual_axes import as_typed_all, vary_also
from .transpose import Linear, backward_pass


def restage(fun: Any, in_avals: Sequence[Any], like: Jaxpr, may_use_refs: bool = False) -> ClosedJaxpr:
    """Stages flat `fun` as a Jaxpr with the name of `like`. `fun` must close over concrete values only.

    `may_use_refs` as for `stage`. Users' backward rules use references when a program is transposed. Other rules must
    not, as they run before the program does.
    """
    jaxpr, consts = stage(fun, in_avals, name=like.name, may_use_refs=may_use_refs)
    return ClosedJaxpr(jaxpr, consts)


def jvp_jaxpr(
    closed: ClosedJaxpr,
    nonzero: tuple[bool, ...],
    keep: tuple[bool, ...] | None = None,
    varying: frozenset[Any] = frozenset(),
) -> tuple[ClosedJaxpr, list[bool]]:
    """A Jaxpr from (inputs, nonzero input tangents) to (outputs, nonzero output tangents).

    Output tangents marked in `keep` are returned even if they are zero. All tangents vary along the mesh axes `varying`
    of a `shard_map`, besides those along which their primal values do. Also returns, for each output, whether its
    tangent is returned.
    """

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        # Filled while `fun` is staged, when it becomes known which tangents are zero. `make` runs once for each key.
        present: list[bool] = []

        def fun(*args: Any) -> list[Any]:
            primals, tangent_args = args[: len(nonzero)], iter(args[len(nonzero) :])
            tangents = [
                next(tangent_args) if has else Zero(v.aval.tangent())
                for has, v in zip(nonzero, closed.jaxpr.invars, strict=True)
            ]
            outs, out_tangents = jvp(as_function(closed), primals, tangents)
            keep_flags = keep or (False,) * len(outs)
            present[:] = [must or type(t) is not Zero for must, t in zip(keep_flags, out_tangents, strict=True)]
            return outs + [vary_also(t, varying) for t in present_arrays(out_tangents, present)]

        tangent_avals = [aval.tangent() for aval, has in zip(closed.in_avals, nonzero, strict=True) if has]
        tangent_avals = [aval.varying(aval.vma | varying) for aval in tangent_avals]
        return restage(fun, [*closed.in_avals, *tangent_avals], closed.jaxpr), present

    # Rules of collectives read the sizes of the axes in scope, so these are part of the key, here and below.
    return memoized(closed.jaxpr, ("jvp", nonzero, keep, varying, axis_env.get()), make)


class LinearizedJaxpr(NamedTuple):
    """A Jaxpr split for reverse mode.

    `primal` returns the outputs, then the residuals that are neither inputs nor outputs. `linear` takes all residuals,
    then the tangents of the inputs marked in `active`. It returns the tangents of the outputs marked in `nonzero`.
    `residuals` gives the source of each residual: ("in", i) is input i of `primal`, ("out", i) is output i of `primal`.
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    residuals: list[tuple[str, int]]
    nonzero: list[bool]


def linearize_jaxpr(closed: ClosedJaxpr, active: tuple[bool, ...]) -> LinearizedJaxpr:
    """Splits a Jaxpr into the primal computation and the linear derivative by the inputs marked in `active`."""
    run = partial(linearize, as_function(closed), active=active)
    key = ("linearize", active, axis_env.get())
    return memoized(closed.jaxpr, key, partial(_split, closed, run, closed.in_avals))


def separate_jaxpr(closed: ClosedJaxpr, is_tangent: tuple[bool, ...]) -> LinearizedJaxpr:
    """Splits a Jaxpr that is linear in the inputs marked in `is_tangent`.

    `primal` takes the other inputs, and returns the outputs that only depend on these; `linear` returns the rest.
    """
    run = partial(separate, as_function(closed), avals=only(closed.in_avals, is_tangent), is_tangent=is_tangent)
    key = ("separate", is_tangent, axis_env.get())
    return memoized(closed.jaxpr, key, partial(_split, closed, run, without(closed.in_avals, is_tangent)))


def _split(closed: ClosedJaxpr, run: Callable[[Sequence[Any]], Linearized], in_avals: Sequence[Any]) -> LinearizedJaxpr:
    """Stages ``run(primals)``, which linearizes `closed`, as a primal and a linear Jaxpr."""
    # Filled while `fun` is staged, with what is no output: the linear Jaxpr and the sources of its residuals.
    record: dict[str, Any] = {}

    def fun(*primals: Any) -> list[Any]:
        result = run(primals)
        outputs = list(result.outputs)
        sources: list[tuple[str, int]] = []
        inputs = {id(x): i for i, x in enumerate(primals)}
        known = {id(x): i for i, x in enumerate(outputs) if type(x) is JaxprTracer}
        constants = []
        for var, residual in zip(result.jaxpr.constvars, result.residuals, strict=True):
            # A residual that is an input or an output is there already, and is not returned twice.
            if id(residual) in inputs:
                sources.append(("in", inputs[id(residual)]))
            elif id(residual) in known:
                sources.append(("out", known[id(residual)]))
            elif type(residual) is JaxprTracer:
                known[id(residual)] = len(outputs)
                sources.append(("out", len(outputs)))
                outputs.append(residual)
            else:
                # A value that is not traced, such as a number or an array from outside, becomes a constant of the
                # linear Jaxpr.
                constants.append((var, residual))
                continue
            record.setdefault("residual_vars", []).append(var)
        record["sources"], record["constants"], record["result"] = sources, constants, result
        return outputs

    # Not by `restage`, as functions inside of one another come here again: fewer of Python's frames on the stack.
    primal = ClosedJaxpr(*stage(fun, in_avals, name=closed.jaxpr.name))
    result = record["result"]
    linear = result.jaxpr.replace(
        constvars=[var for var, _ in record["constants"]],
        invars=[*record.get("residual_vars", ()), *result.jaxpr.invars],
        name=closed.jaxpr.name,
    )
    constants = [value for _, value in record["constants"]]
    return LinearizedJaxpr(primal, ClosedJaxpr(linear, constants), record["sources"], result.nonzero)


def transpose_jaxpr(
    closed: ClosedJaxpr, linear: tuple[bool, ...], nonzero: tuple[bool, ...], keep: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, list[bool]]:
    """A Jaxpr from (non-linear inputs, nonzero output cotangents) to the nonzero cotangents of linear inputs.

    Cotangents marked in `keep` are returned even if they are zero. Also returns, for each linear input, whether its
    cotangent is returned.
    """

    def make() -> tuple[ClosedJaxpr, list[bool]]:
        present: list[bool] = []

        def fun(*args: Any) -> list[Any]:
            operands = iter(args)
            values = [
                Linear(v.aval) if is_lin else next(operands)
                for v, is_lin in zip(closed.jaxpr.invars, linear, strict=True)
            ]
            cotangents = [
                next(operands) if has else Zero(a.cotangent()) for a, has in zip(closed.out_avals, nonzero, strict=True)
            ]
            results = backward_pass(closed.jaxpr, closed.consts, values, cotangents)
            linear_cotangents = only(results, linear)
            keep_flags = keep or (False,) * len(linear_cotangents)
            present[:] = [must or type(ct) is not Zero for must, ct in zip(keep_flags, linear_cotangents, strict=True)]
            return present_arrays(linear_cotangents, present)

        in_avals = without(closed.in_avals, linear)
        in_avals += [a.cotangent() for a in only(closed.out_avals, nonzero)]
        return restage(fun, in_avals, closed.jaxpr, may_use_refs=True), present

    return memoized(closed.jaxpr, ("transpose", linear, nonzero, keep, axis_env.get()), make)


def batch_jaxpr(
    closed: ClosedJaxpr, axis: BatchAxis, in_dims: tuple[Dim, ...], out_dims: tuple[bool, ...] | None = None
) -> tuple[ClosedJaxpr, list[Dim]]:
    """The Jaxpr for a batch, with the mapped axis of each input at `in_dims`.

    Also returns the position of the mapped axis in each output. With `out_dims`, the outputs marked there get the
    mapped axis even if they are not batched, and the mapped axis of every batched output is axis 0. The Jaxpr is then
    part of a loop or branch that relies on the types of its outputs: a `DtypeError` or `ShapeError` names an output to
    which a custom batching rule gave another type.
    """

    def make() -> tuple[ClosedJaxpr, list[Dim]]:
        positions: list[Dim] = []

        def fun(*args: Any) -> list[Any]:
            outs, dims = run_batched(as_function(closed), axis, args, in_dims)
            if out_dims is not None:
                forced = zip(outs, dims, out_dims, strict=True)
                outs = [x if d is None and not must else place_axis(x, d, 0, axis.size) for x, d, must in forced]
                dims = [None if d is None and not must else 0 for d, must in zip(dims, out_dims, strict=True)]
                _check_out_types(closed, axis, outs, dims)
                out_avals = [a if d is None else axis.wider(a, d) for a, d in zip(closed.out_avals, dims, strict=True)]
                outs = as_typed_all(outs, out_avals)
            positions[:] = dims
            return outs

        in_avals = [
            aval if d is None else axis.wider(aval, d) for aval, d in zip(closed.in_avals, in_dims, strict=True)
        ]
        return restage(fun, in_avals, closed.jaxpr), positions

    return memoized(closed.jaxpr, ("batch", axis, in_dims, out_dims, axis_env.get()), make)


def _check_out_types(closed: ClosedJaxpr, axis: BatchAxis, outs: Sequence[Any], dims: Sequence[Dim]) -> None:
    for i, (out, dim, one) in enumerate(zip(outs, dims, closed.out_avals, strict=True)):
        have, expected = typeof(out), one if dim is None else axis.wider(one, 0)
        if have.shape == expected.shape and have.dtype == expected.dtype:
            continue
        what = (
            f"vmap: output {i} of {closed.jaxpr.name or 'a loop or branch'} is {one.short}, and {have.short} for a "
            f"batch of {axis.size}, as a custom batching rule in it has it; a loop or branch needs {expected.short}"
        )
        instead = "a rule that returns a batch of what the function returns"
        if have.dtype != expected.dtype:
            raise DtypeError(what, instead=instead)
        raise ShapeError(what, instead=instead, shapes=[have.shape, expected.shape])


def close(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """(`jaxpr` with its constants turned into leading inputs, the values of these inputs)."""
    return ClosedJaxpr(hoist_consts(jaxpr)), list(consts)


def unused_inputs(jaxpr: Jaxpr) -> list[bool]:
    """For each input, whether nothing reads it."""
    read: set[Var] = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var}
    read.update(v for v in jaxpr.outvars if type(v) is Var)
    return [v not in read for v in jaxpr.invars]
