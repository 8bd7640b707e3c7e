"""How types over explicit axes are written: results are split as they say, and partial results are kept apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import UnsupportedError
from .._ir.avals import ShapedArray
from .._ir.jaxpr import JaxprEqn
from .._ir.primitive import sharding_in_types
from .._ir.sharding_types import Spec, entries_of, partial_axes, reductions_of, without_manual
from .manual_computation import manual_computation
from .text import Function, Value

#: ``lower(f, eqn, rule, operands, params)``: the results of an equation, by a lowering rule
Lower = Callable[[Function, JaxprEqn, Any, Sequence[Value], dict[str, Any]], Any]


def split(f: Function, eqn: JaxprEqn, results: Any) -> Any:
    """The results of an equation, split over explicit axes as their types say."""
    if not eqn.primitive.multiple_results:
        spec = eqn.outvars[0].aval.spec
        return results if spec is None else _split_value(f, results, spec)
    specs = [v.aval.spec for v in eqn.outvars]
    return [x if spec is None else _split_value(f, x, spec) for x, spec in zip(results, specs, strict=True)]


def _split_value(f: Function, x: Value, spec: Spec) -> Value:
    """`x`, split as its type says. The state along manual axes is not written."""
    known = without_manual(spec)
    if known is None:
        return x
    if f.axes and known.reductions.unreduced:
        # Checks in jaxlib would end the process: in 0.10 always, in 0.12 where the results are combined.
        raise UnsupportedError(
            "partial results inside of shard_map, along axes that it does not map",
            instead="phlox.reshard(x, phlox.P(...)) before, or shard_map over these axes too",
        )
    return f.constrain(x, f.module.split_text(known.mesh, known.entries, x.aval.ndim, known.reductions))


def marked(f: Function, x: Value, aval: ShapedArray) -> Value:
    """An input of a program, which is marked if it consists of partial results: Shardy does not propagate that."""
    return _split_value(f, x, aval.spec) if partial_axes(aval) else x  # type: ignore[arg-type]


def on_parts(lower: Lower) -> Lower:
    """`lower` in a computation of each device along the axes along which operands are unreduced, if any.

    Left to Shardy, it gives wrong results where the rule writes a constant or several operations: these are not marked.
    """

    def lower_on_parts(f: Function, eqn: JaxprEqn, rule: Any, operands: Sequence[Value], params: dict[str, Any]) -> Any:
        f.ins = [v.aval for v in eqn.invars]
        axes = frozenset().union(*map(partial_axes, f.ins))
        if not axes or eqn.primitive.sharding is sharding_in_types:
            return lower(f, eqn, rule, operands, params)
        mesh = next(a.spec.mesh for a in f.ins if a.spec is not None)

        def sharding(aval: ShapedArray) -> str:
            return f.module.split_text(mesh, entries_of(aval), aval.ndim, reductions_of(aval))

        def body(g: Function, *parts: Value) -> list[Value]:
            g.outs, g.source = f.outs, f.source
            results = lower(g, eqn, rule, parts, params)
            return list(results) if eqn.primitive.multiple_results else [results]

        ins = [(x, x.aval, sharding(v.aval)) for x, v in zip(operands, eqn.invars, strict=True)]
        outs = [(a, sharding(v.aval)) for a, v in zip(f.outs, eqn.outvars, strict=True)]
        results = manual_computation(f, mesh, tuple(axes), ins, outs, body)
        return results if eqn.primitive.multiple_results else results[0]

    return lower_on_parts
