"""Shardings in types, for transformations: how a value is given a type that says how it is split, or does not.

A tangent is split as its primal value is, and so is a cotangent. Most operations give them such types by themselves;
where one does not, `reshard_like` reshards. See `_ir.sharding_types` for the types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._base import config
from .._ir import dtypes
from .._ir.avals import ShapedArray, typeof_value
from .._ir.memory_spaces import Space, any_spaces, kind_of
from .._ir.primitive import primitive
from .._ir.sharding_types import NO_REDUCTIONS, any_specs, entries_of, reductions_of, spec_over, without_manual
from .._trace.trace import typeof


def reshard_like(x: Any, aval: ShapedArray) -> Any:
    """`x`, split over explicit axes as `aval` is, and in its memory space. Anything that is no array stays as it is."""
    have = typeof_value(x)
    if have is None or have.dtype == dtypes.float0:
        return x
    x = in_space(x, aval.memory_space)
    if have.spec is aval.spec:
        return x
    # Reductions over manual axes are changed by `as_varying`.
    if without_manual(have.spec) is without_manual(aval.spec):
        return x
    # To become unsplit, an array needs the mesh too: that of the type which it has.
    spec = aval.spec or have.spec
    assert spec is not None
    return primitive("reshard").bind(x, mesh=with_devices(spec.mesh), spec=aval.sharding.spec)


def in_space(x: Any, space: Space) -> Any:
    """`x` in this memory space."""
    return x if typeof(x).memory_space is space else primitive("to_memory").bind(x, memory_kind=kind_of(space))


def in_device_memory(x: Any) -> Any:
    """`x` in the memory of the device."""
    return in_space(x, Space.Device) if any_spaces() else x


def in_one_space(*xs: Any) -> Sequence[Any]:
    """The operands of an operation. Those without axes, which are broadcast, move to the memory space of others."""
    array = next((aval for x in xs if (aval := typeof(x)).ndim), None)
    return xs if array is None else [x if typeof(x).ndim else in_space(x, array.memory_space) for x in xs]


def with_reductions(x: Any, aval: ShapedArray) -> Any:
    """`x`, a constant that meets an array of type `aval`, with the reductions and the memory space of this type."""
    x = in_space(x, aval.memory_space)
    if reductions_of(aval) == NO_REDUCTIONS:
        return x
    have, spec = typeof(x), aval.spec
    assert spec is not None
    return reshard_like(x, have.with_spec(spec_over(spec.mesh, entries_of(have), spec.reductions)))


def with_unreduced(x: Any, aval: ShapedArray) -> Any:
    """`with_reductions` where the type is unreduced; elsewhere `x` itself."""
    return with_reductions(x, aval) if reductions_of(aval).unreduced else x


def with_devices(mesh: Any) -> Any:
    """The mesh of the context, if it has the axes of the abstract mesh; that one otherwise."""
    context = config.current().mesh
    known = context is not None and (context.shape_tuple, context.axis_types) == (mesh.shape_tuple, mesh.axis_types)
    return context if known else mesh


def unsplit(x: Any) -> Any:
    """`x` with a type that says nothing of explicit axes: the compiler decides how it is split.

    Anything that is no array stays as it is, also the placeholders of transposition, which have a type and no value.
    """
    have = typeof_value(x)
    if have is None or have.spec is None or not hasattr(x, "dtype"):
        return x
    if have.spec.reductions.unreduced:  # the compiler would take a partial result for the array
        x = reshard_like(x, have.with_spec(spec_over(have.spec.mesh, have.spec.entries)))
    return primitive("mesh_cast").bind(x, axes=None)


def in_auto(transpose: Callable[..., Any]) -> Callable[..., Any]:
    """The transpose rule `transpose` for primitives whose types can leave open how a result is split.

    The cotangents that it returns are to be split as the operands are, so that nothing is open: the compiler chooses
    how to get there.
    """

    def rule(cotangent: Any, *args: Any, **params: Any) -> Any:
        if not any_specs():
            return transpose(cotangent, *args, **params)
        return transpose(unsplit(cotangent), *map(unsplit, args), **params)

    return rule
