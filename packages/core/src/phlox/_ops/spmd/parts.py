"""Runs a function on each device's parts of its operands, as a `shard_map`, to get parts of the result or partial
results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import ShapeError
from ..._ir.jaxpr import ClosedJaxpr, hoist_consts
from ..._ir.sharding_types import Entries, Reductions, entries_of, over, reductions_of, spec_over
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.sharding_types import reshard_like, unsplit, with_devices
from ..._xla.mesh import current_mesh
from ..._xla.partition_spec import PartitionSpec
from . import axis_states
from .shard_map import ManualAxes, part_aval


def map_parts(
    fun: Callable[..., Any],
    operands: Sequence[Any],
    entries: Entries,
    unreduced: frozenset[Any],
    axes: frozenset[Any],
) -> Any:
    """``fun(*operands)``, split by `entries` and `unreduced`. Each device along `axes` calls `fun` on its parts of the
    operands. Returns None if the results of the devices have not the shape of parts of the whole result."""
    operands = [_reduced_along(x, axes) for x in operands]
    avals = [typeof(x) for x in operands]
    spec = next(a.spec for a in avals if a.spec is not None)
    mesh = with_devices(spec.mesh)
    manual, partial = over(mesh.axis_names, axes), over(mesh.axis_names, unreduced)
    in_specs = [PartitionSpec(*[over(e, axes) for e in entries_of(a)], reduced=reductions_of(a).reduced) for a in avals]
    whole, _ = stage(lambda *xs: [fun(*xs)], [a.with_spec(None) for a in avals])
    out_aval = whole.outvars[0].aval
    entries = (*entries, *[()] * (out_aval.ndim - len(entries)))
    out_spec = PartitionSpec(*[over(entry, axes) for entry in entries], unreduced=unreduced)
    expected = part_aval(out_aval, mesh, PartitionSpec(*out_spec.partitions), manual).shape
    rest = [tuple(name for name in entry if name not in axes) for entry in entries]

    def compute(*parts: Any) -> list[Any]:
        varying = [axis_states.cast(x, manual, "varying") for x in parts]
        out = axis_states.cast(fun(*map(unsplit, varying)), manual, "varying")
        aval = typeof(out)
        if aval.shape != expected:
            raise ShapeError(f"a part of shape {aval.shape} of a result with parts of shape {expected}")
        out = reshard_like(out, aval.with_spec(spec_over(current_mesh().abstract_mesh, rest)))  # type: ignore[union-attr]
        return [axis_states.cast(out, partial, "unreduced") if partial else out]

    manual_axes = ManualAxes(mesh, manual, True)
    try:
        with manual_axes.inside():
            parts = [part_aval(a, mesh, spec, manual, manual) for a, spec in zip(avals, in_specs, strict=True)]
            jaxpr, consts = stage(compute, parts)
    except ShapeError:
        return None
    in_specs = [*[PartitionSpec()] * len(consts), *in_specs]
    return manual_axes.bind(ClosedJaxpr(hoist_consts(jaxpr)), [*consts, *operands], in_specs, [out_spec])[0]


def _reduced_along(x: Any, axes: frozenset[Any]) -> Any:
    """`x` with a type that is reduced along `axes` only.

    The cotangent of `x` then becomes a partial result along other axes outside of the `shard_map`. Inside of it, checks
    in jaxlib would end the process.
    """
    aval = typeof(x)
    if aval.spec is None:
        return x
    reductions = Reductions(reduced=aval.spec.reductions.reduced & axes)
    return reshard_like(x, aval.with_spec(spec_over(aval.spec.mesh, aval.spec.entries, reductions)))
