"""`make_jaxpr` and `eval_shape`, which trace functions without running them, and `ShapeDtypeStruct`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..._base import config, pytree
from ..._base.errors import ArgumentError, ShapeError
from ..._base.pytree import flatten
from ..._base.scoped import scoped
from ..._base.wrapping import wraps
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, Typed, shaped, typeof_value
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, with_literals
from ..._ir.memory_spaces import kind_of, space_of
from ..._ops.spmd import reshard
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.axes import AxisName, axis_env as axes_in_scope
from ..._trace.leaks import no_leaks
from ..._trace.refs import AbstractRef, Ref, with_ref_inputs
from ..._trace.staging import stage
from ..._trace.trace import recorder, typeof
from ..._transform.array_operations import zeros
from ..._transform.jaxprs import unused_inputs
from ..._xla.array import ArrayImpl
from ..._xla.mesh import AbstractMesh, current_mesh
from ..._xla.partition_spec import PartitionSpec
from ..._xla.placement import Placement, placement_for
from ..._xla.sharding import NamedSharding, Sharding, default_sharding
from ..devices.meshes import named
from . import arguments
from .bound_call import join_static
from .options import Prefix
from .origins import origin
from .references import closed_over, find_refs
from .user_functions import FlatFunction, user_call

if TYPE_CHECKING:
    from ..._xla.layout import Format
    from ..devices.axis_types import ManualAxisType


class ShapeDtypeStruct(Typed):
    """The shape and dtype of an array, without the array.

    Args:
      shape: lengths of the axes.
      dtype: a dtype or its name.
      sharding: the sharding of the array, a `Format`, or a `PartitionSpec` for the mesh of the context; None if
        unspecified.
      weak_type: whether the dtype is weak in promotion, as that of Python numbers is.
      manual_axis_type: inside of `shard_map`, a `ManualAxisType`: along which mesh axes values differ between devices.
      is_ref: whether this describes a reference to such an array.

    Raises:
      ArgumentError: `dtype` is None, or `sharding` is no sharding.
      DtypeError: `dtype` is no dtype.
      OptionError: `sharding` is a `Format` whose layout does not have the axes in order.
      ShapeError: the spec or the layout of `sharding` has more entries than `shape`.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval", "is_ref", "sharding")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ArgumentError("ShapeDtypeStruct: dtype must be specified.")
        aval = shaped(tuple(shape), dtypes.as_dtype(dtype), weak_type)
        if manual_axis_type is not None:
            aval = aval.varying(frozenset(manual_axis_type.varying))
        self.sharding = None if sharding is None else _sharding_for(aval, sharding)
        if sharding is not None:
            aval = aval.update(sharding=self.sharding, memory_space=space_of(getattr(self.sharding, "kind", None)))
        self.aval = aval
        #: whether this describes a reference to such an array
        self.is_ref = is_ref

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape, dtype, sharding and weak type of an array or number `x`.

        Args:
          x: array or number.

        Returns:
          A `ShapeDtypeStruct`.

        >>> ShapeDtypeStruct.like(1.0)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        aval = typeof(x)
        # Only explicit axes are part of a type. How an array is split over other axes says nothing about its
        # description.
        sharding = getattr(x, "sharding", None) if aval.spec is not None else None
        struct = cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type, is_ref=isinstance(x, Ref))
        struct.aval = struct.aval.varying(aval.vma).in_space(aval.memory_space)
        return struct

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with another `shape`, `dtype`, `sharding`, `weak_type`, `manual_axis_type` or `is_ref`."""
        names = ("shape", "dtype", "sharding", "weak_type", "manual_axis_type", "is_ref")
        fields = {name: getattr(self, name) for name in names}
        return ShapeDtypeStruct(**{**fields, **changes})

    @property
    def format(self) -> Format:
        """The `Format` of the array, without a layout."""
        from ..._xla.layout import Format  # here, as below: making a dataclass takes 3 ms of `import phlox`

        return Format(None, self.sharding)

    @property
    def manual_axis_type(self) -> ManualAxisType | None:
        """Inside of `shard_map`, the mesh axes along which values differ; None if they differ along none."""
        from ..devices.axis_types import ManualAxisType

        return ManualAxisType(varying=self.aval.vma) if self.aval.vma else None

    def __len__(self) -> int:
        if not self.aval.shape:
            raise ShapeError("len() of unsized object: a ShapeDtypeStruct without axes", shapes=[()])
        return self.aval.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.aval, self.sharding, self.is_ref

    def __repr__(self) -> str:
        more = f", sharding={self.sharding!r}" if self.sharding is not None else ""
        more += ", weak_type=True" if self.weak_type else ""
        more += ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.aval.dtype.name}{more})"


def _sharding_for(aval: ShapedArray, sharding: Any) -> Any:
    """The sharding of a `ShapeDtypeStruct` of this type, checked; that of the mesh of the context for a spec."""
    if isinstance(sharding, PartitionSpec):
        # Without a mesh the spec waits for that of the call to `lower`.
        return sharding if current_mesh() is None else named("ShapeDtypeStruct", sharding)
    if hasattr(sharding, "layout"):  # a `Format`, whose class takes 3 ms to import
        sharding = sharding.sharding_in_order("ShapeDtypeStruct", aval.ndim)
    if not isinstance(sharding, Sharding | None):
        raise ArgumentError(
            f"ShapeDtypeStruct: sharding={sharding!r} of type {type(sharding).__name__} is no sharding",
            instead="a NamedSharding, or phlox.sharding.SingleDeviceSharding(device)",
        )
    if isinstance(sharding, NamedSharding):
        sharding.check_compatible_aval(aval.shape)
    return sharding


def key_of(x: Any, aval: ShapedArray) -> Placement:
    """The placement of an array, or of one that a `ShapeDtypeStruct` describes."""
    if type(x) is ArrayImpl:
        return x._placement
    # A description counts as committed: whoever gives a sharding expects the program there.
    if isinstance(x, ShapeDtypeStruct) and x.sharding is not None:
        sharding = named("ShapeDtypeStruct", x.sharding)
        if not isinstance(getattr(sharding, "mesh", None), AbstractMesh):  # which has no devices
            return placement_for(aval, sharding, committed=True)
    if (kind := kind_of(aval.memory_space)) is not None:  # the description of a result of `eval_shape`
        return placement_for(aval, default_sharding().with_memory_kind(kind), committed=True)
    return aval


def as_ref(x: Any) -> Any:
    """`x`; or, for a `ShapeDtypeStruct` with `is_ref`, a reference that holds a `ShapeDtypeStruct` as its value."""
    if type(x) is ShapeDtypeStruct and x.is_ref:
        return Ref(AbstractRef(x.aval), x.update(is_ref=False))
    return x


def as_struct(x: Any) -> Any:
    """`x`; or a `ShapeDtypeStruct` if `x` is no array but has a shape and a dtype.

    As for arrays, 64-bit dtypes become 32-bit ones unless `enable_x64` is set, or `explicit_x64_dtypes` allows those of
    a `ShapeDtypeStruct`.
    """
    if type(x) is ShapedArray:
        return struct_of(x)
    # For a `ShapeDtypeStruct` the user has named the dtype; other objects with a dtype are treated like arrays.
    known = type(x) is ShapeDtypeStruct
    if not known and (typeof_value(x) is not None or not (hasattr(x, "shape") and hasattr(x, "dtype"))):
        return x
    dtype = dtypes.user_dtype(x.dtype, "ShapeDtypeStruct") if known else dtypes.canonical(dtypes.as_dtype(x.dtype))
    if known and dtype == x.dtype:
        return x
    return ShapeDtypeStruct(
        x.shape, dtype, weak_type=getattr(x, "weak_type", False), sharding=getattr(x, "sharding", None)
    )


def dtype_like(x: Any, aval: ShapedArray) -> Any:
    """The dtype of a new array like `x`, which has the type `aval`.

    An array of 64 bits keeps them. A `ShapeDtypeStruct` is a description: its array is made under the current flags.
    """
    return dtypes.apply_x64_mode(aval.dtype) if type(x) is ShapeDtypeStruct else aval.dtype


def operands_of(leaves: Sequence[Any], jaxpr: Jaxpr) -> list[Any]:
    """The leaves as operands of an equation with this Jaxpr, whose last inputs they are.

    `ShapeDtypeStruct`s that it does not read are zeros. The running trace makes tracers for others.
    """
    if not any(type(x) is ShapeDtypeStruct for x in leaves):
        return list(leaves)
    tracing, unread = recorder(), unused_inputs(jaxpr)[len(jaxpr.invars) - len(leaves) :]

    def operand(x: Any, is_unread: bool) -> Any:
        if type(x) is not ShapeDtypeStruct:
            return x
        if is_unread:
            return zeros(x.aval)
        return x if tracing is None else tracing.tracer_of_description(x)

    return [operand(*each) for each in zip(leaves, unread, strict=True)]


def _of_arrays(tree: Any) -> Any:
    """The tree with an array of zeros for each `ShapeDtypeStruct`: functions that are only traced may return those."""

    def array(x: Any) -> Any:
        return as_array_or_tracer(zeros(x.aval)) if type(x) is ShapeDtypeStruct else x

    return pytree.tree_map(array, tree) if any(type(x) is ShapeDtypeStruct for x in flatten(tree)[0]) else tree


def _staged(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    function: str,
    static: Collection[int] = (),
) -> tuple[ClosedJaxpr, Any]:
    leaves, in_tree = flatten((args, kwargs))
    leaves = [as_ref(x) for x in leaves]
    if refs := {i: leaves[i] for i in find_refs(leaves)}:
        # Traced as references that are closed over, which then become inputs.
        (called,), operands = closed_over(function, [wraps(fun)(lambda a, k: fun(*a, **k))], in_tree.unflatten(leaves))
        closed, out_tree = _staged(called, operands, {}, function)
        return with_ref_inputs(closed, refs), out_tree
    leaves = [as_struct(x) for x in leaves]
    avals = arguments.check_arrays(function, fun, args, kwargs, leaves)
    flat = FlatFunction(lambda a, k: _of_arrays(fun(*a, **k)), in_tree, user=fun)
    # Computed only for an error message: reading the signature and naming each leaf takes longer than many a trace.
    names = functools.partial(arguments.leaf_names, fun, args, kwargs, static)
    with no_leaks(arguments.fun_name(fun), fun):
        jaxpr, consts = stage(flat, avals, name=arguments.fun_name(fun), arg_names=names, may_use_refs=True)
    jaxpr.origin = origin("jit", "", fun, jaxpr, in_tree, flat.out_tree, True, static)
    return ClosedJaxpr(jaxpr, consts), flat.out_tree


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[AxisName, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jaxpr of `fun` for its arguments instead of running it.

    Args:
      fun: function of trees of arrays.
      static_argnums: positional arguments that are Python values, counted from 0 (or back from -1).
      axis_env: names and sizes of mapped axes, for functions that call collectives; None for no axes.
      return_shape: also return the result's tree of `ShapeDtypeStruct`.

    Returns:
      A function that is called as `fun` is, and whose arguments may be `ShapeDtypeStruct`s. It returns a `ClosedJaxpr`,
      or (ClosedJaxpr, tree of `ShapeDtypeStruct`).

    Raises:
      OptionError: `static_argnums` names an argument that `fun` does not have.

    >>> make_jaxpr(lambda x: 2 * x)(1.0)
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """
    statics = arguments.as_ints(static_argnums, "static_argnums")
    statics, _ = arguments.complete(fun, statics, (), "static", verbatim=True)

    @wraps(fun)
    @user_call
    def make(*args: Any, **kwargs: Any) -> Any:
        # Negative numbers count from the end of the arguments of this call.
        chosen = {n + len(args) if n < 0 else n for n in statics}
        dynamic = tuple(x for i, x in enumerate(args) if i not in chosen)
        fixed = tuple((i, type(x), x) for i, x in enumerate(args) if i in chosen)
        partial = with_static(fun, functools.partial(join_static, fixed)) if fixed else fun
        # Added to the axes in scope: this function may itself be called inside of a mapped function.
        with scoped(axes_in_scope, (*axes_in_scope.get(), *(axis_env or ()))):
            closed, out_tree = _staged(partial, dynamic, kwargs, "make_jaxpr", chosen)
        # In this form, as in JAX with the same flag, constants stand in the equations and are no longer listed.
        if config.current().use_simplified_jaxpr_constants:
            jaxpr = closed.jaxpr.replace(constvars=[])
            literals = [Literal(c, v.aval) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)]
            closed = ClosedJaxpr(with_literals(jaxpr, dict(zip(closed.jaxpr.constvars, literals, strict=True))), [])
        if return_shape:
            return closed, out_tree.unflatten([struct_of(a) for a in closed.out_avals])
        return closed

    # The name is built as in JAX, and says of which function the Jaxpr is.
    make.__module__ = "phlox"
    make.__name__, make.__qualname__ = f"make_jaxpr({make.__name__})", f"make_jaxpr({make.__qualname__})"
    return make


