"""Functions of which each device computes what belongs to its parts of the operands: a part of the result, or a partial
result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import ShapeError
from ..._ir.jaxpr import ClosedJaxpr, hoist_consts
from ..._ir.sharding_types import NO_REDUCTIONS, Entries, Entry, Reductions, entries_of, reductions_of, spec_over
from ..._trace.staging import stage
from ..._trace.trace import typeof
from ..._transform.sharding_types import laid, unsplit, with_devices
from ..._xla.mesh import current_mesh
from ..._xla.partition_spec import PartitionSpec
from . import partial
from .shard_map import ManualAxes, part_aval


def over(entry: Entry, axes: frozenset[Any]) -> Entry:
    """The part of an entry that splits over `axes`."""
    return tuple(name for name in entry if name in axes)


def on_parts(
    fun: Callable[..., Any],
    operands: Sequence[Any],
    entries: Entries,
    unreduced: frozenset[Any],
    axes: frozenset[Any],
) -> Any:
    """``fun(*operands)``, split by `entries` and `unreduced`, of which each device along `axes` computes what belongs to
    its parts of the operands. None if their results are no parts of the result."""
    spec = next(typeof(x).spec for x in operands if typeof(x).spec is not None)
    assert spec is not None
    mesh = with_devices(spec.mesh)
    manual, partial_axes = over(mesh.axis_names, axes), over(mesh.axis_names, unreduced)
    in_specs = [_spec([over(e, axes) for e in entries_of(typeof(x))], reductions_of(typeof(x))) for x in operands]
    whole, _ = stage(lambda *xs: [fun(*xs)], [typeof(x).laid(None) for x in operands])
    entries = (*entries, *[()] * (whole.outvars[0].aval.ndim - len(entries)))
    out_spec = _spec([over(entry, axes) for entry in entries], Reductions(unreduced))
    expected = part_aval(whole.outvars[0].aval, mesh, _spec(list(out_spec), NO_REDUCTIONS), manual).shape
    inner = [tuple(name for name in entry if name not in axes) for entry in entries]

    def compute(*parts: Any) -> list[Any]:
        out = partial.cast(fun(*[unsplit(_varying(x)) for x in parts]), manual, "varying")
        aval = typeof(out)
        if aval.shape != expected:
            raise ShapeError(f"a part of shape {aval.shape} of a result with parts of shape {expected}")
        out = laid(out, aval.laid(spec_over(current_mesh().abstract_mesh, inner)))  # type: ignore[union-attr]
        return [partial.cast(out, partial_axes, "unreduced") if partial_axes else out]

    within = ManualAxes(mesh, manual, True)
    try:
        with within.inside():
            avals = [part_aval(typeof(x), mesh, s, manual, manual) for x, s in zip(operands, in_specs, strict=True)]
            jaxpr, consts = stage(compute, avals)
    except ShapeError:
        return None
    in_specs = [*[PartitionSpec()] * len(consts), *in_specs]
    return within.bind(ClosedJaxpr(hoist_consts(jaxpr)), [*consts, *operands], in_specs, [out_spec])[0]


def _spec(entries: Sequence[Any], reductions: Reductions) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=reductions.unreduced, reduced=reductions.reduced)


def _varying(x: Any) -> Any:
    """A part, declared as varying along the axes along which it is reduced."""
    reduced = tuple(reductions_of(typeof(x)).reduced)
    return partial.cast(x, reduced, "varying") if reduced else x
