"""`make_mesh`, `set_mesh`, functions that read the mesh of the context, and `reshard`.

The mesh of the context is the flag `mesh`. It is part of cache keys, like all flags that tracing depends on.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..._base import config, pytree
from ..._base.errors import ArgumentError, DeviceError, OptionError, ShapeError, ShardingTypeError
from ..._ir.avals import LAZY_ATTRIBUTES, ShapedArray
from ..._ir.primitive import current_trace
from ..._ir.sharding_types import manual_reductions, reductions_of
from ..._ops.spmd.reshard import apply_sharding
from ..._trace.trace import Tracer, typeof
from ..._xla.array import ArrayImpl
from ..._xla.devices import Device, devices as all_devices
from ..._xla.host_values import as_array
from ..._xla.mesh import AbstractMesh, AxisType, Mesh, current_mesh
from ..._xla.moves import move
from ..._xla.partition_spec import PartitionSpec, UnreducedKind, reductions_in
from ..._xla.sharding import NamedSharding, interned, sharding_of_result

_NO_ABSTRACT_MESH = AbstractMesh((), ())


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of the first available devices, with axes of these lengths and names.

    Args:
      axis_sizes: length of each axis.
      axis_names: name of each axis.
      axis_types: type of each axis; None for `Explicit`, as in JAX. See `AxisType` for its meaning here.
      devices: the devices to choose from, in order; None for all of the default platform.

    Returns:
      A `Mesh` with the first devices in row-major order.

    Raises:
      ArgumentError: `axis_sizes` is no sequence.
      DeviceError: there are too few devices.
      ShapeError: there are more or fewer names than axes, a name occurs twice, or a length is not positive.

    >>> make_mesh((1, 1), ("data", "model")).shape_tuple
    (('data', 1), ('model', 1))
    """
    try:
        shape = tuple(int(n) for n in axis_sizes)
    except TypeError:
        raise ArgumentError(f"make_mesh: axis_sizes={axis_sizes!r} is no sequence of integers") from None
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    there = list(all_devices() if devices is None else devices)
    size = math.prod(shape)
    if any(n <= 0 for n in shape):
        raise ShapeError(f"make_mesh: axis_sizes={shape} has a length that is not positive", shapes=[shape])
    if size > len(there):
        raise DeviceError(
            f"make_mesh: a mesh of shape {shape} takes {size} devices, and there are {len(there)}",
            instead="fewer; or virtual CPU devices by the flag num_cpu_devices, set before the first array",
            wanted=size,
            available=len(there),
        )
    # Explicit by default, as in JAX.
    kinds = (AxisType.Explicit,) * len(shape) if axis_types is None else axis_types
    return Mesh(np.array(there[:size], dtype=object).reshape(shape), names, kinds)


class set_mesh:
    """Sets the mesh of the context: permanently when called, for a block as ``with set_mesh(mesh):``.

    `shard_map` without a mesh is mapped over the mesh of the context, and a `PartitionSpec` of it is accepted in place
    of a sharding. New arrays, and the results of programs whose arguments are committed nowhere, lie on each device of
    the mesh as a whole.

    Args:
      mesh: the mesh; None for none.

    Raises:
      OptionError: `mesh` is no mesh, or has manual axes; or the call is inside of a traced function.

    >>> with set_mesh(make_mesh((1,), ("data",))):
    ...     phlox.device_put(np.ones(2, np.float32), phlox.P("data")).sharding.spec
    P('data',)
    """

    __slots__ = ("_prev_context", "prev_mesh")

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise OptionError(f"set_mesh: {mesh!r} is no Mesh", instead="phlox.make_mesh(shape, names)")
        if mesh is not None and mesh.manual_axes:
            raise OptionError(f"set_mesh: {mesh} contains manual axes", instead="phlox.shard_map, which maps over them")
        # The types of values that are traced already name axes of the old mesh.
        if current_trace.get() is not None:
            raise OptionError("set_mesh: inside of a traced function", instead="around the call of the function")
        settings = config.current()
        self.prev_mesh, self._prev_context = settings.mesh, settings.device_context
        # Two settings: tracing reads `mesh`, and `device_context` says where new arrays go. `use_abstract_mesh` sets
        # only the first.
        config.override(mesh=mesh, device_context=mesh)

    @property
    def prev_abstract_mesh(self) -> AbstractMesh:
        """The axes of the mesh that was set before."""
        return _NO_ABSTRACT_MESH if self.prev_mesh is None else self.prev_mesh.abstract_mesh

    def __enter__(self) -> None:
        # The mesh is set by the constructor, so that ``set_mesh(mesh)`` without a block works too, as in JAX.
        pass

    def __exit__(self, *error: Any) -> None:
        config.override(mesh=self.prev_mesh, device_context=self._prev_context)


