"""The primitives `reshard`, `to_memory` and `layout_constraint`: the identity, whose result has the sharding of a
PartitionSpec on a mesh, lies in memory of another kind, or has its elements in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._base.errors import ShapeError
from ..._ir.avals import ShapedArray
from ..._ir.key_uses import passes
from ..._ir.primitive import Primitive
from ..._transform.array_operations import Zero
from ..._transform.batch import BatchAxis, Dim
from ..._xla.foreign import foreign_call, untyped
from ..._xla.mesh import Mesh, PartitionSpec
from ..._xla.platforms import platform_of
from ..._xla.program import spec_text
from ..._xla.sharding import NamedSharding, Sharding
from ..._xla.text import Function, Value, quoted
from ..structure.shape import structural


def insert_entry(spec: PartitionSpec, dim: Dim, names: tuple[Any, ...] = ()) -> PartitionSpec:
    """The spec after an axis was inserted at `dim`, which is split over the mesh axes of these names."""
    if dim is None or (dim >= len(spec) and not names):
        return spec
    before = (*spec[:dim], *(None for _ in range(dim - len(spec))))
    return PartitionSpec(*before, names or None, *spec[dim:])


def _lower(f: Function, x: Value, mesh: Mesh, spec: PartitionSpec) -> Value:
    if mesh.size == 1:
        return x
    where = spec_text(f.module, mesh, spec, x.aval.ndim)
    out = f.fresh()
    f.line(f"{out} = sdy.sharding_constraint {x} <{where}> : {x.aval.text}")
    return Value(out, x.aval)


def _types(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec) -> ShapedArray:
    return aval


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **where: Any) -> tuple[Any, Any]:
    (tangent,) = tangents
    return reshard_p.bind(*primals, **where), tangent if type(tangent) is Zero else reshard_p.bind(tangent, **where)


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], mesh: Mesh, spec: PartitionSpec
) -> tuple[Any, Dim]:
    return reshard_p.bind(*args, mesh=mesh, spec=insert_entry(spec, dims[0], axis.spmd)), dims[0]


reshard_p = Primitive(
    "reshard",
    types=_types,
    lower=_lower,
    jvp=_jvp,
    transpose=lambda ct, x, **where: [reshard_p.bind(ct, **where)],
    batch=_batch,
    extend=lambda params, trailing, *avals: params,
    keys=passes,
    nan_checked=False,
)


def _to_memory_lower(f: Function, x: Value, memory_kind: str | None) -> Value:
    if platform_of(f) == "cpu":  # all kinds of memory of a CPU are the same
        return x
    attributes = 'call_target_name = "annotate_device_placement", has_side_effect = true'
    placement = f"mhlo.frontend_attributes = {{_xla_buffer_placement = {quoted(memory_kind or 'device')}}}"
    return f.op("stablehlo.custom_call", [x], x.aval, attributes, marks=placement)


to_memory = structural(
    "to_memory",
    types=lambda x, memory_kind: x,
    lower=_to_memory_lower,
    transpose=lambda ct, aval, memory_kind: to_memory(ct, memory_kind=None),  # where it came from is not known
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
    lower=_layout_lower,
    transpose=lambda ct, aval, major_to_minor: layout_constraint(ct, major_to_minor=major_to_minor),
    batch=_layout_batch,
    extend=lambda params, trailing, x: {
        "major_to_minor": (*params["major_to_minor"], *range(x.ndim, x.ndim + len(trailing)))
    },
)


def laid_out(x: Any, sharding: Sharding | None) -> Any:
    """`x`, a value of a trace, with `sharding`; a sharding that names no mesh only has a kind of memory there."""
    if isinstance(sharding, NamedSharding):
        x = reshard_p.bind(x, mesh=sharding.mesh, spec=sharding.spec)
    return x if sharding is None or sharding.kind is None else to_memory(x, memory_kind=sharding.kind)
