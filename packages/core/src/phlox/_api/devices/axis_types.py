"""`auto_axes` and `explicit_axes`, which change the types of mesh axes inside of a function, and a class of JAX that
describes mesh axes in types of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..._base import config, pytree
from ..._base.errors import ArgumentError, OptionError, UnsupportedError
from ..._base.wrapping import wraps
from ..._ir.avals import typeof_value
from ..._ir.sharding_types import Reductions, spec_over
from ..._ops.spmd.reshard import mesh_cast
from ..._transform.sharding_types import reshard_like
from ..._xla.mesh import AbstractMesh, AxisType, Mesh, current_mesh
from ..._xla.partition_spec import PartitionSpec, UnreducedKind
from ..._xla.sharding import NamedSharding
from ..jit import arguments
from .meshes import reshard


@dataclass(frozen=True, kw_only=True)
class ManualAxisType:
    """Along which axes of the mesh a value in a mapped function differs between devices, or is a partial sum.

    >>> ManualAxisType(varying=frozenset("i")).update(reduced=frozenset("j")).varying
    frozenset({'i'})
    """

    varying: frozenset[Any] = frozenset()
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()
    unreduced_kind: UnreducedKind | None = None

    def __post_init__(self) -> None:
        for name in ("varying", "unreduced", "reduced"):
            # Lists and other sets are accepted, and frozen so that objects of this class can be hashed.
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        if self.varying & (self.unreduced | self.reduced):
            raise OptionError(f"{self}: an axis that varies is neither reduced nor unreduced")
        # Partial results are of a sum unless something else is said, as in PartitionSpec, which also checks the kind.
        kind = PartitionSpec(unreduced=self.unreduced, unreduced_kind=self.unreduced_kind).unreduced_kind
        object.__setattr__(self, "unreduced_kind", kind)

    def __repr__(self) -> str:
        names = "varying", "unreduced", "reduced", "unreduced_kind"
        return f"ManualAxisType({', '.join(f'{name}={getattr(self, name)}' for name in names)})"

    @property
    def empty(self) -> bool:
        """True when the value is the same on all devices."""
        return not (self.varying or self.unreduced or self.reduced)

    def invarying(self, mesh: Mesh | AbstractMesh) -> frozenset[Any]:
        """The axes of `mesh` that are mapped over, and along which the value is the same and whole."""
        return frozenset(mesh.manual_axes) - self.varying - self.unreduced - self.reduced

    def update(self, **changes: Any) -> ManualAxisType:
        """A copy with some of the fields replaced."""
        return replace(self, **changes)


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, out_sharding: Any = None
) -> Any:
    """`f` with mesh axes of type `Auto` inside: there the compiler chooses how arrays are split over them.

    Args:
      f: function; None returns a decorator. If `out_sharding` is not given here, calls must pass it.
      axes: the mesh axes, or the one; None for all explicit axes of the mesh.
      out_sharding: a `NamedSharding` or `PartitionSpec`, or a tree of those that is a prefix of the result.

    Returns:
      A function that is called as `f` is and returns the same values. The mesh is that of the context; without one,
      that of a `NamedSharding` in `out_sharding`. Without either it is `f`.

    Raises:
      ArgumentError: in a call, when `out_sharding` is given neither here nor in the call.
      UnsupportedError: in a call inside of `shard_map`, when one of `axes` is mapped there.

    >>> with phlox.set_mesh(phlox.make_mesh((1,), ("i",))):
    ...     auto_axes(lambda x: x + 1, out_sharding=phlox.P("i"))(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    arguments.check_callable("auto_axes", f)

    @wraps(f)
    def automatic(*args: Any, **kwargs: Any) -> Any:
        where = kwargs.pop("out_sharding", None) if out_sharding is None else out_sharding
        if where is None:
            raise ArgumentError("auto_axes: out_sharding is not given")
        named = (s.mesh for s in pytree.tree_leaves(where) if isinstance(s, NamedSharding))
        mesh = current_mesh() or next(named, None)
        if mesh is None:
            return f(*args, **kwargs)
        chosen = _chosen("auto_axes", mesh, axes, mesh.explicit_axes)
        if all(name in mesh.auto_axes for name in chosen):  # as in JAX, which then ignores `out_sharding`
            return f(*args, **kwargs)
        # The types of the arguments are changed first, or operations inside would see axes that are not explicit there.
        args, kwargs = _drop_axes((args, kwargs), chosen)
        with config.scope(mesh=_with_types(mesh, chosen, AxisType.Auto)):
            out = f(*args, **kwargs)
        # After the block: the axes of the result are explicit again only outside of it.
        return reshard(out, where)

    return automatic


def _chosen(function: str, mesh: Mesh | AbstractMesh, axes: Any, default: tuple[Any, ...]) -> tuple[Any, ...]:
    """The axes whose types `function` changes. Raises `UnsupportedError` if one is manual."""
    names = default if axes is None else axes if isinstance(axes, tuple) else (axes,)
    if manual := [name for name in names if name in mesh.manual_axes]:
        raise UnsupportedError(
            f"{function}: {manual} are manual here. Going from `Manual` to `Auto` or `Explicit` is not possible",
            instead="axes that shard_map does not map",
        )
    return names


def _with_types(mesh: Mesh | AbstractMesh, axes: tuple[Any, ...], kind: AxisType) -> Mesh | AbstractMesh:
    kinds = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return mesh.update(axis_types=tuple(kind if name in axes else old for name, old in kinds))


def _drop_axes(tree: Any, axes: tuple[Any, ...]) -> Any:
    """Casts the arrays of a tree to types without `axes`. Partial results along them are combined."""

    def cast(x: Any) -> Any:
        aval = typeof_value(x)
        if aval is None or aval.spec is None:
            return x
        unreduced, reduced, kind = aval.spec.reductions
        if unreduced.intersection(axes):
            rest = Reductions(unreduced.difference(axes), reduced, kind)
            x = reshard_like(x, aval.with_spec(spec_over(aval.spec.mesh, aval.spec.entries, rest)))
        named = reduced.union(*aval.spec.entries, unreduced)
        return x if named.isdisjoint(axes) else mesh_cast(x, axes=axes)

    return pytree.tree_map(cast, tree)


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: str | tuple[str, ...] | None = None, in_sharding: Any = None
) -> Any:
    """`f` with mesh axes of type `Explicit` inside: there the types of arrays say how they are split over them.

    Args:
      f: function; None returns a decorator. If `in_sharding` is not given here, calls must pass it.
      axes: the mesh axes, or the one; None for all Auto axes of the mesh of the context.
      in_sharding: a `NamedSharding` or `PartitionSpec`, or a tree of those that is a prefix of the positional
        arguments.

    Returns:
      A function that is called as `f` is and returns the same values.

    Raises:
      ArgumentError: in a call, when `in_sharding` is given neither here nor in the call.
      OptionError: in a call, when there is no mesh in the context.
      UnsupportedError: in a call inside of `shard_map`, when one of `axes` is mapped there.

    >>> with phlox.set_mesh(phlox.make_mesh((1,), ("i",))):
    ...     explicit_axes(lambda x: x + 1, in_sharding=phlox.P("i"))(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    arguments.check_callable("explicit_axes", f)

    @wraps(f)
    def explicit(*args: Any, **kwargs: Any) -> Any:
        where = kwargs.pop("in_sharding", None) if in_sharding is None else in_sharding
        if where is None:
            raise ArgumentError("explicit_axes: in_sharding is not given")
        mesh = current_mesh()
        if mesh is None:
            raise OptionError("explicit_axes: no mesh in the context", instead="with phlox.set_mesh(mesh): ...")
        chosen = _chosen("explicit_axes", mesh, axes, mesh.auto_axes)
        with config.scope(mesh=_with_types(mesh, chosen, AxisType.Explicit)):
            # Inside of the block, since only there the axes are explicit and may be named.
            out = f(*reshard(args, where), **kwargs)
        return _drop_axes(out, chosen)

    return explicit
