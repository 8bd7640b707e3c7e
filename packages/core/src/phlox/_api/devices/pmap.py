"""`pmap`: one function run by several devices, each on its own slice of the arguments.

It is `shard_map` over a mesh of one axis, jitted with shardings that put each slice on its device.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base import pytree
from ..._base.errors import ArgumentError, AxisSizeError, DeviceError, OptionError
from ..._base.pytree import flatten
from ..._base.wrapping import P, R, wraps
from ..._ir.jaxpr import ClosedJaxpr, axes_used, hoist_consts
from ..._operands.broadcasting import insert_axes
from ..._ops.spmd import shard_map as spmd
from ..._ops.structure.shape import squeeze
from ..._trace.axes import AxisName, axis_env
from ..._trace.staging import stage
from ..._trace.trace import Tracer, typeof
from ..._xla.devices import Device, local_devices, process_count, process_index
from ..._xla.distributed import distributed_state
from ..._xla.mesh import Mesh
from ..._xla.partition_spec import PartitionSpec, spec_along
from ..._xla.sharding import NamedSharding, interned
from ..batching.mapped_sizes import check_sizes
from ..batching.vmap import check_axes, flat_axes
from ..jit import arguments
from ..jit.calling import function_of
from ..jit.jit_function import JitFunction
from ..jit.options import Options, Prefix
from ..jit.user_functions import FlatFunction, check_returned, user_call
from .process_parts import of_this_process, over_all_processes

if TYPE_CHECKING:
    from ..jit.stages import Wrapped

_NO_NAME = "pmap"  # the axis of a pmap that no collective refers to


def pmap(
    fun: Callable[P, R],
    axis_name: AxisName | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Wrapped[P, R]:
    """Runs `fun` on several devices at once, on slices of its arguments along their mapped axis.

    The flag `num_cpu_devices` creates virtual CPU devices. In a distributed program (`phlox.distributed`) each process
    passes and gets the slices of its own devices, and collectives go over the devices of all processes.

    Args:
      fun: function of arrays and pytrees of them. Its arguments are one slice each, without the mapped axis.
      axis_name: a name by which collectives such as `lax.psum` refer to the mapped axis.
      in_axes: the mapped axis of each argument, counted from 0, as for `vmap`; None gives the whole argument to every
        device.
      out_axes: the position of the mapped axis in results; None for results that are the same on all devices.
      static_broadcasted_argnums: positional arguments that are Python values, counted from 0.
      devices: one device for each element of the mapped axis; by default the first available ones. In a distributed
        program those of all processes, the same list in each; by default as many of each process.
      backend: the platform to take devices from; None for the default one.
      axis_size: the length of the mapped axis, in all processes together; needed if no argument has it.
      donate_argnums: positional arguments whose memory may be reused for results.

    Returns:
      A function that is called as `fun` is, with the mapped axis added to its arguments. Its results have the mapped
      axis too, with each slice on its device. It has the methods ``trace`` and ``lower``.

    Raises:
      AxisSizeError: in a call, when mapped arguments disagree on the length, or lack the axis.
      DeviceError: `devices` is empty or has a device twice; or, in a call, when there are too few devices, or a
        function mapped over another mesh is around.
      OptionError: `in_axes` has negative numbers.

    >>> phlox.pmap(lambda x: x / phlox.lax.psum(x, "i"), axis_name="i")(jnp.array([4.0]))
    Array([1.], dtype=float32)
    """
    arguments.check_callable("pmap", fun)
    axes_in = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    check_axes("pmap", in_axes, out_axes)
    if any(a < 0 for a in pytree.tree_leaves(axes_in)):
        raise OptionError(f"pmap: in_axes={in_axes!r} counts from the end", instead="axes counted from the front")
    chosen = None if devices is None else tuple(devices)
    if chosen == ():
        raise DeviceError("pmap: 'devices' argument to pmap must be non-empty, or None.")
    if chosen is not None and len(set(chosen)) < len(chosen):
        raise DeviceError(f"pmap: devices={chosen} has a device twice", instead="one device for each slice")
    function = _ParallelFunction(
        fun=fun,
        axis_name=_NO_NAME if axis_name is None else axis_name,
        in_axes=axes_in,
        out_axes=out_axes,
        statics=arguments.as_ints(static_broadcasted_argnums, "static_broadcasted_argnums"),
        donated=arguments.as_ints(donate_argnums, "donate_argnums"),
        devices=chosen,
        backend=backend,
        axis_size=axis_size,
    )

    @wraps(fun)
    @user_call
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return function(args, kwargs)

    mapped.trace = lambda *args, **kwargs: function.jitted(args, kwargs).trace(*args, **kwargs)  # type: ignore[attr-defined]
    mapped.lower = lambda *args, **kwargs: function.jitted(args, kwargs).lower(*args, **kwargs)  # type: ignore[attr-defined]
    return mapped  # type: ignore[return-value]


@dataclasses.dataclass(eq=False)
class _ParallelFunction:
    """What `pmap` is told, and its jitted function for each number of devices."""

    fun: Callable[..., Any]
    axis_name: AxisName
    in_axes: Any
    out_axes: Any
    statics: tuple[int, ...]
    donated: tuple[int, ...]
    devices: tuple[Device, ...] | None
    backend: str | None
    axis_size: int | None
    # By number of devices: another length of the mapped axis is another mesh.
    compiled: dict[int, Any] = dataclasses.field(default_factory=dict)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # The first test is the cheap one: few programs have several processes.
        if distributed_state() is not None and self.is_shared(args, kwargs):
            return self.in_all_processes(args, kwargs)
        return self.jitted(args, kwargs)(*args, **kwargs)

    # -- arguments

    def static(self, args: Sequence[Any]) -> set[int]:
        """The positions of the static arguments, counted from the front."""
        return {n % len(args) for n in self.statics} if args else set()

    def dynamic(self, args: Sequence[Any]) -> tuple[Any, ...]:
        static = self.static(args)
        return tuple(x for i, x in enumerate(args) if i not in static)

    def dynamic_axes(self, args: Sequence[Any]) -> Any:
        """`in_axes` of the dynamic arguments."""
        # A tree prefix may stop above the arguments, and then says the same for all.
        if not isinstance(self.in_axes, tuple) or len(self.in_axes) != len(args):
            return self.in_axes
        static = self.static(args)
        return tuple(a for i, a in enumerate(self.in_axes) if i not in static)

    def size_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The length of the mapped axis."""
        positional = self.dynamic(args)
        leaves = flatten((positional, kwargs))[0]
        axes = _axes(self.dynamic_axes(args), positional, kwargs)
        # `hasattr` passes for arrays and NumPy arrays; numbers and wrong arguments take the path with names.
        for x, axis in zip(leaves, axes, strict=True):  # the common case, in which no error message is needed
            if axis is not None and not hasattr(x, "shape"):
                break
        else:
            lengths = {x.shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None and a < len(x.shape)}
            if len(lengths) == 1 and (self.axis_size is None or self.axis_size in lengths):
                return lengths.pop()
        return _explained_size(self.fun, positional, kwargs, axes, self.axis_size)

    # -- programs

    def sharding(self, mesh: Mesh, axis: int | None) -> Any:
        # Interned, so that jitted calls compare the sharding by identity.
        return interned(NamedSharding(mesh, spec_along(axis, self.axis_name)))

    def make(self, devices: Sequence[Device], args: tuple[Any, ...]) -> Any:
        """The jitted function over these devices."""
        mesh = Mesh(np.array(devices), (self.axis_name,))

        @wraps(self.fun)
        def over_devices(*args: Any, **kwargs: Any) -> Any:
            return _map(self, args, kwargs, mesh)

        place = functools.partial(self.sharding, mesh)
        shardings = pytree.tree_map(place, self.dynamic_axes(args), is_leaf=pytree.is_none)
        options = Options(
            static_argnums=self.statics,
            donate_argnums=self.donated,
            in_shardings=Prefix.of("in_shardings", (shardings, place(0))),
            # Arguments lie anywhere at first: `pmap` moves them, where `jit` refuses.
            moves_arguments=True,
        )
        return function_of(JitFunction(over_devices, options))

    def jitted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The jitted function for these arguments."""
        # A static argument by name would be taken for an array.
        if self.statics and max(self.statics) >= len(args):
            raise ArgumentError(
                f"pmapped function has static_broadcasted_argnums={self.statics} but was called with only {len(args)} "
                f"positional argument{'s' if len(args) > 1 else ''}. All static broadcasted arguments must be passed "
                "positionally.",
                instead="the static arguments by position",
            )
        size = self.size_of(args, kwargs)
        run = self.compiled.get(size)
        if run is None:
            run = self.compiled[size] = self.make(_devices(size, self.devices, self.backend), args)
        return run

    # -- several processes

    def is_shared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the devices of several processes run this call. A traced call is one of this process alone."""
        if process_count(self.backend) == 1 or any(isinstance(x, Tracer) for x in flatten((args, kwargs))[0]):
            return False
        here = process_index(self.backend)
        return self.devices is None or any(device.process_index != here for device in self.devices)

    def in_all_processes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as one process of several makes it; the program is the same in all."""
        processes = process_count(self.backend)
        positional = self.dynamic(args)
        axes = _axes(self.dynamic_axes(args), positional, kwargs)
        length = None if self.axis_size is None else self.axis_size // processes  # of this process's part
        size = _explained_size(self.fun, positional, kwargs, axes, length)
        devices = _devices_of_all(size, self.devices, self.backend, processes)
        run = self.compiled.get(len(devices))
        if run is None:
            run = self.compiled[len(devices)] = self.make(devices, args)
        mesh = Mesh(np.array(devices), (self.axis_name,))
        leaves, tree = flatten((positional, kwargs))
        parts = [over_all_processes(x, self.sharding(mesh, axis)) for x, axis in zip(leaves, axes, strict=True)]
        positional, named = tree.unflatten(parts)
        static, rest = self.static(args), iter(positional)
        outs = run(*[x if i in static else next(rest) for i, x in enumerate(args)], **named)
        return pytree.tree_map(of_this_process, outs)


def _axes(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
    """The mapped axis of each leaf; keyword arguments are mapped along axis 0."""
    # As in JAX: keyword arguments are always mapped along axis 0.
    named = pytree.tree_structure(kwargs).num_leaves
    return [*flat_axes("pmap in_axes", in_axes, args), *[0] * named]


def _explained_size(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], axes: Sequence[Any], axis_size: int | None
) -> int:
    """The length of the mapped axis; raises an error with a full message if arguments do not agree."""
    leaves = flatten((args, kwargs))[0]
    avals = arguments.check_arrays("pmap", fun, args, kwargs, leaves)
    # In a dict, so that keyword arguments are named as ``kwargs['x']``.
    names = arguments.leaf_names(fun, args, {"kwargs": kwargs})
    described = [(n, a, aval) for n, a, aval in zip(names, axes, avals, strict=True) if a is not None]
    if not described:
        if axis_size is None:
            raise AxisSizeError(
                "pmap requires at least one argument with a mapped axis.", instead="axis_size=...", sizes=[]
            )
        return axis_size
    size = check_sizes(described, "pmap")
    if axis_size is not None and size != axis_size:
        raise AxisSizeError(f"pmap: axis_size is {axis_size}, but mapped axes have length {size}", sizes=described)
    return size


def _devices(size: int, devices: tuple[Device, ...] | None, backend: str | None) -> list[Device]:
    if devices is not None:
        if len(devices) != size:
            raise DeviceError(f"pmap: the mapped axis has length {size}, but {len(devices)} devices were given")
        return list(devices)
    there = local_devices(backend=backend)
    if size > len(there):
        raise DeviceError(
            f"pmap: the mapped axis has length {size}, but there are only {len(there)} devices",
            instead=(
                f"a mapped axis of at most {len(there)}; or, for virtual CPU devices, "
                f"phlox.config.update('num_cpu_devices', {size}) or PHLOX_NUM_CPU_DEVICES={size} before the first array"
            ),
            wanted=size,
            available=len(there),
        )
    return there[:size]


def _devices_of_all(size: int, devices: tuple[Device, ...] | None, backend: str | None, processes: int) -> list[Device]:
    """The devices of a call in several processes, of which `size` belong to this one."""
    if devices is None:
        # As many devices of each process, in the order of the processes.
        return [device for i in range(processes) for device in local_devices(i, backend)[:size]]
    own = sum(device.process_index == process_index(backend) for device in devices)
    if own != size:
        raise DeviceError(
            f"pmap: the mapped axis has length {size} in process {process_index(backend)}, of which {own} devices were "
            "given"
        )
    return list(devices)


def _map(function: _ParallelFunction, args: tuple[Any, ...], kwargs: dict[str, Any], mesh: Mesh) -> Any:
    """The result of the function on all slices: traces it on one slice, and binds `shard_map` over the mesh."""
    fun, name = function.fun, function.axis_name
    positional = function.dynamic(args)
    leaves, in_tree = flatten((positional, kwargs))
    axes = _axes(function.dynamic_axes(args), positional, kwargs)
    static = {i: args[i] for i in function.static(args)}

    def with_statics(rest: Sequence[Any], named: dict[str, Any]) -> Any:
        values = iter(rest)
        return fun(*[static[i] if i in static else next(values) for i in range(len(args))], **named)

    flat = FlatFunction(with_statics, in_tree, user=fun)
    out_dims: list[int | None] = []

    def on_slice(*parts: Any) -> list[Any]:
        # The part of one device has the mapped axis with length 1; the user's function does not see it.
        outs = flat(*[x if a is None else squeeze(x, dimensions=(a,)) for x, a in zip(parts, axes, strict=True)])
        # Known only now: `out_axes` is a prefix of the result.
        out_dims[:] = flat_axes("pmap out_axes", function.out_axes, flat.out_tree)
        return [x if d is None else insert_axes("pmap", x, d) for x, d in zip(outs, out_dims, strict=True)]

    in_specs = tuple(spec_along(a, name) for a in axes)
    avals = [
        spmd.part_aval(typeof(x).with_spec(None), mesh, spec, (name,)) for x, spec in zip(leaves, in_specs, strict=True)
    ]
    manual = spmd.ManualAxes(mesh, (name,), check_vma=False)
    manual.check_nesting("pmap")
    with manual.inside():
        names = functools.partial(arguments.leaf_names, fun, positional, kwargs)
        jaxpr, consts = stage(on_slice, avals, name=arguments.fun_name(fun), arg_names=names)
    check_returned(fun, flat.out_tree)
    closed = ClosedJaxpr(hoist_consts(jaxpr))
    shadowed = name != _NO_NAME and any(known == name for known, *_ in axis_env.get())
    if shadowed and name in axes_used(closed.jaxpr):  # transformations could not tell the two axes apart
        raise OptionError(
            f"pmap: collectives over axis name {name!r}, which is already in use by an outer vmap or pmap",
            instead="another axis_name for one of them",
        )
    specs = (*[PartitionSpec()] * len(consts), *in_specs)
    out_specs = tuple(spec_along(d, name) for d in out_dims)
    outs = manual.bind(closed, [*consts, *leaves], specs, out_specs)
    return flat.out_tree.unflatten(outs)
