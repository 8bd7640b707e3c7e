"""`out_sharding`, the option of many functions that sets the sharding of their result.

A function implements it in one of two ways: the decorator `takes_out_sharding` handles the keyword, or its body begins
with `operands_for` and ends with `lay_out`. Either way the function computes on operands whose types say nothing of
explicit axes, so that nothing in it can be ambiguous, then reshards the result as `phlox.reshard` does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from ..._base import pytree
from ..._base.errors import ArgumentError, OptionError
from ..._base.wrapping import wraps
from ..._ir.avals import typeof_value
from ..._ir.sharding_types import OUT_SHARDING, RESHARD, any_specs, entries_of, reductions_of, refuse
from ..._trace.trace import typeof
from ..._transform.sharding_types import unsplit
from ..._xla.mesh import AbstractMesh, AxisType, Mesh, current_mesh
from ..._xla.partition_spec import PartitionSpec, axes_of, reductions_in
from ..._xla.sharding import NamedSharding
from .meshes import named, reshard_array

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
            f"PartitionSpec passed to {function} cannot contain axis names of type Auto or Manual, and "
            f"out_sharding={where.spec} names {hidden}",
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

    They are unchanged if `out_sharding` is None, or if they are not split over explicit axes.
    """
    if out_sharding is None or not any_specs():
        return operands
    return pytree.tree_map(unsplit, operands)


def compute_with_sharding(
    name: str,
    function: Callable[..., Any],
    operands: Sequence[Any],
    out_sharding: Any,
    combines: str | None = "sum",
    **options: Any,
) -> Any:
    """``function(*operands, **options)`` with `out_sharding`; `name` names the caller in errors.

    If `out_sharding` has partial results, each device computes that of its parts of the operands. Their combination by
    `combines`, "sum", "max" or "min", must be what the function computes of the whole operands. None: it is not known.

    Raises the errors of `lay_out`, and `ShardingTypeError` if the function does not reduce over the unreduced axes.
    """
    where = checked_out_sharding(name, out_sharding)
    compute = functools.partial(function, **options)
    out = None if where is None else _compute_on_parts(name, compute, operands, where, combines)
    return lay_out(name, compute(*operands_for(where, *operands)) if out is None else out, where)


def _compute_on_parts(
    name: str, compute: Callable[..., Any], operands: Sequence[Any], where: NamedSharding, combines: str | None
) -> Any:
    """``compute(*operands)``, of which each device computes its part, or its partial result. None if it needs more than
    its parts of the operands."""
    unreduced, kind = where.spec.unreduced, reductions_in(where.spec).kind
    avals = [aval for aval in map(typeof_value, operands) if aval is not None]
    split = [frozenset().union(*entries_of(a)) for a in avals]
    if unreduced and (kind != combines or not all(map(unreduced.issubset, split))):
        refuse(name, f"it is no {kind} over what all operands have split over {_names(unreduced)}", avals, OUT_SHARDING)
    if any(reductions_of(a).unreduced for a in avals):
        if unreduced:
            refuse(name, "an operand is unreduced", avals, RESHARD)
        return None
    if combines != "sum":
        return None
    entries = tuple(map(axes_of, where.spec))
    # Along these axes each device has the whole of one operand, and parts of the others and of the result. A cotangent
    # of that operand consists of partial results, which the compiler would combine at once.
    reduced = [reductions_of(a).reduced for a in avals]
    local = frozenset().union(*entries).intersection(frozenset().union(*reduced), *map(frozenset.union, split, reduced))
    if not (unreduced or local):
        return None
    from ..._ops.spmd.parts import map_parts  # here: only programs over explicit axes need it

    out = map_parts(compute, operands, entries, unreduced, unreduced | local)
    if out is None and unreduced:
        refuse(name, f"it does not sum over what is split over {_names(unreduced)}", avals, OUT_SHARDING)
    return out


def _names(axes: frozenset[Any]) -> str:
    return ", ".join(sorted(map(repr, axes)))


def lay_out(function: str, x: Any, out_sharding: Any) -> Any:
    """The array `x` with the sharding `out_sharding`; unchanged for None. `function` names the caller in errors.

    Raises the errors of `checked_out_sharding`, and `ShapeError` if an axis cannot be split evenly.

    >>> mesh = phlox.make_mesh((1,), ("x",))
    >>> lay_out("zeros", jnp.zeros(2), phlox.NamedSharding(mesh, phlox.P("x"))).sharding.spec
    P('x',)
    """
    where = checked_out_sharding(function, out_sharding)
    if where is None:
        return x
    # Raises for an axis that does not divide, with the words of `Sharding` and before anything is moved.
    where.shard_shape(typeof(x).shape)
    return reshard_array(x, where)


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
