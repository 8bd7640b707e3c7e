"""`out_sharding`, the option of many functions that sets the sharding of their result.

A function implements it in one of two ways: the decorator `takes_out_sharding` handles the keyword, or its body begins
with `operands_for` and ends with `lay_out`. Either way the function computes on operands whose types say nothing of
explicit axes, so that nothing in it can be ambiguous, then reshards the result as `phlox.reshard` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..._base import pytree
from ..._base.errors import ArgumentError, OptionError, ShardingTypeError
from ..._base.wrapping import wraps
from ..._ir.avals import typeof_value
from ..._ir.sharding_types import any_specs, entries_of, reductions_of
from ..._trace.trace import typeof
from ..._transform.sharding_types import unsplit
from ..._xla.mesh import AbstractMesh, AxisType, Mesh, current_mesh
from ..._xla.partition_spec import PartitionSpec, axes_of
from ..._xla.sharding import NamedSharding
from .meshes import named, reshard

F = TypeVar("F", bound=Callable[..., Any])
#: the type of the parameter `out_sharding`
OutSharding = NamedSharding | PartitionSpec | None


def checked_out_sharding(function: str, out_sharding: Any) -> NamedSharding | None:
    """A user's `out_sharding` as a `NamedSharding`; None if it is None or its mesh has no axes.

    Raises `ArgumentError` for other objects; `DeviceError` for a spec without a mesh in the context; `OptionError` for
    another mesh than that of the context, and for axes that are not explicit.
    """
    if out_sharding is None:
        return None
    if not isinstance(out_sharding, NamedSharding | PartitionSpec):
        raise ArgumentError(
            f"{function}: out_sharding={out_sharding!r} is neither a NamedSharding nor a PartitionSpec",
            instead="phlox.NamedSharding(mesh, phlox.P('x'))",
        )
    where: NamedSharding = named(function, out_sharding)
    if where.mesh.empty:
        return None
    context = current_mesh()
    if context is not None and not _agree(context, where.mesh):
        raise OptionError(
            f"{function}: out_sharding is of {where.mesh}, and the mesh of the context is {context}",
            instead="a PartitionSpec alone, for the mesh of the context",
            sharding=where,
        )
    kinds = dict(zip(where.mesh.axis_names, where.mesh.axis_types, strict=True))
    hidden = [axis for entry in where.spec for axis in axes_of(entry) if kinds[axis] is not AxisType.Explicit]
    if hidden:
        raise OptionError(
            f"{function}: out_sharding={where.spec} names axes that are not explicit: {hidden}",
            instead="a mesh by phlox.make_mesh(shape, names), or phlox.lax.with_sharding_constraint of the result",
            sharding=where,
        )
    return where


def _agree(context: Mesh | AbstractMesh, mesh: Mesh | AbstractMesh) -> bool:
    """Whether shardings of `mesh` may be asked for in the context of the other."""
    # Meshes whose axes are all Auto do not occur in types, so they cannot disagree.
    if context == mesh or (context.are_all_axes_auto and mesh.are_all_axes_auto):
        return True
    return context.abstract_mesh == mesh.abstract_mesh and AbstractMesh in (type(context), type(mesh))


def operands_for(out_sharding: Any, *operands: Any) -> Any:
    """The operands (trees), between which and a result with `out_sharding` the compiler chooses the shardings.

    They are unchanged if `out_sharding` is None, or if they are not split over explicit axes. Raises `ShardingTypeError`
    if the result is to consist of partial results along an axis along which some operand is whole.
    """
    if out_sharding is None or not any_specs():
        return operands
    for axis in getattr(out_sharding, "spec", out_sharding).unreduced:
        for x in pytree.tree_leaves(operands):
            aval = typeof_value(x)
            if aval and aval.ndim and axis not in reductions_of(aval).unreduced.union(*entries_of(aval)):
                raise ShardingTypeError(
                    f"out_sharding={out_sharding}: {aval.short} is not split over {axis!r}, so that the devices along it "
                    "have no partial results",
                    instead="unreduced axes over which the sum is split",
                    avals=[aval],
                )
    return pytree.tree_map(unsplit, operands)


def lay_out(function: str, x: Any, out_sharding: Any) -> Any:
    """The array `x` with the sharding `out_sharding`; unchanged for None. `function` names the caller in errors.

    Raises the errors of `checked_out_sharding`, and `ShapeError` if an axis cannot be split evenly.

    >>> import phlox
    >>> mesh = phlox.make_mesh((1,), ("x",))
    >>> lay_out("zeros", jnp.zeros(2), phlox.NamedSharding(mesh, phlox.P("x"))).sharding.spec
    P('x',)
    """
    where = checked_out_sharding(function, out_sharding)
    if where is None:
        return x
    # Raises for an axis that does not divide, with the words of `Sharding` and before anything is moved.
    where.shard_shape(typeof(x).shape)
    return reshard(x, where)


_ENTRY = (
    "  out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, by which the result is laid\n"
    "    out; None leaves the choice to the operands and the compiler."
)


def takes_out_sharding(function: F) -> F:
    """Implements the keyword `out_sharding` of `function`, which declares it but does not use it. See `lay_out`.

    >>> mesh = phlox.make_mesh((1,), ("x",))
    >>> twice = takes_out_sharding(lambda x, *, out_sharding=None: 2 * x)
    >>> twice(jnp.ones(2), out_sharding=phlox.NamedSharding(mesh, phlox.P("x"))).sharding.spec
    P('x',)
    """

    @wraps(function)
    def wrapper(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is None:
            return function(*args, **kwargs)
        # Checked first, so that an error does not come after a long computation.
        where = checked_out_sharding(function.__name__, out_sharding)
        args, kwargs = operands_for(where, args, kwargs)
        return lay_out(function.__name__, function(*args, **kwargs), where)

    wrapper.__doc__ = inspect.cleandoc(function.__doc__ or "")
    if _ENTRY not in wrapper.__doc__:  # `docs_from` may have taken it from another function
        # The entry is added at the end of `Args:`, in front of `Returns:`.
        wrapper.__doc__ = wrapper.__doc__.replace("\n\nReturns:", f"\n{_ENTRY}\n\nReturns:", 1)
    return cast(F, wrapper)
