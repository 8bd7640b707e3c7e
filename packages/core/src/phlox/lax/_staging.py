"""Functions that instruct the compiler: barriers, sinks, named composites, platform branches, sharding constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._api.devices.meshes import get_abstract_mesh, named, reshard
from .._api.devices.transfers import device_put
from .._api.jit.user_functions import user_call
from .._base import pytree
from .._base.errors import ArgumentError, OptionError, ShardingAssertionError, ShardingTypeError, UnexpectedTracerError
from .._base.pytree import flatten
from .._base.wrapping import wraps
from .._ir.jaxpr import ClosedJaxpr, hoist_consts
from .._ir.sharding_types import entries_of
from .._operands.checks import check, check_one
from .._ops.control import barrier
from .._ops.control.composite import attribute, composite as composite_p
from .._ops.spmd.reshard import layout_constraint
from .._trace.staging import stage as record
from .._trace.trace import Tracer, typeof
from .._xla.layout import Format, Layout
from .._xla.partition_spec import UNCONSTRAINED, axes_of, entries_for
from .._xla.sharding import NamedSharding, Sharding
from ..typing import Array, ArrayLike
from ._branches import choice


def optimization_barrier(operand: Any, /) -> Any:
    """A pytree of arrays unchanged, as a barrier to the compiler's optimizations (StableHLO's
    ``optimization_barrier``).

    In a compiled program, what reads the result begins after all of it is there. The barrier also keeps the compiler
    from seeing that something is computed twice.

    Args:
      operand: pytree of arrays.

    Returns:
      A pytree like `operand`, with the same values.

    >>> optimization_barrier((np.float32(1), [np.int32(2)]))
    (Array(1., dtype=float32), [Array(2, dtype=int32)])
    """
    leaves, tree = flatten(operand)
    return tree.unflatten(barrier.optimization_barrier.bind(*check("optimization_barrier", *leaves)))


def stage(x: ArrayLike, /) -> Array:
    """`x` as a value of the program that is being traced, or as an array (as ``jax.lax.stage``).

    Args:
      x: array or number.

    Returns:
      An array of the value, shape and dtype of `x`.

    >>> stage(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return barrier.stage.bind(*check("stage", x))


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Makes a pytree of arrays count as used, so that transformations do not drop what computes it (as
    ``jax.lax.dce_sink``).

    Args:
      val: pytree of arrays.
      prevent_mlir_dce: whether to keep the compiler from removing the computation too; this calls a foreign function
        ``dce_sink``, which must be registered.

    >>> len(phlox.make_jaxpr(lambda x: dce_sink(x + 1))(1.0).eqns)
    2
    """
    for leaf in check("dce_sink", *pytree.tree_leaves(val)):
        barrier.dce_sink.bind(leaf, prevent_mlir_dce=bool(prevent_mlir_dce))


@user_call
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The result of the function for the platform that the program is compiled for (as ``jax.lax.platform_dependent``).

    All of them are traced; only one becomes part of the compiled program.

    Args:
      *args: arguments passed to the function, pytrees of arrays.
      default: function for all other platforms; None means that compilation for them fails.
      **per_platform: functions by platform name: ``cpu=``, ``cuda=``, ``rocm=``, ``tpu=``.

    Returns:
      The result of the function for the platform, a pytree of arrays; all functions return the same structure, shapes
      and dtypes.

    Raises:
      ArgumentError: there is no function, or one is not callable.
      OptionError: a platform is called ``gpu``.
      TreeError: the structures of results differ.
      ShapeError: the shapes of results differ.
      DtypeError: the dtypes of results differ.
      UnsupportedError: there is no function for the platform.

    >>> platform_dependent(2.0, cuda=lambda x: -x, default=lambda x: x * 3)
    Array(6., dtype=float32, weak_type=True)
    """
    for name, branch in per_platform.items():
        if not callable(branch):
            raise ArgumentError(f"platform_dependent: {name}={branch!r} is no function")
        if name == "gpu":
            raise OptionError("platform_dependent: gpu", instead="cuda or rocm")
    if default is not None and not callable(default):
        raise ArgumentError(f"platform_dependent: default={default!r} is no function")
    # A function that several platforms share is traced once.
    joined: dict[Callable[..., Any], list[str]] = {}
    for name, branch in per_platform.items():
        joined.setdefault(branch, []).append(name)
    platforms: list[tuple[str, ...] | None] = [tuple(names) for names in joined.values()]
    branches = list(joined)
    if default is not None:
        platforms.append(None)
        branches.append(default)
    if not branches:
        raise ArgumentError("platform_dependent needs a function", instead="default=...")
    roles = [f"the branch for {' and '.join(names)}" if names else "default" for names in platforms]
    if len(branches) == 1 and default is None:  # other platforms must be refused when lowering, so keep the choice
        branches, roles = branches * 2, roles * 2
    index = barrier.platform_index.bind(platforms=tuple(platforms))
    return choice("platform_dependent", branches, roles, index, args)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """`decomposition` as a named operation, which a compiler may replace by its own implementation (StableHLO's
    ``composite``).

    Derivatives and `vmap` take the decomposition.

    Args:
      decomposition: function of arrays that defines the operation; its keyword arguments, Python values, become
        attributes of the operation.
      name: name of the operation, such as ``"my.tangent"``.
      version: version number of the operation's definition.

    Returns:
      A function with the arguments and results of `decomposition`. It raises `UnexpectedTracerError` for attributes
      that are traced, and `ArgumentError` for those that cannot be written and for a name without a namespace.

    >>> import functools
    >>> import phlox.lax as lax
    >>> tangent = functools.partial(composite, name="my.tangent")(lambda x: lax.sin(x) / lax.cos(x))
    >>> tangent(np.float32(0.0))
    Array(0., dtype=float32)
    """

    @wraps(decomposition)
    def call(*args: Any, **attributes: Any) -> Any:
        # None is an attribute that is left out: StableHLO has no value for it, and the decomposition still gets it.
        present = {key: value for key, value in attributes.items() if value is not None}
        for key, value in present.items():
            if any(isinstance(leaf, Tracer) for leaf in pytree.tree_leaves(value)):
                raise UnexpectedTracerError(
                    f"composite {name!r}: the attribute {key} is a traced value",
                    instead="a positional argument, or a NumPy array",
                )
        written = ", ".join(f"{key} = {attribute(key, value)}" for key, value in present.items())
        leaves, in_tree = flatten(args)
        arrays = check(f"composite {name}", *leaves)
        out_tree: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, tree = flatten(decomposition(*in_tree.unflatten(xs), **attributes))
            out_tree.append(tree)
            return check(f"composite {name}", *outs)

        jaxpr, consts = record(flat, [typeof(x) for x in arrays], name=name)
        closed = ClosedJaxpr(hoist_consts(jaxpr))
        outs = composite_p.bind(*consts, *arrays, jaxpr=closed, name=name, version=int(version), attributes=written)
        return out_tree[0].unflatten(outs)

    return call


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Arrays with a constraint on their sharding over the devices of a mesh, mainly inside compiled functions (as
    ``jax.lax.with_sharding_constraint``).

    Args:
      x: pytree of arrays.
      shardings: required sharding: a `NamedSharding`, a `PartitionSpec` (of the mesh of the context), the sharding of a
        single device, a `Format`, or a pytree of these that is a prefix of `x`.

    Returns:
      A pytree like `x`, with the same values.

    Raises:
      ArgumentError: an entry is not a sharding.
      DeviceError: a `PartitionSpec` is given, and there is no mesh in the context.
      ShapeError: a spec has more entries than the array has axes.
      ShardingTypeError: a spec names `Explicit` axes of the mesh.
      ShardingAssertionError: all axes of the mesh of the context are `Explicit`, and the array is split otherwise.

    >>> mesh = phlox.sharding.Mesh(phlox.devices()[:1], "x")
    >>> with_sharding_constraint(np.ones(2, np.float32), phlox.NamedSharding(mesh, phlox.P("x")))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten(x)
    leaf_shardings = pytree.spread("with_sharding_constraint shardings", shardings, x, pytree.is_none)
    return tree.unflatten([_constrained(leaf, s) for leaf, s in zip(leaves, leaf_shardings, strict=True)])


def _constrained(x: Any, leaf_sharding: Any) -> Any:
    if isinstance(leaf_sharding, Format):
        if leaf_sharding.sharding is not None:
            x = _constrained(x, leaf_sharding.sharding)
        if not isinstance(leaf_sharding.layout, Layout):  # None and `Layout.AUTO` leave it to the compiler
            return x
        return layout_constraint(x, major_to_minor=tuple(leaf_sharding.layout.major_to_minor))
    sharding = named("with_sharding_constraint", leaf_sharding)
    if not isinstance(sharding, Sharding):
        raise ArgumentError(
            f"with_sharding_constraint: {leaf_sharding!r} is no sharding", instead="NamedSharding(mesh, spec)"
        )
    if isinstance(sharding, NamedSharding):
        return _over_auto_axes(x, sharding)
    x = check_one("with_sharding_constraint", x)
    return device_put(x, sharding)


def _over_auto_axes(x: Any, sharding: NamedSharding) -> Any:
    """`x` with `sharding`, beside the explicit axes that its type is split over. Over these alone it asserts."""
    aval, spec, explicit = typeof(x), sharding.spec, sharding.mesh.explicit_axes
    split = entries_of(aval)
    if get_abstract_mesh().are_all_axes_explicit:
        pairs = zip(spec, split, strict=False)
        if any(split[len(spec) :]) or any(e is not UNCONSTRAINED and axes_of(e) != have for e, have in pairs):
            raise ShardingAssertionError(
                "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`: "
                f"{spec} for an array of type {aval.short}",
                instead="phlox.reshard(x, spec)",
                avals=[aval],
            )
        return x
    manual = get_abstract_mesh().manual_axes
    if mapped := [axis for entry in spec for axis in axes_of(entry) if axis in manual]:
        raise ShardingTypeError(
            f"with_sharding_constraint: {spec} contains the manual axis {mapped[0]!r} of mesh {sharding.mesh}, over "
            "which the function around is mapped",
            instead="the other axes",
            avals=[aval],
        )
    if any(axis in explicit for entry in spec for axis in axes_of(entry)):
        raise ShardingTypeError(
            f"with_sharding_constraint can only refer to Auto axes of the mesh, and {spec} refers to Explicit ones of "
            f"{sharding.mesh}",
            instead="phlox.reshard(x, sharding)",
            avals=[aval],
        )
    if any(split) and len(spec) <= aval.ndim:
        entries = entries_for(spec, aval.ndim)
        merged = [(*have, *axes_of(entry)) if have else entry for have, entry in zip(split, entries, strict=True)]
        sharding = sharding.update(spec=spec.update(partitions=merged))
    return reshard(x, sharding)
