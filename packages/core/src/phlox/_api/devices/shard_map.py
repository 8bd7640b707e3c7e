"""`shard_map`: a function run by each device of a mesh on its part of the arguments; `smap`: the same for one axis.

The function is traced on one part, and becomes a parameter of the primitive of `_ops.spmd`. The whole is jitted, so
that eager calls find the compiled program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from typing import Any, NamedTuple

from ..._base import pytree
from ..._base.errors import ArgumentError, DeviceError, OptionError, PhloxError, ShapeError
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import wraps
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, hoist_consts
from ..._ir.primitive import current_trace
from ..._ir.sharding_types import entry_of
from ..._ops.spmd import shard_map as spmd
from ..._trace.refs import AbstractRef, Ref, values, write_all
from ..._trace.staging import stage
from ..._trace.trace import Tracer, typeof
from ..._xla.mesh import AbstractMesh, Mesh, current_mesh
from ..._xla.partition_spec import PartitionSpec, axes_of, check_spec, spec_along, tiles
from ..._xla.sharding import NamedSharding
from ..jit import arguments
from ..jit.calling import function_of
from ..jit.inlining import Inline
from ..jit.jit_function import JitFunction
from ..jit.options import Options, Prefix
from ..jit.references import check_distinct, find_refs, names_of_refs, replaced
from ..jit.user_functions import FlatFunction, user_call


class InferFromArgs:
    """The class of `Infer`, which stands for the specs of the arguments' own shardings."""

    def __repr__(self) -> str:
        return "phlox.sharding.Infer"

    # Pickled by name, so that the one object `Infer` stays one.
    def __reduce__(self) -> str:
        return "Infer"


