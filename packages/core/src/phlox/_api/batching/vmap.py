"""`vmap`: a function for one example, applied to a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import ArgumentError, AxisError, AxisSizeError, OptionError, ShardingTypeError
from ..._base.pytree import PyTreeDef, flatten, is_none
from ..._base.source import Wrapper, within
from ..._base.wrapping import P, R, wraps
from ..._ir.avals import typeof_value
from ..._ir.sharding_types import Spec, any_specs, spec_over
from ..._ops.structure.shape import as_array_or_tracer, results_as_arrays
from ..._trace.axes import AxisName
from ..._trace.leaks import no_leaks
from ..._trace.refs import AbstractRef, Ref, values, write_all
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, place_axis, run_batched
from ..._transform.sharding_types import reshard_like
from ..jit import arguments
from ..jit.references import check_distinct, find_refs, names_of_refs, replaced
from ..jit.user_functions import FlatFunction, check_returned, user_call
from .mappable import any_mappable, is_mappable, is_spec, run_mapped
from .mapped_sizes import check_sizes

Axes = Any  # int | None | pytree of them
_VMAP = Wrapper("vmap")


def vmap(
    fun: Callable[P, R],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_name: AxisName | None = None,
    axis_size: int | None = None,
    spmd_axis_name: AxisName | tuple[AxisName, ...] | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Makes a function of batches from a function of one example.

    Args:
      fun: function of arrays and pytrees of them.
      in_axes: the batch axis of each argument: an int for all, or a tuple with an int, None (not batched) or a tree of
        those for each argument. Negative numbers count from the end. Keyword arguments are batched along axis 0.
      out_axes: the position of the batch axis in the results; None for results that do not depend on the example.
      axis_name: a name by which collectives such as `lax.psum` refer to the batch axis.
      axis_size: the length of the batch axis; needed if no argument is batched.
      spmd_axis_name: the axis (or axes) of a device mesh over which the batch axis is sharded, where `fun` specifies
        shardings itself (`shard_map`).
      sum_match: sum over the examples where `out_axes` is None and the result depends on the example.

    Returns:
      A function that is called as `fun` is, with the batch axis added to its arguments. Its results have the batch axis
      too, and the dtypes of the results of `fun`.

    Raises:
      ArgumentError: `in_axes` or `out_axes` has leaves that are no axes; or, in a call, `in_axes` has not one entry
        for each argument.
      AxisSizeError: in a call, when batched arguments disagree on the length or lack the axis, or no argument is
        batched.
      ShardingTypeError: in a call, when the batch axes of arguments are split over different explicit mesh axes.
      OptionError: in a call, when a result depends on the example where `out_axes` is None.

    >>> vmap(jnp.dot, in_axes=(0, None))(jnp.eye(2), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    arguments.check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    check_in_axes("vmap", in_axes)
    check_axes("vmap", in_axes, out_axes)

    spmd = spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,) if spmd_axis_name else ()

    @wraps(fun, "Vectorized version of {fun}. Takes arguments and returns results with additional array axes.")
    @user_call
    def batched(*args: Any, **kwargs: Any) -> Any:
        # Only if a program has registered containers: then leaves may be no arrays, and nothing below holds.
        if any_mappable():
            return _with_mappables(
                fun, args, kwargs, in_axes, out_axes, BatchAxis(axis_size or 0, axis_name, spmd), sum_match
            )
        leaves, in_tree = flatten((args, kwargs))
        check_in_axes("vmap", in_axes, len(args))
        axes = [*flat_axes("vmap in_axes", in_axes, args), *[0] * (len(leaves) - _count(args))]
        # A reference with a mapped axis becomes one reference for each example; the others are passed unchanged.
        mapped_refs = _mapped_refs(leaves, axes, fun, args, kwargs)
        refs = [leaves[i] for i in mapped_refs]
        leaves = replaced(leaves, mapped_refs, values(refs)) if refs else leaves
        # Arguments that are not mapped need not be arrays; the checks see a 0 in their place.
        # Python objects may pass through `vmap` unmapped, as in JAX.
        mapped = [x if d is not None or typeof_value(x) is not None else 0 for x, d in zip(leaves, axes, strict=True)]
        avals = arguments.check_arrays("vmap", fun, args, kwargs, mapped)
        size = _size(axes, avals, axis_size, lambda: arguments.leaf_names(fun, args, {"kwargs": kwargs}))
        if size is None:
            raise _nothing_mapped(args, kwargs, avals)
        # From the front, as batching rules expect it.
        dims = [None if d is None else d % a.ndim for d, a in zip(axes, avals, strict=True)]
        flat = FlatFunction(lambda pair_args, pair_kwargs: fun(*pair_args, **pair_kwargs), in_tree, user=fun)
        examples = _ExamplesOfRefs(flat, mapped_refs)

        with within(_VMAP), no_leaks(arguments.fun_name(fun), fun):
            # Explicit mesh axes are looked for only if some type has them.
            axis = BatchAxis(size, axis_name, spmd, _explicit(avals, dims, spmd) if any_specs() else None)
            outs, out_dims = run_batched(examples if refs else flat, axis, leaves, dims)
        check_returned(fun, flat.out_tree)
        expected_dims = [*flat_axes("vmap out_axes", out_axes, flat.out_tree), *[dims[i] for i in mapped_refs]]
        placed = _place_all(outs, out_dims, expected_dims, flat.out_tree, axis, sum_match)
        width = len(placed) - len(refs)
        examples.write_back(refs, results_as_arrays(placed[width:]), dims)
        return flat.out_tree.unflatten(results_as_arrays(placed[:width]))

    return batched


class _ExamplesOfRefs:
    """The flat function `fun` of arrays and, at `indices`, of references.

    Each example gets references of its own, whose last values are returned after the results.
    """

    def __init__(self, fun: Callable[..., Sequence[Any]], indices: Sequence[int]):
        self.fun, self.indices = fun, indices
        self.refs: list[Ref] = []

    def __call__(self, *xs: Any) -> list[Any]:
        self.refs = [Ref(AbstractRef(typeof(xs[i])), xs[i]) for i in self.indices]
        return [*self.fun(*replaced(xs, self.indices, self.refs)), *values(self.refs)]

    def write_back(self, arguments: Sequence[Ref], state: Sequence[Any], dims: Sequence[int | None]) -> None:
        """Writes the last values to the arguments, which later uses of the examples, by backward rules, then mean."""
        write_all(arguments, state)
        for ref, argument, i in zip(self.refs, arguments, self.indices, strict=True):
            ref.whole = argument, dims[i]


def _place_all(
    outs: Sequence[Any],
    dims: Sequence[int | None],
    expected_dims: Sequence[int | None],
    out_tree: PyTreeDef,
    axis: BatchAxis,
    sum_match: bool,
) -> list[Any]:
    """The results, with their batch axes moved from `dims` to `expected_dims`."""
    for i, (dim, want) in enumerate(zip(dims, expected_dims, strict=True)):
        # A reference at the end has its batch axis in both, so that `i` is a leaf of the result.
        if dim is not None and want is None and not sum_match:
            path = pytree.named_paths(out_tree)[i]
            raise _unplaced(pytree.keystr(path), dim, axis.name, typeof(outs[i]).short)
    return [_place(x, d, want, axis) for x, d, want in zip(outs, dims, expected_dims, strict=True)]


def _explicit(avals: Sequence[Any], dims: Sequence[int | None], spmd: tuple[AxisName, ...]) -> Spec | None:
    """How the mapped axis is split over explicit axes. Raises `ShardingTypeError` if the arguments disagree, or are
    split over other axes than those of `spmd_axis_name`."""
    mapped = [(aval, d) for aval, d in zip(avals, dims, strict=True) if d is not None]
    aval_of_entry = {aval.spec.entries[d] if aval.spec is not None else (): aval for aval, d in mapped}
    if len(aval_of_entry) > 1:
        raise ShardingTypeError(
            "vmap: Mapped away dimension of inputs passed to vmap should be sharded the same, got "
            + " and ".join(aval.short for aval in aval_of_entry.values()),
            instead="phlox.reshard(x, phlox.P(...)) first",
            avals=list(aval_of_entry.values()),
        )
    # There is one entry, or none.
    for entry, aval in aval_of_entry.items():
        if entry and spmd and entry != spmd:
            raise ShardingTypeError(
                f"vmap: Only one of spmd_axis_name or arrays sharded on explicit axes says how the batch is split, got "
                f"{aval.short} and spmd_axis_name={spmd}",
                instead="vmap without spmd_axis_name",
                avals=[aval],
            )
        return spec_over(aval.spec.mesh, [entry]) if aval.spec is not None else None
    return None


def _mapped_refs(
    leaves: Sequence[Any], axes: Sequence[int | None], fun: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> list[int]:
    """The indices of references with a mapped axis. Raises if a reference occurs twice among the leaves."""
    indices = find_refs(leaves)
    if indices:
        name = f"{arguments.fun_name(fun)} for vmap"
        check_distinct(name, [leaves[i] for i in indices], names=lambda: names_of_refs(fun, args, kwargs))
    return [i for i in indices if axes[i] is not None]


def _with_mappables(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    in_axes: Axes,
    out_axes: Axes,
    axis: BatchAxis,
    sum_match: bool,
) -> Any:
    """A call while container types are registered by `register_vmappable`."""
    # Registered containers are leaves here, even if they are pytrees.
    leaves, in_tree = flatten((args, kwargs), is_mappable)
    args_tree, kwargs_tree = pytree.treedef_children(in_tree)
    specs = [*flat_axes("vmap in_axes", in_axes, args_tree), *[0] * kwargs_tree.num_leaves]
    mapped_refs = _mapped_refs(leaves, specs, fun, args, kwargs)
    refs = [leaves[i] for i in mapped_refs]
    leaves = replaced(leaves, mapped_refs, values(refs)) if refs else leaves
    # As above, what is not mapped need not be an array.
    plain = [(x, d) for x, d in zip(leaves, specs, strict=True) if not is_mappable(x)]
    arrays = [x if d is not None or typeof_value(x) is not None else 0 for x, d in plain]
    avals = arguments.check_arrays("vmap", fun, args, kwargs, arrays)
    # Leaves have no path in this rare case, and are numbered.
    size = _size([d for _, d in plain], avals, axis.size or None, lambda: [f"number {i}" for i in range(len(plain))])
    if size is None:
        raise _nothing_mapped(args, kwargs, avals)
    axis = axis._replace(size=size)
    trees: list[PyTreeDef] = []

    def flat(*examples: Any) -> tuple[list[Any], list[Any]]:
        inside = [Ref(AbstractRef(typeof(examples[i])), examples[i]) for i in mapped_refs]
        pair_args, pair_kwargs = in_tree.unflatten(replaced(examples, mapped_refs, inside))
        out = fun(*pair_args, **pair_kwargs)
        outs, tree = flatten(out, is_mappable)
        trees.append(tree)
        arguments.check_outputs(fun, out, [0 if is_mappable(x) else x for x in outs])
        out_specs = [*flat_axes("vmap out_axes", out_axes, tree), *[specs[i] for i in mapped_refs]]
        return [*outs, *values(inside)], out_specs

    def place(x: Any, dim: int | None, out_dim: int | None, size: int) -> Any:
        if dim is not None and out_dim is None and not sum_match:
            raise _unplaced("", dim, axis.name, typeof(x).short)
        return _place(x, dim, out_dim, axis._replace(size=size))

    outs = run_mapped(flat, axis, leaves, specs, place)
    width = len(outs) - len(refs)
    write_all(refs, results_as_arrays(outs[width:]))
    return trees[0].unflatten(outs[:width])


def _count(args: Any) -> int:
    return pytree.tree_structure(args).num_leaves


def _is_axis(axis: Any) -> bool:
    # bool is a subclass of int, and True is no axis.
    return (isinstance(axis, int) and not isinstance(axis, bool)) or is_spec(axis)


def check_axes(function: str, in_axes: Axes, out_axes: Axes) -> None:
    """Raises unless the leaves of both are axes."""
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if not all(_is_axis(a) for a in pytree.tree_leaves(axes)):
            raise ArgumentError(
                f"{function} {what} must be an int, None, or a (nested) container with those types as leaves, but got "
                f"{axes!r}.",
                argument=what,
            )


_AXES_FORM = (
    "must be an int, None, or a tuple of entries corresponding to the positional arguments passed to the function"
)


def check_in_axes(function: str, in_axes: Axes, count: int | None = None) -> None:
    """Raises unless `in_axes` is an axis, None or a tuple, with `count` entries if `count` is known."""
    if in_axes is not None and not _is_axis(in_axes) and not isinstance(in_axes, tuple):
        raise ArgumentError(f"{function} in_axes {_AXES_FORM}, but got {in_axes!r}.", in_axes=in_axes)
    if count is not None and isinstance(in_axes, tuple):
        _check_axis_count(function, in_axes, count)


def _check_axis_count(function: str, in_axes: tuple[Any, ...], count: int) -> None:
    if len(in_axes) != count:
        raise ArgumentError(
            f"{function} in_axes {_AXES_FORM}, but got len(in_axes)={len(in_axes)}, len(args)={count}",
            instead="an entry for each positional argument; keyword arguments are always mapped along axis 0",
            in_axes=in_axes,
        )


def _size(
    axes: Sequence[int | None], avals: Sequence[Any], axis_size: int | None, names: Callable[[], list[str]]
) -> int | None:
    """The length of the mapped axis; None if nothing is mapped. Errors call `names` for the names of the leaves."""
    mapped = [(axis, aval) for axis, aval in zip(axes, avals, strict=True) if axis is not None]
    # The usual case, without any text.
    if all(-aval.ndim <= axis < aval.ndim for axis, aval in mapped):
        lengths = {aval.shape[axis] for axis, aval in mapped}
        if len(lengths) == 1 and axis_size in (None, *lengths):
            return lengths.pop()
    if not mapped:
        return axis_size
    named = zip(names(), axes, avals, strict=True)
    return check_sizes([(name, axis, aval) for name, axis, aval in named if axis is not None], expected=axis_size)


def _nothing_mapped(args: tuple[Any, ...], kwargs: dict[str, Any], avals: Sequence[Any]) -> AxisSizeError:
    return AxisSizeError(
        "vmap must have at least one non-None value in in_axes or axis_size must be specified"
        if avals
        else "vmap wrapped function must be passed at least one argument containing an array or axis_size must be "
        f"specified, got empty *args={args} and **kwargs={kwargs}",
        instead="an in_axes that is not None for some argument, or axis_size=...",
        sizes=[],
    )


def flat_axes(what: str, axes: Axes, tree: Any) -> list[int | None]:
    """One axis (or None) for each leaf of `tree` (a tree or its structure), from a prefix tree of axes."""
    # Results are not there yet where only their structure is known.
    treedef = tree if type(tree) is PyTreeDef else pytree.tree_structure(tree)
    if axes is None or _is_axis(axes):
        return [axes] * treedef.num_leaves
    instead = "a tuple with one entry for each argument, or trees that stop above the leaves; each argument passed by "
    instead += "keyword is mapped along axis 0"
    return pytree.spread(what, axes, treedef, is_none, instead)


def _unplaced(path: str, dim: int, axis_name: AxisName | None, short: str) -> OptionError:
    """The error for a leaf of the results that depends on the example where `out_axes` is None."""
    place = f"at vmap out_axes{path}, got axis spec None but output was batched on axis {dim}"
    if axis_name is not None:
        place = f"vmap has mapped output (axis_name={axis_name}) but out_axes is None"
    return OptionError(
        f"{place}: a result of type {short} that depends on the example",
        instead="out_axes=0, or a reduction over the examples",
    )


def _place(x: Any, dim: int | None, out_dim: int | None, axis: BatchAxis) -> Any:
    if out_dim is None:
        return x if dim is None else as_array_or_tracer(x).sum(dim)  # in the dtype of `numpy.sum`
    # A result without the batch axis gets one more.
    ndim = typeof(x).ndim + (dim is None)
    if not -ndim <= out_dim < ndim:
        raise AxisError(f"axis {out_dim} is out of bounds for array of dimension {ndim}: vmap's out_axes of a result")
    placed = place_axis(x, dim, out_dim % ndim, axis.size)
    return placed if axis.explicit is None else _split_along(placed, out_dim % ndim, axis)


def _split_along(x: Any, dim: int, axis: BatchAxis) -> Any:
    """A batch whose mapped axis, at `dim`, is split as that of the arguments."""
    return reshard_like(x, axis.wider(typeof(x).without_axis(dim), dim))