def struct_of(aval: ShapedArray, sharding: Any = None) -> ShapeDtypeStruct:
    """The `ShapeDtypeStruct` of an abstract value."""
    space = aval.memory_space if sharding is None else space_of(sharding.kind)
    # A mesh with explicit axes is part of the types of all arrays, of those that are not split too.
    if sharding is None and (aval.spec is not None or aval.sharding.mesh.explicit_axes):
        sharding = aval.sharding
    struct = ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding)
    struct.aval = struct.aval.varying(aval.vma).in_space(space)
    return struct


@user_call
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of ``fun(*args, **kwargs)``, without computing anything.

    Args:
      fun: function of trees of arrays, jitted or not.
      *args, **kwargs: its arguments, which may be `ShapeDtypeStruct`s.

    Returns:
      A tree like the result, of `ShapeDtypeStruct`; with the `out_shardings` of a jitted function.

    Raises:
      ArgumentError: an argument is neither an array nor a `ShapeDtypeStruct`.

    >>> eval_shape(jnp.dot, ShapeDtypeStruct((2, 3), "float32"), ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """

    # A jitted function knows its static arguments and its `out_shardings`.
    jitted = getattr(fun, "_jit", None)
    return shapes_of(fun, args, kwargs) if jitted is None else jitted.eval_shape(*args, **kwargs)


def with_static(fun: Callable[..., Any], rebuild: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` without its static arguments: `rebuild` makes all arguments out of the others."""

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        positional, keywords = rebuild(args, kwargs)
        return fun(*positional, **keywords)

    return call


def with_shardings(structs: Any, shardings: Prefix | None) -> Any:
    """A tree of `ShapeDtypeStruct` with the shardings that the user specified."""
    if shardings is None:
        return structs
    leaves, tree = flatten(structs)
    pairs = zip(leaves, shardings.spread(structs), strict=True)
    return tree.unflatten([x if sharding is None else x.update(sharding=sharding) for x, sharding in pairs])


def constrained(values: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    """The values with the shardings of a function that is called by another jitted function."""
    return [reshard.apply_sharding(x, s) for x, s in zip(values, shardings, strict=True)]


def shapes_of(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`eval_shape`, for a function that is not jitted."""
    closed, out_tree = _staged(fun, args, kwargs, "eval_shape")
    return out_tree.unflatten([struct_of(a) for a in closed.out_avals])