Infer = InferFromArgs()


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: AbstractSet[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Runs `f` on every device of a mesh, each on its own part of the arguments.

    Args:
      f: function of arrays, references and trees of them. Its arguments are the parts, and collectives in it name axes
        of the mesh. What it writes to references is written to the parts of the whole ones. None returns a decorator.
      out_specs: a tree prefix of the result with a `PartitionSpec` for each, by which the devices' results are put
        together. Along mesh axes that a spec does not name, all devices must have the same result.
      in_specs: a tree prefix of the tuple of arguments with a `PartitionSpec` for each, by which it is split into
        parts; None for arguments that are Python values. By default an argument is split by its own sharding, which
        must be of this mesh.
      mesh: the devices; None for the mesh of the context, see `set_mesh`.
      axis_names: the mesh axes that `f` is mapped over; by default all over which no outer `shard_map` maps. Shardings
        along the others are left to the compiler.
      check_vma: whether types track along which mesh axes values vary (``phlox.typeof(x).vma``). Then a result that may
        differ between devices must be split by its spec, and gradients inside of `f` with respect to a value that is
        equal on all devices are summed up over them. With False none of this is checked or done.

    Returns:
      A function of whole arrays, which takes positional arguments only. A result whose part has length n along an axis
      that is split over k devices has length k * n there.

    Raises:
      ArgumentError: `axis_names` is no set; or, in a call, when a leaf of the specs is no `PartitionSpec`, or an
        argument is passed by name.
      DeviceError: in a call, when there is no mesh, or a function mapped over another mesh is around.
      OptionError: in a call, when `axis_names` has a name that is no axis of the mesh, or a result may differ between
        devices along an axis that its spec does not name.
      ShapeError: in a call, when an axis cannot be split evenly, or a spec is too long or names an axis that the mesh
        lacks.
      TreeError: in a call, when specs are no prefix of the arguments or the result.

    >>> mesh = phlox.make_mesh((1,), ("i",))
    >>> total = phlox.shard_map(lambda x: phlox.lax.psum(x, "i"), mesh=mesh, in_specs=phlox.P("i"), out_specs=phlox.P())
    >>> total(np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    if isinstance(axis_names, str) or not isinstance(axis_names, Iterable):
        raise ArgumentError(
            f"shard_map: axis_names={axis_names!r} is no set",
            instead=f"axis_names={{{axis_names!r}}}",
            axis_names=axis_names,
        )
    mapping = _Mapping("shard_map", mesh, in_specs, out_specs, frozenset(axis_names), check_vma)
    return mapping.of if f is None else mapping.of(f)


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: int | InferFromArgs | tuple[Any, ...] | None = Infer,
    out_axes: Any,
    axis_name: Any,
) -> Any:
    """`shard_map` along one axis of the mesh of the context, with array axes in place of specs, as for `vmap`.

    Args:
      f: function of the parts of one device. None returns a decorator.
      in_axes: the axis along which each argument is split, counted from 0 (None: not split); an int for all, or a
        tuple.
      out_axes: the axis along which results are put together; a tree prefix of the result.
      axis_name: the axis of the mesh.

    Returns:
      A function of whole arrays, which takes positional arguments only.

    Raises:
      ArgumentError: `axis_name` is not one name, or `in_axes` or `out_axes` has leaves that are no axes.
      DeviceError: in a call, when there is no mesh in the context.

    >>> with phlox.set_mesh(phlox.make_mesh((1,), ("i",))):
    ...     smap(lambda x: x + phlox.lax.axis_index("i"), in_axes=0, out_axes=0, axis_name="i")(np.arange(2))
    Array([0, 1], dtype=int32)
    """
    if isinstance(axis_name, list | tuple):
        # Two names would be two axes, whose order in `out_axes` is not defined.
        raise ArgumentError(f"smap: axis_name={axis_name!r} is not one name", instead="one smap inside of another")
    if in_axes is not Infer and not (in_axes is None or isinstance(in_axes, int | tuple)):
        raise ArgumentError(f"smap: in_axes={in_axes!r} is neither an integer, nor None, nor a tuple of those")
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if axes is not Infer and not all(isinstance(a, int) for a in pytree.tree_leaves(axes)):
            raise ArgumentError(f"smap: {what}={axes!r} holds something that is neither an integer nor None")

    def specs(axes: Any) -> Any:
        along = functools.partial(spec_along, name=axis_name)
        return axes if axes is Infer else pytree.tree_map(along, axes, is_leaf=pytree.is_none)

    mapping = _Mapping("smap", None, specs(in_axes), specs(out_axes), frozenset([axis_name]), True)
    return mapping.of if f is None else mapping.of(f)


class _Mapping(NamedTuple):
    """The arguments of `shard_map`, or of `smap`, which `function` names; `names` are the axes to map over, or no axes
    for all."""

    function: str
    mesh: Any
    in_specs: Any
    out_specs: Any
    names: frozenset[Any]
    check_vma: bool

    def of(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The mapped function."""
        function = self.function
        arguments.check_callable(function, f)
        compiled: dict[Any, Callable[..., Any]] = {}

        @wraps(f)
        @user_call
        def mapped(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                got = f"{function}: {arguments.fun_name(f)} got {', '.join(kwargs)}"
                raise ArgumentError(
                    f"{got} by name, but in_specs are by position",
                    instead="positional arguments; or functools.partial, which binds a value that is not split",
                )
            here = self.in_context()
            leaves, in_tree = flatten(args)
            ref_leaves = find_refs(leaves)
            refs = [leaves[i] for i in ref_leaves]
            check_distinct(f"{arguments.fun_name(f)} for {function}", refs, names=lambda: names_of_refs(f, args, {}))
            leaves = replaced(leaves, ref_leaves, values(refs)) if refs else leaves
            here.check_meshes(leaves)
            specs = here.specs_of(args, leaves)
            fixed = tuple(x for x, spec in zip(leaves, specs, strict=True) if spec is None)
            is_eager = current_trace.get() is None
            # Only eager calls have `out_shardings`, see below, so a traced call must not take their function.
            # The class, because 1 == 1.0 == True.
            key: Any = (here.mesh, is_eager, in_tree, tuple(specs), ref_leaves, tuple((type(x), x) for x in fixed))
            try:
                run = compiled.get(key)
            except Exception:  # a static argument cannot be hashed
                key, run = None, None
            if run is None:
                if refs:
                    # The last values of references are results after those of `f`, split as the arguments are.
                    here = here._replace(out_specs=(here.out_specs, [specs[i] for i in ref_leaves]))
                of_parts = _on_references(f, in_tree, ref_leaves) if refs else f
                # Inlined in an outer trace, where the equation of `shard_map` alone is recorded.
                out_shardings = Prefix.of("out_shardings", here.out_shardings() if is_eager else None)
                options = Options(inline=Inline.JAX_EARLY, out_shardings=out_shardings)
                run = function_of(JitFunction(_Program(here, of_parts, in_tree, specs, fixed), options))
                if key is not None:
                    compiled[key] = run
            outs = run(*[x for x, spec in zip(leaves, specs, strict=True) if spec is not None])
            if not refs:
                return outs
            write_all(refs, outs[1])
            return outs[0]

        return mapped

    def in_context(self) -> _Mapping:
        """The same over the mesh of the context, if that has the devices, and without axes mapped already."""
        mesh, context = self.mesh, current_mesh()
        if mesh is None or isinstance(mesh, AbstractMesh):
            if context is None and mesh is None:
                raise DeviceError(f"{self.function}: no mesh", instead="mesh=..., or with phlox.set_mesh(mesh): ...")
            if context is not None and mesh is not None and mesh.shape_tuple != context.shape_tuple:
                raise DeviceError(f"{self.function}: {mesh} is not the mesh of the context, {context}", mesh=mesh)
            # The mesh of the context has devices, an abstract one only axes.
            mesh = context or mesh  # an abstract mesh gets the devices of the arguments
        elif not isinstance(mesh, Mesh):
            raise ArgumentError(
                f"{self.function}: mesh={mesh!r:.60} is no mesh", instead="phlox.make_mesh(shape, names)"
            )
        unknown = self.names - set(mesh.axis_names)
        if unknown:
            name = sorted(map(repr, unknown))[0]
            raise OptionError(f"{self.function}: axis_names has {name}, which is no axis of {mesh}")
        names = self.names
        # An outer `shard_map` maps over its manual axes already.
        if mesh.manual_axes:
            names = (names or frozenset(mesh.axis_names)).difference(mesh.manual_axes)
        return self._replace(mesh=mesh, names=names)

    def check_meshes(self, leaves: Sequence[Any]) -> None:
        """Raises `DeviceError` if an argument is split over another mesh than this one, which has no devices of its
        own."""
        if not isinstance(self.mesh, AbstractMesh):
            return
        for x in leaves:
            sharding = None if isinstance(x, Tracer) else getattr(x, "sharding", None)
            if isinstance(sharding, NamedSharding) and sharding.mesh.shape_tuple != self.mesh.shape_tuple:
                raise DeviceError(
                    f"{self.function}: Mesh shape of the input {sharding.mesh} does not match the mesh shape passed to "
                    f"{self.function}: {self.mesh}",
                    instead="one mesh; or phlox.device_put(x, phlox.NamedSharding(mesh, spec)) first",
                    mesh=self.mesh,
                )

    def check(self, what: str, spec: Any) -> PartitionSpec:
        """`spec`, a leaf of the argument `what`. Raises if it cannot be one."""
        function, names = self.function, self.names
        if not isinstance(spec, PartitionSpec):
            raise ArgumentError(f"{function}: {what} has {spec!r}, which is no PartitionSpec", instead="phlox.P(...)")
        if PartitionSpec.UNCONSTRAINED in spec:
            raise OptionError(f"{function}: {what} has {spec}", instead="None for an axis that is not split")
        check_spec(self.mesh, spec)
        outside = [axis for entry in spec for axis in axes_of(entry) if names and axis not in names]
        if outside:
            raise OptionError(f"{function}: {what} names axis {outside[0]!r}, which axis_names={set(names)} has not")
        return spec

    def out_shardings(self) -> Any:
        """The shardings of the results of an eager call, which have the specs as the user wrote them, also ``P(None)``.

        None if the compiler chooses along some axes, or if there is a mistake, which is reported after the function is
        traced.
        """
        if isinstance(self.mesh, AbstractMesh) or (self.names and self.names != set(self.mesh.axis_names)):
            return None
        try:
            return pytree.tree_map(lambda spec: NamedSharding(self.mesh, self.check("out_specs", spec)), self.out_specs)
        except PhloxError:
            return None

    def specs_of(self, args: tuple[Any, ...], leaves: Sequence[Any]) -> list[PartitionSpec | None]:
        """The spec of each leaf of the arguments, or None for Python values; raises if one does not fit."""
        # As the types of the arguments say. Only Explicit axes are in types.
        if self.in_specs is Infer:
            return list(map(self._own_spec, leaves))
        instead = "a tuple with one spec for each argument, or trees that stop above the leaves"
        specs = pytree.spread(f"{self.function} in_specs", self.in_specs, args, pytree.is_none, instead)
        paths = pytree.named_paths(pytree.tree_structure(args), args)
        for path, x, spec in zip(paths, leaves, specs, strict=True):
            if spec is not None:
                self._check_part(f"args{pytree.keystr(path)}", self.check("in_specs", spec), typeof(x))
        return specs

    def _check_part(self, name: str, spec: PartitionSpec, aval: ShapedArray) -> None:
        if len(spec) > aval.ndim:
            raise _too_long(self.function, "in_specs", spec, name, aval)
        for axis, (size, count) in enumerate(zip(aval.shape, tiles(self.mesh, spec, aval.ndim), strict=True)):
            if size % count:
                raise ShapeError(
                    f"{self.function}: axis {axis} of {name} ({aval.short}) cannot be split evenly into {count} parts",
                    instead=f"a length that is a multiple of {count}",
                    spec=spec,
                )

    def _own_spec(self, x: Any) -> PartitionSpec:
        """The spec of an argument's own sharding along the mapped axes; unsplit if it is of another mesh."""
        mesh, over = self.mesh, frozenset(self.names or self.mesh.axis_names)
        # An axis that types do not mention cannot be inferred.
        for name in self.names or mesh.axis_names:
            if name not in mesh.explicit_axes:
                raise ArgumentError(
                    f"{self.function}: without in_specs, and axis {name!r} of {mesh} is not Explicit",
                    instead="in_specs=...",
                )
        spec = typeof(x).spec
        if spec is None or spec.mesh.shape_tuple != mesh.shape_tuple:
            return PartitionSpec()
        entries = [tuple(axis for axis in entry if axis in over) for entry in spec.entries]
        unreduced, reduced, _ = spec.reductions
        return PartitionSpec(*map(entry_of, entries), unreduced=unreduced & over, reduced=reduced & over)


def _on_references(f: Callable[..., Any], in_tree: PyTreeDef, refs: Sequence[int]) -> Callable[..., Any]:
    """`f` for parts of arrays alone: the leaves numbered `refs` become references, whose last values it returns too."""

    @wraps(f)
    def of_arrays(*parts: Any) -> Any:
        leaves, _ = flatten(parts)
        inside = [Ref(AbstractRef(typeof(leaves[i])), leaves[i]) for i in refs]
        return f(*in_tree.unflatten(replaced(leaves, refs, inside))), values(inside)

    return of_arrays


def _too_long(function: str, what: str, spec: PartitionSpec, name: str, aval: ShapedArray) -> ShapeError:
    return ShapeError(
        f"{function}: {what} has {spec}, which has length {len(spec)}, for {name} of type {aval.short}, which has rank "
        f"{aval.ndim}",
        instead="" if aval.ndim else f"consider using an {what} entry of `P()`",
        spec=spec,
    )


class _Program:
    """The function of whole arrays that is jitted: traces `f` on parts, and binds `shard_map`.

    `specs` are those of the leaves of the arguments, None for those of `fixed`.
    """

    def __init__(
        self,
        mapping: _Mapping,
        f: Callable[..., Any],
        in_tree: PyTreeDef,
        specs: Sequence[PartitionSpec | None],
        fixed: tuple[Any, ...],
    ):
        self.mapping, self.f, self.in_tree, self.specs, self.fixed = mapping, f, in_tree, specs, fixed
        # `JitFunction` reads the name of what it jits.
        self.__name__ = arguments.fun_name(f)

    def __call__(self, *arrays: Any) -> Any:
        mesh, names = self.mapping.mesh, self.mapping.names
        array_specs = [s for s in self.specs if s is not None]
        # All axes of the mesh in its order, or those that the user has named.
        manual = tuple(axis for axis in mesh.axis_names if not names or axis in names)
        # Without `check_vma`, no type mentions manual axes, and gradients are not summed up.
        tracked = manual if self.mapping.check_vma else ()
        flat = FlatFunction(self.f, self.in_tree)
        out_specs: list[PartitionSpec] = []

        def on_parts(*parts: Any) -> list[Any]:
            moving, still = iter(parts), iter(self.fixed)
            outs = flat(*[next(still) if s is None else next(moving) for s in self.specs])
            # Filled while `f` is traced: `out_specs` is a prefix of its result.
            out_specs[:] = self._out_specs(flat.out_tree, outs)
            return [spmd.as_result(x, spec, tracked) for x, spec in zip(outs, out_specs, strict=True)]

        pairs = zip(arrays, array_specs, strict=True)
        avals = [spmd.part_aval(typeof(x), mesh, spec, manual, tracked) for x, spec in pairs]
        axes = spmd.ManualAxes(mesh, manual, self.mapping.check_vma)
        axes.check_nesting(self.mapping.function)
        with axes.inside():
            jaxpr, consts = stage(on_parts, avals, name=self.__name__, may_use_refs=True)
        # Closed-over arrays are the same on all devices.
        in_specs = (*[PartitionSpec()] * len(consts), *array_specs)
        closed = ClosedJaxpr(hoist_consts(jaxpr))
        outs = axes.bind(closed, [*consts, *arrays], in_specs, out_specs)
        return flat.out_tree.unflatten(outs)

    def _out_specs(self, tree: PyTreeDef, outs: Sequence[Any]) -> list[PartitionSpec]:
        function = self.mapping.function
        specs = pytree.spread(f"{function} out_specs", self.mapping.out_specs, tree, pytree.is_none)
        for spec, out in zip(specs, outs, strict=True):
            self.mapping.check("out_specs", spec)
            if len(spec) > typeof(out).ndim:
                raise _too_long(f"{function} of {self.__name__}", "out_specs", spec, "a result", typeof(out))
        return specs