def _manual_axis_type(aval: ShapedArray) -> Any:
    """The attribute `manual_axis_type` of a type: the axes `vma` as JAX's object."""
    from .axis_types import ManualAxisType  # here, as that module imports this one

    unreduced, reduced = manual_reductions(aval)
    kind = UnreducedKind[reductions_of(aval).kind] if unreduced else None
    return ManualAxisType(varying=aval.vma, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


# The type is of a lower layer, which cannot import this class: it looks the attribute up here.
LAZY_ATTRIBUTES["manual_axis_type"] = _manual_axis_type


def get_mesh() -> Mesh:
    """The mesh of the context, or a mesh without axes when none is set. That of ``with mesh:`` is not set, as in JAX.

    Returns:
      A `Mesh`; its `empty` is True when none is set.

    >>> with set_mesh(make_mesh((1,), ("data",))):
    ...     get_mesh().axis_names
    ('data',)
    """
    mesh = config.current().mesh
    return mesh if isinstance(mesh, Mesh) else Mesh(np.empty((), dtype=object), ())


def get_abstract_mesh() -> AbstractMesh:
    """The abstract mesh of the context, or one without axes when none is set.

    Returns:
      An `AbstractMesh`; its `empty` is True when none is set.

    >>> get_abstract_mesh().empty
    True
    """
    mesh = config.current().mesh
    return _NO_ABSTRACT_MESH if mesh is None else mesh.abstract_mesh


@contextlib.contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """Makes `mesh` the mesh of the context inside of a ``with`` block; specs then get the devices of the arguments.

    Args:
      mesh: names, lengths and types of axes.

    Returns:
      A context manager.

    Raises:
      OptionError: on entry, when the mesh of the context has another number of devices.

    >>> with use_abstract_mesh(AbstractMesh((2,), ("data",))):
    ...     get_abstract_mesh().shape_tuple
    (('data', 2),)
    """
    # A mesh with devices says more than an abstract one with the same axes, so it stays.
    known = current_mesh()
    if known is not None and not (known.empty or mesh.empty) and known.size != mesh.size:
        raise OptionError(
            f"use_abstract_mesh cannot change the size of the mesh: {mesh} for {mesh.size} devices inside of {known}",
            instead=f"axes whose sizes have the product {known.size}",
        )
    with config.scope(mesh=known if known is not None and known.abstract_mesh == mesh else mesh):
        yield


def named(function: str, sharding: Any) -> Any:
    """`sharding`; a `PartitionSpec` becomes a `NamedSharding` of the mesh of the context, and one of an `AbstractMesh`
    that of this mesh, if the axes are the same."""
    mesh = current_mesh()
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        known = mesh is not None and mesh.abstract_mesh == sharding.mesh
        return interned(sharding.update(mesh=mesh)) if known else sharding
    if not isinstance(sharding, PartitionSpec):
        return sharding
    if mesh is None:
        raise DeviceError(
            f"{function}: {sharding} alone names no devices",
            instead="NamedSharding(mesh, spec), or with phlox.set_mesh(mesh): ... around the call",
        )
    return interned(NamedSharding(mesh, sharding))


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Arrays with the same values and other shardings; inside of traced functions too.

    Args:
      xs: arrays, a tree.
      out_shardings: a `NamedSharding` or a `PartitionSpec` (of the mesh of the context), or a tree of those that is a
        prefix of `xs`.

    Returns:
      A tree like `xs` of arrays of the same shapes and dtypes.

    Raises:
      DeviceError: a `PartitionSpec` is given without a mesh in the context.
      OptionError: a leaf of `out_shardings` is neither a `NamedSharding` nor a `PartitionSpec`.
      ShapeError: a spec has more entries than the array has axes, or an axis does not divide.
      TreeError: `out_shardings` is no prefix of `xs`.

    >>> mesh = make_mesh((1,), ("data",))
    >>> reshard(np.ones(2, np.float32), phlox.NamedSharding(mesh, phlox.P("data")))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = pytree.flatten(xs)
    shardings = pytree.spread("reshard out_shardings", out_shardings, xs, pytree.is_none)
    return tree.unflatten(
        [reshard_array(x, _checked(x, named("reshard", s))) for x, s in zip(leaves, shardings, strict=True)]
    )


def _checked(x: Any, sharding: Any) -> NamedSharding:
    """`sharding`. Raises `ShardingTypeError` if it has partial results of which `x` is no combination."""
    if not isinstance(sharding, NamedSharding):
        raise OptionError(f"reshard: {sharding!r} is neither a NamedSharding nor a PartitionSpec")
    before, after = reductions_of(typeof(x)), reductions_in(sharding.spec)
    new = after.unreduced - before.unreduced
    if (after.kind != "sum" and new) or (after.unreduced and before.unreduced and after.kind != before.kind):
        raise ShardingTypeError(
            f"reshard of {typeof(x).short} to {sharding.spec}: the array is no {after.kind} of what the devices hold",
            instead=f"phlox.lax.reduce_{after.kind}(x, axes, out_sharding=phlox.P(...))",
            avals=[typeof(x)],
        )
    return sharding


def reshard_array(x: Any, sharding: NamedSharding) -> Any:
    """`x` with this sharding."""
    aval = typeof(x)
    if len(sharding.spec) > aval.ndim:
        raise ShapeError(f"reshard: {sharding.spec} has more entries than {aval.short} has axes", spec=sharding.spec)
    # Under a trace a concrete array needs a recorded operation too.
    if isinstance(x, Tracer) or current_trace.get() is not None:
        return apply_sharding(x, sharding)
    x = x if type(x) is ArrayImpl else as_array(x)
    mesh = getattr(x.sharding, "mesh", None)
    # The array brings the devices that an abstract mesh lacks.
    if isinstance(sharding.mesh, AbstractMesh) and mesh is not None and mesh.shape_tuple == sharding.mesh.shape_tuple:
        sharding = sharding.update(mesh=mesh)
    if sharding.kind is None:  # as in a compiled function, where the array stays in its memory
        sharding = sharding.update(memory_kind=x.sharding.kind)
    return move(x, sharding_of_result(sharding, aval.ndim))
