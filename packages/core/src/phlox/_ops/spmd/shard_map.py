"""The primitive `shard_map`: every device of a mesh runs a jaxpr on its own shards. pmap uses it.

PartitionSpecs define the shard of each operand that a device gets, and how results are assembled. It is lowered to
Shardy's manual computation, in which collectives name the axes of the mesh. `manual` are the axes that the jaxpr is
mapped over; along the other axes the compiler may partition the shards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..._base import config
from ..._base.errors import DeviceError, EffectError, OptionError, RefError, ShapeError, ShardingTypeError
from ..._base.scoped import scoped
from ..._ir.avals import ShapedArray
from ..._ir.effects import OrderedDebugEffect, ordered
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn, axes_inside, narrowed, only, without
from ..._ir.key_uses import KeyUses
from ..._ir.primitive import define_on_demand
from ..._ir.sharding_types import (
    Reductions,
    entries_of,
    manual_reductions,
    reductions_of,
    spec_over,
    without_manual,
)
from ..._trace.axes import axis_env
from ..._trace.interpret import as_function, eval_jaxpr
from ..._trace.program_primitive import Operands, ProgramPrimitive, RefValues
from ..._trace.refs import accesses
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, drop_zeros, fill, insert_axis
from ..._transform.batch import BatchAxis, Dim
from ..._transform.jaxprs import batch_jaxpr, jvp_jaxpr, linearize_jaxpr, restage, transpose_jaxpr
from ..._transform.manual_axes import as_varying
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_jaxpr
from ..._xla.manual_computation import manual_computation
from ..._xla.mesh import AxisType, Mesh, current_mesh
from ..._xla.partition_spec import PartitionSpec, axes_of, reductions_in, tiles
from ..._xla.text import TOKEN, Function, Value
from ..control.call import rebuild_call
from ..control.masked import masked_jaxpr
from ..elementwise.arithmetic import div
from ..elementwise.families import literal
from ..structure.shape import reshape
from .collectives import psum
from .reshard import insert_entry

Specs = tuple[PartitionSpec, ...]
Names = tuple[Any, ...]

# Differentiation names them, for programs with partial results only.
define_on_demand(f"{__package__}.axis_states", "manual_cast")
define_on_demand(f"{__package__}.axis_states", "unreduced_psum")


def _part_shape(shape: tuple[int, ...], mesh: Mesh, spec: PartitionSpec) -> tuple[int, ...]:
    pieces = tiles(mesh, spec, len(shape))
    for axis, (n, k) in enumerate(zip(shape, pieces, strict=True)):
        if n % k:
            raise ShapeError(f"axis {axis} of an array of shape {shape} cannot be split evenly over {k} devices")
    return tuple(n // k for n, k in zip(shape, pieces, strict=True))


def part_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual: Names, tracked: Names = ()) -> ShapedArray:
    """The type of one device's shard of an array; it varies along the axes of the spec, as far as they are tracked, and
    is split over explicit axes that are not manual.

    Raises `ShardingTypeError` if the type of the array says that it is split otherwise than by `spec`.
    """
    vma = aval.vma | (_axes_in(spec) & frozenset(tracked))
    part = aval.update(shape=_part_shape(aval.shape, mesh, spec), vma=vma)
    _check_reductions("in_specs", spec, aval, frozenset(manual))
    if aval.spec is None:
        return part
    entries = []
    for axis, entry in enumerate(aval.spec.entries):
        mapped = tuple(name for name in entry if name in manual)
        if mapped != (axes_of(spec[axis]) if axis < len(spec) else ()):
            raise ShardingTypeError(
                f"in_specs passed to shard_map: {spec} does not match the specs of the input of type {aval.short}",
                instead="in_specs as in the type, or phlox.reshard(x, phlox.P(...)) first",
                avals=[aval],
            )
        entries.append(tuple(name for name in entry if name not in manual))
    inner = spec_over(with_manual_axes(aval.spec.mesh, manual), entries, aval.spec.reductions)
    return part.with_spec(inner if tracked else without_manual(inner))


def _check_reductions(what: str, spec: PartitionSpec, aval: ShapedArray, manual: frozenset[Any]) -> None:
    """Raises `ShardingTypeError` unless `spec` has the reductions of the type, as far as they are over manual axes."""
    unreduced, reduced, kind = reductions_of(aval)
    expected = Reductions(unreduced & manual, reduced & manual, kind if unreduced & manual else "sum")
    if reductions_in(spec) != expected:
        raise ShardingTypeError(
            f"{what} passed to shard_map: {spec} has not the unreduced and reduced axes of the type {aval.short}",
            instead="phlox.reshard, or inside of shard_map phlox.lax.pcast or psum, before",
            avals=[aval],
        )


def with_manual_axes(mesh: Any, manual: Names) -> Any:
    """The mesh, concrete or abstract, with axes of type Manual."""
    kinds = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.update(axis_types=tuple(AxisType.Manual if name in manual else kind for name, kind in kinds))


def _whole_entries(spec: PartitionSpec, part: ShapedArray) -> list[Names]:
    """The entries of an array that `spec` cuts into parts of this type: axes of the spec, then those of the type."""
    outer = [axes_of(entry) for entry in spec] + [()] * (part.ndim - len(spec))
    return [(*a, *b) for a, b in zip(outer, entries_of(part), strict=True)]


def _whole_reductions(spec: PartitionSpec, part: ShapedArray) -> Reductions:
    """The reductions of an array whose parts have this type: those of the spec over manual axes, and those of the
    type."""
    (unreduced, reduced, kind), (more, others, inner_kind) = reductions_in(spec), reductions_of(part)
    return Reductions(unreduced | more, reduced | others, kind if unreduced else inner_kind)


def whole_aval(part: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual: Names) -> ShapedArray:
    """The type of an array that `spec` cuts into parts of type `part`."""
    shape = tuple(n * k for n, k in zip(part.shape, tiles(mesh, spec, part.ndim), strict=True))
    whole = part.update(shape=shape, vma=part.vma - frozenset(manual))
    split = [tuple(n for n in entry if n in mesh.explicit_axes) for entry in _whole_entries(spec, part)]
    return whole.with_spec(spec_over(mesh.abstract_mesh, split, _whole_reductions(spec, part)))


def _cotangent_spec(spec: PartitionSpec) -> PartitionSpec:
    return PartitionSpec(*spec.partitions, unreduced=spec.reduced, reduced=spec.unreduced)


def _axes_in(spec: PartitionSpec) -> frozenset[Any]:
    """The mesh axes that a spec splits over."""
    return frozenset(axis for entry in spec for axis in axes_of(entry))


def as_result(x: Any, spec: PartitionSpec, tracked: Names) -> Any:
    """A result of one device, declared as varying along the tracked axes over which the results are put together.

    Raises `OptionError` if it varies along others, as `spec` does not say which device's result is meant.
    """
    aval = typeof(x)
    if tracked:
        _check_reductions("out_specs", spec, aval, frozenset(tracked))
    more = aval.vma & frozenset(tracked) - _axes_in(spec)
    if more:
        names = ", ".join(repr(axis) for axis in tracked if axis in more)
        raise OptionError(
            "shard_map was given out_specs which require replication which can't be statically inferred given the "
            f"mesh: {spec} for a result of type {aval.short}, which may differ between the devices along {names}",
            instead="psum or pmean of the result; the axis in out_specs; or check_vma=False if the results are equal",
            spec=spec,
        )
    return as_varying(x, aval.varying(aval.vma | (_axes_in(spec) & frozenset(tracked))))


class ManualAxes(NamedTuple):
    """The axes `manual` of a mesh, over which a jaxpr is mapped. With `check_vma`, types track along which of them
    values vary."""

    mesh: Mesh
    manual: Names
    check_vma: bool

    def check_nesting(self, function: str) -> None:
        """Raises `DeviceError` if a mapped function around has another mesh, or maps over one of the axes.

        XLA ends the process for devices in two meshes. A mesh of one device is no partition, and may be anywhere.
        """
        outer = current_mesh()
        if outer is None or not outer.manual_axes or self.mesh.size == 1:
            return
        if isinstance(outer, Mesh) and isinstance(self.mesh, Mesh):
            is_same = outer.is_equivalent_to(self.mesh)
        else:  # an abstract mesh gets the devices of the arguments
            is_same = outer.shape_tuple == self.mesh.shape_tuple
        if is_same and not set(outer.manual_axes).intersection(self.manual):
            return
        raise DeviceError(
            f"{function}: maps over {self.manual} of {self.mesh}, inside of a function that is mapped over "
            f"{outer.manual_axes} of {outer}",
            instead="one mesh, and in each shard_map other axes of it (axis_names={...}); or vmap inside",
            mesh=self.mesh,
        )

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Puts the manual axes in scope, for collectives, and the mesh with the types that its axes have inside."""
        mesh, mark = self.mesh, (True,) if self.check_vma else ()
        axes = [(name, size, *mark) for name, size in mesh.shape.items() if name in self.manual]
        with config.scope(mesh=with_manual_axes(mesh, self.manual)), scoped(axis_env, (*axis_env.get(), *axes)):
            yield

    def bind(
        self,
        jaxpr: ClosedJaxpr,
        args: Sequence[Any],
        in_specs: Sequence[PartitionSpec],
        out_specs: Sequence[PartitionSpec],
    ) -> list[Any]:
        """Binds `shard_map`; constants of the closed jaxpr become replicated operands."""
        specs = {"in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}
        return shard_map.rebind(args, {**self._asdict(), **specs}, [jaxpr])

    def stacked_specs(self, avals: Sequence[ShapedArray]) -> Specs:
        """The specs of results that get a new leading axis, as they differ between devices: it is split over the manual
        axes along which they vary."""
        if not self.check_vma:
            return (PartitionSpec(self.manual),) * len(avals)
        return tuple(
            PartitionSpec(tuple(n for n in self.manual if n in a.vma), unreduced=unreduced, reduced=reduced)
            for a in avals
            for unreduced, reduced in [manual_reductions(a)]
        )

    def replicated_over(self, spec: PartitionSpec) -> Names:
        """The manual axes along which an array with this spec is replicated."""
        used = _axes_in(spec) | spec.unreduced | spec.reduced
        return tuple(axis for axis in self.manual if axis not in used)


def _shard_map_rebuild(
    args: Sequence[Any], params: dict[str, Any], programs: Sequence[ClosedJaxpr], carried: Sequence[Any] = ()
) -> Operands:
    """Each device has the whole of new operands, and returns carried values that are equal on all devices."""
    operands, params = rebuild_call(args, params, programs, carried)
    whole = PartitionSpec()
    params["in_specs"] = (whole,) * (len(operands) - len(args)) + params["in_specs"]
    params["out_specs"] = (whole,) * len(carried) + params["out_specs"]
    return operands, params


def _shard_map_types(
    *avals: ShapedArray, jaxpr: ClosedJaxpr, mesh: Mesh, out_specs: Specs, manual: Names, **_: Any
) -> list[ShapedArray]:
    return [whole_aval(a, mesh, spec, manual) for a, spec in zip(jaxpr.out_avals, out_specs, strict=True)]


def _shard_map_lower(
    f: Function,
    *args: Value,
    jaxpr: ClosedJaxpr,
    mesh: Mesh,
    in_specs: Specs,
    out_specs: Specs,
    manual: Names,
    check_vma: bool,
) -> list[Value]:
    # Along Auto axes that are not mapped, here or around, the compiler may split operands and results further. Closed
    # shardings would gather them.
    mapped = (*manual, *(name for name in mesh.axis_names if f.axes and name not in f.auto))
    within = with_manual_axes(mesh, mapped)

    def sharding(spec: PartitionSpec, part: ShapedArray, rank: int) -> str:
        return f.module.split_text(within, tuple(_whole_entries(spec, part)), rank, _whole_reductions(spec, part))

    # Each device has an order of its own.
    in_order = ordered(jaxpr.effects)
    if mesh.size > 1 and OrderedDebugEffect() in jaxpr.effects:
        raise EffectError(
            f"ordered effects ({', '.join(map(repr, jaxpr.effects))}) in a program of {mesh.size} devices, "
            "which have no common order",
            instead="ordered=False",
            effects=jaxpr.effects,
        )
    operands = [
        (x, part.physical, sharding(spec, part, x.aval.ndim))
        for x, part, spec in zip(args, jaxpr.in_avals, in_specs, strict=True)
    ]
    outs = [
        (out, sharding(spec, part, out.ndim))
        for out, part, spec in zip(f.outs, jaxpr.out_avals, out_specs, strict=True)
    ]
    if in_order:
        token_sharding = f.module.split_text(within, (), 0)
        operands.append((f.order(), TOKEN, token_sharding))
        outs.append((TOKEN, token_sharding))

    def body(g: Function, *parts: Value) -> list[Value]:
        if not in_order:
            return lower_jaxpr(g, jaxpr.jaxpr, parts)
        *inputs, g.token = parts
        return [*lower_jaxpr(g, jaxpr.jaxpr, inputs), g.order()]

    results = manual_computation(f, mesh, manual, operands, outs, body)
    if in_order:
        f.token = results.pop()
    return results


def _shard_map_drop_unused(eqn: JaxprEqn, used: Sequence[bool]) -> JaxprEqn:
    if all(used):
        return eqn
    params = eqn.params
    jaxpr, read = narrowed(params["jaxpr"], used)
    specs = {"in_specs": tuple(only(params["in_specs"], read)), "out_specs": tuple(only(params["out_specs"], used))}
    return eqn.replace(
        invars=only(eqn.invars, read), outvars=only(eqn.outvars, used), params={**params, **specs, "jaxpr": jaxpr}
    )


def _shard_map_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    axes = ManualAxes(**params)
    nonzero = tuple(type(t) is not Zero for t in tangents)
    with axes.inside():
        derived, present = jvp_jaxpr(jaxpr, nonzero)
    nonzero_tangents = drop_zeros(tangents)
    specs = (*in_specs, *only(in_specs, nonzero))
    out = (*out_specs, *only(out_specs, present))
    results = axes.bind(derived, [*primals, *nonzero_tangents], specs, out)
    count = len(out_specs)
    return results[:count], fill(results[count:], present, [typeof(x) for x in results[:count]])


def _shard_map_linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> tuple[list[Any], list[Any]]:
    axes = ManualAxes(**params)
    nonzero = tuple(type(t) is not Zero for t in tangents)
    with axes.inside():
        split = linearize_jaxpr(jaxpr, nonzero)
        count = len(out_specs)
        # Residuals have no spec of the user's. Each device's residual is a slice along a new leading axis.
        stacked = axes.stacked_specs(split.primal.out_avals[count:])

        def with_axis(*xs: Any) -> list[Any]:
            outs = eval_jaxpr(split.primal.jaxpr, split.primal.consts, *xs)
            return [*outs[:count], *[insert_axis(r, 1, 0) for r in outs[count:]]]

        primal = restage(with_axis, split.primal.in_avals, jaxpr.jaxpr)
        # Residuals that are operands or results keep their specs, and have no new axis.
        has_new_axis = [kind == "out" and i >= count for kind, i in split.residuals]
        has_new_axis += [False] * (len(split.linear.in_avals) - len(has_new_axis))

        def without_axis(*xs: Any) -> list[Any]:
            plain = [
                reshape(x, new_sizes=typeof(x).shape[1:], dimensions=None) if flag else x
                for x, flag in zip(xs, has_new_axis, strict=True)
            ]
            return eval_jaxpr(split.linear.jaxpr, split.linear.consts, *plain)

        avals = [a.with_axis(0, 1) if flag else a for a, flag in zip(split.linear.in_avals, has_new_axis, strict=True)]
        linear = restage(without_axis, avals, jaxpr.jaxpr)
    results = axes.bind(primal, primals, in_specs, (*out_specs, *stacked))
    sources: dict[str, Sequence[Any]] = {"in": primals, "out": results}
    specs = {"in": in_specs, "out": (*out_specs, *stacked)}
    residuals = [sources[kind][i] for kind, i in split.residuals]
    linear_specs = [specs[kind][i] for kind, i in split.residuals]
    linear_specs += only(in_specs, nonzero)
    tangent_specs = only(out_specs, split.nonzero)
    operands = [*residuals, *drop_zeros(tangents)]
    outs = axes.bind(linear, operands, linear_specs, tangent_specs) if tangent_specs else []
    return results[:count], fill(outs, split.nonzero, [typeof(x) for x in results[:count]])


def _shard_map_expose(
    *args: Any, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any
) -> list[list[Any]]:
    axes = ManualAxes(**params)
    counts: list[int] = []

    def all_results(*xs: Any) -> list[Any]:
        results: list[Any] = []

        def run(eqn: JaxprEqn, values: list[Any]) -> Any:
            out = eqn.primitive.bind(*values, **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            counts.append(len(outs))
            results.extend(outs)
            return out

        eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs, run=run)
        return [insert_axis(x, 1, 0) for x in results]

    with axes.inside():
        exposed = restage(all_results, jaxpr.in_avals, jaxpr.jaxpr)
    outs = iter(axes.bind(exposed, args, in_specs, axes.stacked_specs(exposed.out_avals)))
    return [[next(outs) for _ in range(count)] for count in counts]


def _shard_map_transpose(
    cotangents: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any
) -> list[Any]:
    axes = ManualAxes(**params)
    linear = tuple(is_linear(x) for x in args)
    nonzero = tuple(type(ct) is not Zero for ct in cotangents)
    ct_specs = [*map(_cotangent_spec, only(out_specs, nonzero))]
    arg_specs = without(in_specs, linear)
    result_specs = [*map(_cotangent_spec, only(in_specs, linear))]
    with axes.inside():
        derived, present = transpose_jaxpr(jaxpr, linear, nonzero)
        result_specs = only(result_specs, present)

        def adjusted(*xs: Any) -> list[Any]:
            values, cts = list(xs[: len(arg_specs)]), list(xs[len(arg_specs) :])
            # The cotangent of a replicated result is divided among the devices that hold it; the cotangent of a
            # replicated operand is the sum over devices.
            # Where types track how values vary, `backward_pass` has done both.
            for i, spec in enumerate(ct_specs):
                copies = () if axes.check_vma else axes.replicated_over(spec)
                if copies:
                    cts[i] = div(cts[i], literal(cts[i], math.prod(axes.mesh.shape[axis] for axis in copies)))
            outs = eval_jaxpr(derived.jaxpr, derived.consts, *values, *cts)
            if axes.check_vma:
                return outs
            return [
                psum.bind(x, axes=copies, axis_index_groups=None)[0] if (copies := axes.replicated_over(spec)) else x
                for x, spec in zip(outs, result_specs, strict=True)
            ]

        program = restage(adjusted, derived.in_avals, jaxpr.jaxpr, may_use_refs=True)
    operands = [x for x in args if not is_linear(x)] + [ct for ct in cotangents if type(ct) is not Zero]
    operand_cotangents = iter(axes.bind(program, operands, (*arg_specs, *ct_specs), tuple(result_specs)))
    flags = iter(present)
    return [
        (next(operand_cotangents) if next(flags) else Zero(x.aval.cotangent())) if is_linear(x) else None for x in args
    ]


def _shard_map_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> tuple[list[Any], list[Dim]]:
    axes = ManualAxes(**params)
    split, inner = axis.spmd, axis
    named = frozenset().union(*map(_axes_in, (*in_specs, *out_specs)))
    if axis.explicit is None:
        # Residuals are split over all axes. Then each device computes all examples.
        split = () if named.intersection(split) else split
    else:
        # The examples are split between devices over the explicit axes that are mapped, and over the others inside.
        split = tuple(name for name in axis.split if name in axes.manual)
        if used := named.intersection(split):
            raise ShardingTypeError(
                f"vmap of shard_map: the batch is split over {sorted(map(str, used))}, which a spec names too",
                instead="specs of other axes",
            )
        rest = tuple(name for name in axis.split if name not in axes.manual)
        inner = axis._replace(spmd=(), explicit=spec_over(with_manual_axes(axis.explicit.mesh, axes.manual), [rest]))
    pieces = math.prod(axes.mesh.shape[name] for name in split)
    if axis.size % pieces:
        raise ShapeError(f"a batch of {axis.size} cannot be split evenly over {pieces} devices (spmd_axis_name)")
    with axes.inside():
        derived, out_dims = batch_jaxpr(jaxpr, inner._replace(size=axis.size // pieces), tuple(dims))
        if axes.check_vma and split:  # along these axes devices have other examples
            spread = frozenset(split) & frozenset(axes.manual)
            avals = [a if d is None else a.varying(a.vma | spread) for a, d in zip(derived.in_avals, dims, strict=True)]
            program = derived
            derived = restage(as_function(program), avals, jaxpr.jaxpr)
    specs = tuple(insert_entry(s, d, split) for s, d in zip(in_specs, dims, strict=True))
    out = tuple(insert_entry(s, d, split) for s, d in zip(out_specs, out_dims, strict=True))
    return axes.bind(derived, args, specs, out), out_dims


def _shard_map_masked(
    mask: Any, *args: Any, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any
) -> list[Any]:
    """The mask is equal on all devices."""
    axes = ManualAxes(**params)
    spec = PartitionSpec()
    with axes.inside():
        program = masked_jaxpr(jaxpr, part_aval(typeof(mask), axes.mesh, spec, axes.manual))
    return axes.bind(program, [mask, *args], (spec, *in_specs), out_specs)


def _shard_map_checked(
    checks: Any, *args: Any, jaxpr: ClosedJaxpr, in_specs: Specs, out_specs: Specs, **params: Any
) -> list[Any]:
    """Each device has its own `Error`; the result is that of the first device with an error."""
    axes = ManualAxes(**params)
    leaves = checks.leaves
    with axes.inside():
        program, tree = checks.program(jaxpr, jaxpr.in_avals)
        width = tree.num_leaves

        def fun(*xs: Any) -> list[Any]:
            outs = eval_jaxpr(program.jaxpr, program.consts, *xs)
            rows = [reshape(x, new_sizes=(1, *typeof(x).shape), dimensions=None) for x in outs[:width]]
            return [*rows, *outs[width:]]

        stacked = restage(fun, program.in_avals, program.jaxpr)
    each = PartitionSpec(tuple(name for name in axes.mesh.axis_names if name in axes.manual))
    in_specs = (*[PartitionSpec()] * len(leaves), *in_specs)
    outs = axes.bind(stacked, [*leaves, *args], in_specs, (*[each] * width, *out_specs))
    results = checks.results(outs, tree)
    checks.error = checks.error.reduced()
    return results


def _shard_map_keys(eqn: Any, uses_of: Any) -> KeyUses:
    """A key whose part a device consumes is consumed as a whole."""
    uses: KeyUses = uses_of(eqn.params["jaxpr"])
    return uses._replace(consumed=tuple((i, True) for i, _ in uses.consumed))


def _shard_map_check_refs(refs: RefValues, params: dict[str, Any]) -> None:
    """Refuses writes of values that may differ between devices."""
    for ref, new in accesses(params["jaxpr"].jaxpr).written.items():
        if new.aval.vma & frozenset(params["manual"]):
            raise RefError(
                f"shard_map: a value of type {new.aval.short}, which may differ between devices, was written to a "
                f"reference of type {ref.aval} from outside",
                instead="psum or pmean of the value; or a result with the axis in out_specs",
            )


shard_map = ProgramPrimitive(
    "shard_map",
    rebuild=_shard_map_rebuild,
    check_refs=_shard_map_check_refs,
    types=_shard_map_types,
    vma=lambda avals, params: None if params["check_vma"] else frozenset().union(*[a.vma for a in avals]),
    lower=_shard_map_lower,
    drop_unused=_shard_map_drop_unused,
    jvp=_shard_map_jvp,
    linearize=_shard_map_linearize,
    transpose=_shard_map_transpose,
    batch=_shard_map_batch,
    masked=_shard_map_masked,
    expose=_shard_map_expose,
    axes=lambda params: axes_inside(params) - set(params["manual"]),
    keys=_shard_map_keys,
    checked=_shard_map_checked,
)
