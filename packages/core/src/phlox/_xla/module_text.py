"""The StableHLO text of a program, with the shardings and memories of its arguments and results."""

from __future__ import annotations

from collections.abc import Sequence

from .._ir.jaxpr import Jaxpr
from .._ir.memory_spaces import kind_of
from .device_assignment import DeviceAssignment, express_over
from .lower import Argument, lower_module, result_info
from .mesh import AbstractMesh, Mesh
from .partition_spec import UNCONSTRAINED, PartitionSpec, axes_of, entries_for, reductions_in
from .placement import Placement, aval_of
from .sharding import NamedSharding, Sharding
from .text import Module, axis_text, quoted, unreduced_text


def module_text(
    jaxpr: Jaxpr,
    name: str,
    assignment: DeviceAssignment,
    placements: Sequence[Placement],
    donated: frozenset[int] = frozenset(),
    results: Sequence[str] = (),
    out_shardings: Sequence[Sharding | None] | None = None,
    platform: str | None = None,
    *,
    locations: bool = False,
    names: Sequence[str | None] = (),
) -> tuple[str, Module]:
    """The StableHLO text of a program, and the `Module` that it was written with."""
    if out_shardings is not None and len(assignment.devices) > 1:
        pairs = zip(jaxpr.outvars, out_shardings, strict=True)
        # Shardy's text names axes of one mesh, so each sharding is written by those of the program's mesh if possible.
        out_shardings = [s and (express_over(assignment.mesh, s, v.aval.physical.ndim) or s) for v, s in pairs]
    requirements = [s for s in (*assignment.shardings, *(out_shardings or ())) if s is not None]
    shardy = assignment.mesh is not None and all(
        isinstance(s, NamedSharding) and s.mesh.is_equivalent_to(assignment.mesh) for s in requirements
    )
    module = Module(assignment.devices, shardy or len(assignment.devices) == 1, assignment.mesh, locations, platform)
    arguments = []
    for i, (placement, sharding) in enumerate(zip(placements, assignment.shardings, strict=True)):
        # "May reuse this buffer": XLA pairs donated arguments with results by itself.
        attributes = ["jax.buffer_donor = true"] if i in donated else []
        if len(assignment.devices) > 1:
            attributes.append(sharding_attribute(module, sharding, aval_of(placement).physical.ndim, shardy))
        if sharding.kind is not None:
            attributes.append(memory_attribute(sharding.kind))
        arguments.append(Argument(aval_of(placement), tuple(attributes), names[i] if names else None))
    kinds = _result_memory_kinds(jaxpr, assignment, out_shardings or ())
    # Shardy refuses a function that takes or returns partial results without an operation that makes or combines them.
    has_partial = shardy and any(s.is_unreduced for s in requirements)
    constraints: list[str | None] = []
    attributes_out: list[tuple[str, ...]] = []
    for i, v in enumerate(jaxpr.outvars):
        attributes = [result_info(results[i])] if results else []
        out_sharding = out_shardings[i] if out_shardings else None
        if out_sharding is not None and len(assignment.devices) > 1:
            attributes.append(sharding_attribute(module, out_sharding, v.aval.physical.ndim, shardy))
        constraints.append(
            spec_text(module, out_sharding.mesh, out_sharding.spec, v.aval.ndim)
            if has_partial and isinstance(out_sharding, NamedSharding)
            else None
        )
        if (kind := kinds[i]) is not None:
            attributes.append(memory_attribute(kind))
        attributes_out.append(tuple(attributes))
    text = lower_module(
        jaxpr,
        f"jit_{name}",
        arguments=arguments,
        result_attributes=attributes_out,
        result_shardings=constraints,
        module=module,
    )
    return text, module


def _result_memory_kinds(
    jaxpr: Jaxpr, assignment: DeviceAssignment, out_shardings: Sequence[Sharding | None]
) -> list[str | None]:
    """The kind of memory of each result: of its sharding, or of its type; None if the text need not say it."""
    pairs = zip(jaxpr.outvars, out_shardings or [None] * len(jaxpr.outvars), strict=True)
    kinds = [kind_of(v.aval.memory_space) if s is None else s.kind for v, s in pairs]
    device = assignment.devices[0]
    if device.platform == "cpu" or not (
        any(kinds)
        or any(s.kind for s in assignment.shardings)
        or any(eqn.primitive.name == "to_memory" for eqn in jaxpr.eqns)
    ):
        return kinds
    # XLA would leave a result in the memory of the argument that it is computed from.
    return [kind or device.default_memory().kind for kind in kinds]


def memory_attribute(kind: str) -> str:
    """The attribute for the kind of memory of an argument or result."""
    return f"mhlo.memory_kind = {quoted(kind)}"


def sharding_attribute(module: Module, sharding: Sharding, ndim: int, shardy: bool) -> str:
    """The attribute for the sharding of an argument or result, for Shardy or for GSPMD."""
    if not shardy or not isinstance(sharding, NamedSharding):
        return f"mhlo.sharding = {quoted(repr(sharding.hlo(ndim)))}"
    return f"sdy.sharding = #sdy.sharding<{spec_text(module, sharding.mesh, sharding.spec, ndim)}>"


def spec_text(module: Module, mesh: Mesh | AbstractMesh, spec: PartitionSpec, ndim: int) -> str:
    """A PartitionSpec for an array with `ndim` axes in Shardy's syntax: ``@mesh, [{"i"}, {}]``."""
    symbol = module.mesh_symbol(mesh)
    dims = [
        # "?" leaves the axis open for the partitioner to split.
        "?" if entry is UNCONSTRAINED else ", ".join(map(axis_text, axes_of(entry)))
        for entry in entries_for(spec, ndim)
    ]
    return f"@{symbol}, [{', '.join(f'{{{dim}}}' for dim in dims)}]{unreduced_text(mesh, reductions_in(spec))}"
