"""The primitives `reshard`, `mesh_cast`, `to_memory` and `layout_constraint`: the identity, whose result has another
sharding, a type without some explicit axes, another kind of memory, or another order of its elements in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.key_uses import passes
from ..._ir.memory_spaces import kind_of, space_of
from ..._ir.primitive import Primitive, sharding_in_types
from ..._ir.sharding_types import Reductions, check_divisible, entries_of, entry_of, reductions_of, spec_over
from ..._trace.trace import Tracer
from ..._transform.array_operations import linear_jvp
from ..._transform.batch import BatchAxis, BatchTracer, Dim
from ..._transform.jvp import JVPTracer
from ..._transform.sharding_types import unsplit
from ..._xla.array import ArrayImpl, wrap
from ..._xla.devices import default_device
from ..._xla.foreign import foreign_call, untyped
from ..._xla.host_values import as_array
from ..._xla.manual_computation import manual_computation
from ..._xla.mesh import AbstractMesh, AxisType, Mesh, current_mesh
from ..._xla.module_text import spec_text
from ..._xla.moves import move
from ..._xla.partition_spec import UNCONSTRAINED, PartitionSpec, axes_of, entries_for, reductions_in
from ..._xla.placement import aval_of, placement_for
from ..._xla.platforms import platform_of
from ..._xla.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    sharding_of_result,
    single_device,
    spec_of,
    type_with_sharding,
)
from ..._xla.text import Function, Value, quoted
from ..structure.shape import structural


def insert_entry(spec: PartitionSpec, dim: Dim, names: tuple[Any, ...] = ()) -> PartitionSpec:
    """The spec after an axis was inserted at `dim`, which is split over the mesh axes of these names."""
    if dim is None or (dim >= len(spec) and not names):
        return spec
    before = (*spec[:dim], *(None for _ in range(dim - len(spec))))
    return spec.update((*before, entry_of(names), *spec[dim:]))


def _reshard_lower(f: Function, x: Value, mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> Value:
    if mesh.size == 1:
        return x

    def sharding(spec: PartitionSpec) -> str:
        if mesh.explicit_axes and mesh.auto_axes:
            return f.module.split_text(mesh, tuple(map(axes_of, spec)), x.aval.ndim, reductions_in(spec))
        return spec_text(f.module, mesh, spec, x.aval.ndim)

    old = spec.unreduced & reductions_of(f.ins[0]).unreduced if spec.unreduced else frozenset()
    new = tuple(axis for axis in mesh.axis_names if axis in spec.unreduced - old)
    if not new:
        return f.constrain(x, sharding(spec))
    # Shardy would take the whole array on each device for its partial result.
    own = _own_parts(f.ins[0], spec, new)
    entries = [axes or entry for axes, entry in zip(own, entries_for(spec, x.aval.ndim), strict=True)]
    before = sharding(PartitionSpec(*entries, unreduced=old, reduced=spec.reduced))
    x = f.constrain(x, before)
    # Maxima and minima are those of equal values, which all devices keep.
    first = [axis for axis in new if not any(axis in axes for axes in own)] if reductions_in(spec).kind == "sum" else []
    return _partial_results(f, x, mesh, tuple(spec.unreduced), tuple(first), own, [before, sharding(spec)])


def _own_parts(aval: ShapedArray, spec: PartitionSpec, new: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """For each array axis, the mesh axes among `new` over which it is split and stays so.

    A device then holds its own part, and zeros elsewhere, as in JAX; nothing is sent. Not so where the result is split
    along the array axis: in a manual computation Shardy wants manual mesh axes before others.
    """
    if reductions_in(spec).kind != "sum":
        return [()] * aval.ndim
    pairs = zip(entries_of(aval), entries_for(spec, aval.ndim), strict=True)
    return [split if entry is None and set(split) <= set(new) else () for split, entry in pairs]


def _partial_results(
    f: Function,
    x: Value,
    mesh: Mesh | AbstractMesh,
    unreduced: tuple[Any, ...],
    first: tuple[Any, ...],
    own: list[tuple[Any, ...]],
    shardings: Sequence[str],
) -> Value:
    """`x` with new partial results. `shardings` are those of `x` and of the result.

    Along the mesh axes of `own`, which are listed for each array axis, each device keeps its part. Along the mesh axes
    `first` the first device keeps its part, and the others get zeros.
    """
    counts = [math.prod(mesh.shape[axis] for axis in axes) for axes in own]
    part = shaped(tuple(size // count for size, count in zip(x.aval.shape, counts, strict=True)), x.aval.dtype)

    def device_indices(axes: tuple[Any, ...]) -> tuple[Value, ShapedArray, str]:
        count, one = math.prod(mesh.shape[axis] for axis in axes), shaped((1,), dtypes.int32)
        numbers = f.constant(np.arange(count, dtype=np.int32), shaped((count,), dtypes.int32))
        return numbers, one, spec_text(f.module, mesh, PartitionSpec(axes), 1)

    def body(g: Function, x: Value, *indices: Value) -> list[Value]:
        numbers = iter([g.unlike("stablehlo.reshape", i, shaped((), dtypes.int32)) for i in indices])
        if first:
            is_first = g.compare("EQ", next(numbers), g.constant(0, shaped((), dtypes.int32)))
            x = g.select(g.broadcast(is_first, part.shape), x, g.constant(0, part))
        if not any(own):
            return [x]
        zero = g.constant(0, shaped((), dtypes.int32))
        starts = [
            g.same("stablehlo.multiply", next(numbers), g.constant(size, zero.aval)) if axes else zero
            for axes, size in zip(own, part.shape, strict=True)
        ]
        return [g.op("stablehlo.dynamic_update_slice", [g.constant(0, whole), x, *starts], whole)]

    whole, (before, after) = x.aval, shardings
    operands = [(x, part, before), *[device_indices(axes) for axes in (first, *own) if axes]]
    return manual_computation(f, mesh, unreduced, operands, [(whole, after)], body)[0]


def _reshard_types(aval: ShapedArray, mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> ShapedArray:
    return check_divisible(aval.with_spec(spec_of(NamedSharding(mesh, spec), aval.ndim)))


def _reshard_eager(x: Any, mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> Any:
    # Only the compiler can choose how an axis is split.
    if UNCONSTRAINED in spec:
        return reshard_p.compiled(x, mesh=mesh, spec=spec)
    x = x if type(x) is ArrayImpl else as_array(x)
    kind = x.sharding.kind
    if isinstance(mesh, AbstractMesh):
        known = [getattr(x.sharding, "mesh", None), current_mesh()]
        fitting = [m for m in known if isinstance(m, Mesh) and m.shape_tuple == mesh.shape_tuple]
        if not fitting:
            return reshard_p.compiled(x, mesh=mesh, spec=spec)
        mesh = fitting[0]
    return move(x, sharding_of_result(NamedSharding(mesh, spec, memory_kind=kind), x.ndim))


def _reshard_transpose(ct: Any, x: Any, mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> list[Any]:
    # Where types say how the operand is split, its cotangent is resharded to that by `backward_pass`; elsewhere it is
    # split as the result is. An operand whose type says nothing may be split in any way.
    if not mesh.explicit_axes:
        return [reshard_p.bind(ct, mesh=mesh, spec=spec)]
    return [unsplit(ct) if x.aval.spec is None else ct]


def _reshard_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], mesh: Mesh | AbstractMesh, spec: PartitionSpec
) -> tuple[Any, Dim]:
    dim = dims[0]
    if dim is not None and not axis.split and mesh.auto_axes:
        # A constraint on an example leaves the mapped axis to the compiler. None would gather the examples.
        entries = entries_for(spec, dim)
        spec = spec.update((*entries[:dim], UNCONSTRAINED, *entries[dim:]))
    else:
        spec = insert_entry(spec, dim, axis.split)
    return reshard_p.bind(*args, mesh=mesh, spec=spec), dim


reshard_p = Primitive(
    "reshard",
    types=_reshard_types,
    sharding=sharding_in_types,
    lower=_reshard_lower,
    jvp=linear_jvp(lambda: reshard_p),
    transpose=_reshard_transpose,
    batch=_reshard_batch,
    eager=_reshard_eager,
    extend=lambda params, trailing, *avals: params,
    keys=passes,
    nan_checked=False,
)


def sharding_behind(x: Any) -> Sharding | None:
    """The sharding of the array behind tracers of eager transformations; None if there is none, as in compiled
    functions."""
    if type(x) is ArrayImpl:
        return x.sharding
    if type(x) is JVPTracer:
        return sharding_behind(x.primal)
    if type(x) is not BatchTracer:
        # Numbers and NumPy arrays go to the default device.
        return None if isinstance(x, Tracer) else single_device(default_device())
    sharding = sharding_behind(x.value)
    if not isinstance(sharding, NamedSharding):
        return sharding
    entries = sharding.spec.partitions
    return sharding.update(spec=sharding.spec.update(entries[: x.dim] + entries[x.dim + 1 :]))


def _transfer_types(x: ShapedArray, target: Sharding, source: Sharding | None) -> ShapedArray:
    return check_divisible(type_with_sharding(x, target))


def _transfer_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], target: Sharding, source: Sharding | None
) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return transfer.bind(x, target=target, source=source), transfer.bind(t, target=target, source=sharding_behind(x))


def _transfer_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], target: Sharding, source: Sharding | None
) -> tuple[Any, Dim]:
    def batched(sharding: Any) -> Any:
        if not isinstance(sharding, NamedSharding):
            return sharding
        return sharding.update(spec=insert_entry(sharding.spec, dims[0], axis.split))

    return transfer.bind(*args, target=batched(target), source=batched(source)), dims[0]


#: `device_put` under eager transformations: a cotangent goes back to `source`, where the operand's array was
transfer = Primitive(
    "transfer",
    types=_transfer_types,
    sharding=sharding_in_types,
    lower=lambda f, x, target, source: x,  # a compiled program has one list of devices
    jvp=_transfer_jvp,
    transpose=lambda ct, x, target, source: [ct if source is None else transfer.bind(ct, target=source, source=target)],
    batch=_transfer_batch,
    eager=lambda x, target, source: move(x if type(x) is ArrayImpl else as_array(x), target),
    extend=lambda params, trailing, *avals: params,
    keys=passes,
    nan_checked=False,
)


def _cast_types(aval: ShapedArray, axes: tuple[Any, ...] | None) -> ShapedArray:
    if aval.spec is None or axes is None:
        return aval.with_spec(None)
    mesh = aval.spec.mesh.update_axis_types(dict.fromkeys(axes, AxisType.Auto))
    entries = [tuple(name for name in entry if name not in axes) for entry in aval.spec.entries]
    unreduced, reduced, kind = aval.spec.reductions
    return aval.with_spec(
        spec_over(mesh, entries, Reductions(unreduced.difference(axes), reduced.difference(axes), kind))
    )


def _cast_eager(x: Any, axes: tuple[Any, ...] | None) -> Any:
    """The same buffer as an array over a mesh of which these axes are Auto."""
    x = x if type(x) is ArrayImpl else as_array(x)
    sharding = x.sharding
    if not isinstance(sharding, NamedSharding):
        return x
    mesh = sharding.mesh
    changed = mesh.explicit_axes if axes is None else axes
    kinds = [AxisType.Auto if n in changed else t for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True)]
    spec = sharding.spec.update(reduced=sharding.spec.reduced.difference(changed))
    placement = placement_for(x.aval, sharding.update(mesh=mesh.update(axis_types=kinds), spec=spec), x.committed)
    return wrap(x._buf, aval_of(placement), placement)


#: the identity, whose result has a type without the explicit axes `axes` (None: all): the compiler decides there
mesh_cast = structural(
    "mesh_cast",
    types=_cast_types,
    sharding=sharding_in_types,
    lower=lambda f, x, axes: x,
    transpose=lambda ct, aval, axes: ct,
    batch=lambda x, dim, axes: (mesh_cast(x, axes=axes), dim),
    eager=_cast_eager,
    extend=lambda params, trailing, x: params,
)


def _to_memory_lower(f: Function, x: Value, memory_kind: str | None) -> Value:
    if platform_of(f) == "cpu":  # all kinds of memory of a CPU are the same
        return x
    attributes = 'call_target_name = "annotate_device_placement", has_side_effect = true'
    placement = f"mhlo.frontend_attributes = {{_xla_buffer_placement = {quoted(memory_kind or 'device')}}}"
    return f.op("stablehlo.custom_call", [x], x.aval, attributes, marks=placement)


to_memory = structural(
    "to_memory",
    types=lambda x, memory_kind: x.in_space(space_of(memory_kind)),
    memory_in_types=True,
    lower=_to_memory_lower,
    transpose=lambda ct, aval, memory_kind: to_memory(ct, memory_kind=kind_of(aval.memory_space)),
    batch=lambda x, dim, memory_kind: (to_memory(x, memory_kind=memory_kind), dim),
    extend=lambda params, trailing, x: params,
)


def _layout_lower(f: Function, x: Value, major_to_minor: tuple[int, ...]) -> Value:
    order = tuple(range(x.aval.ndim))[::-1]  # of the operand: the compiler ignores it
    layouts = (order,), (major_to_minor[::-1],)
    return foreign_call(f, "LayoutConstraint", [x], [x.aval], untyped(1, ""), layouts=layouts)[0]


def _layout_batch(x: Any, dim: int, major_to_minor: tuple[int, ...]) -> tuple[Any, Dim]:
    order = (dim, *(i + (i >= dim) for i in major_to_minor))
    return layout_constraint(x, major_to_minor=order), dim


def _layout_types(x: ShapedArray, major_to_minor: tuple[int, ...]) -> ShapedArray:
    if sorted(major_to_minor) != list(range(x.ndim)):
        raise ShapeError(
            f"layout_constraint: {major_to_minor} is no order of the axes of {x.short}",
            instead=f"each of the {x.ndim} axes once",
            shapes=[x.shape],
        )
    return x


layout_constraint = structural(
    "layout_constraint",
    types=_layout_types,
    memory_in_types=True,
    lower=_layout_lower,
    transpose=lambda ct, aval, major_to_minor: layout_constraint(ct, major_to_minor=major_to_minor),
    batch=_layout_batch,
    extend=lambda params, trailing, x: {
        "major_to_minor": (*params["major_to_minor"], *range(x.ndim, x.ndim + len(trailing)))
    },
)


def apply_sharding(x: Any, sharding: Sharding | None) -> Any:
    """`x`, a value of a trace, with `sharding`, whose devices are then those of the program."""
    if isinstance(sharding, NamedSharding):
        x = reshard_p.bind(x, mesh=sharding.mesh, spec=sharding.spec)
    elif isinstance(sharding, SingleDeviceSharding):
        x = transfer.bind(x, target=single_device(sharding.devices[0]), source=None)
    return x if sharding is None or sharding.kind is None else to_memory(x, memory_kind=sharding.kind)
