"""Scatter primitives: write slices at computed indices, or combine them with the operand (add, mul, min, max)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.bounds import bounds
from ..._ir.dtypes import highest, lowest
from ..._ir.key_uses import KeyUses
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, entries_of, join, refuse
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.trace import typeof
from ..._transform.array_operations import Zero, insert_axis, instantiate, linear_jvp, move_axis, zeros
from ..._transform.batch import BatchAxis, Dim
from ..._transform.sharding_types import in_auto
from ..._transform.transpose import is_linear
from ..._xla.lower import lower_computation
from ..._xla.text import Function, Value, flag, ints
from ..elementwise.arithmetic import add, div, mul
from ..elementwise.families import literal
from ..elementwise.logic import eq, select
from .dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    Ints,
    ScatterDimensionNumbers,
    window_axes,
    window_sizes,
)
from .gather import batched_numbers, check_axes, check_indices, check_mapping, gather, index_limits
from .index_padding import scatter_pad
from .iota import iota
from .shape import pad, reshape
from .sort import sort, take_along


def _scatter_types(
    operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, dimension_numbers: Any, **_: Any
) -> ShapedArray:
    numbers = dimension_numbers
    if operand.dtype != updates.dtype:
        raise DtypeError(f"scatter: updates {updates.short} must have the dtype of the operand {operand.short}")
    check_indices("scatter", operand, indices, numbers)
    window_dims = numbers.update_window_dims
    if updates.ndim != indices.ndim - 1 + len(window_dims):
        raise ShapeError(
            f"Updates tensor must be of rank {indices.ndim - 1 + len(window_dims)}; got {updates.ndim}: updates are "
            f"{updates.short}, indices {indices.short}",
            shapes=[updates.shape, indices.shape],
        )
    check_axes("scatter", "update_window_dims", window_dims, updates.ndim)
    window_rank = len(window_dims) + len(numbers.inserted_window_dims) + len(numbers.operand_batching_dims)
    if window_rank != operand.ndim:
        raise ShapeError(
            f"Scatter op has window of size {window_rank}; doesn't match operand of rank {operand.ndim}.",
            shapes=[operand.shape],
        )
    check_mapping("scatter", operand, indices, numbers)
    for i, at in zip(window_axes(operand, numbers), window_dims, strict=True):
        if updates.shape[at] > operand.shape[i]:
            raise ShapeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding "
                f"dimensions of operand. For dimension {at}, updates bound is {updates.shape[at]}, operand bound is "
                f"{operand.shape[i]}.",
                shapes=[operand.shape, updates.shape],
            )
    batch = [n for i, n in enumerate(updates.shape) if i not in window_dims]
    if batch != list(indices.shape[:-1]):
        raise ShapeError(
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
            f"dimensions of the indices: {tuple(batch)} of {updates.short}, {indices.shape[:-1]} of {indices.short}",
            shapes=[updates.shape, indices.shape],
        )
    return shaped(operand.shape, operand.dtype, operand.weak_type).in_space(operand.memory_space)


def _combination_types(operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, **params: Any) -> ShapedArray:
    """The type of scatters that combine elements with updates, which keys do not allow."""
    if dtypes.is_extended(operand.dtype):
        raise DtypeError(
            f"scatter of {operand.short}: PRNG keys cannot be added, multiplied or compared",
            instead="x.at[...].set(key)",
        )
    return _scatter_types(operand, indices, updates, **params)


def _scatter_sharding(
    out: ShapedArray,
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    dimension_numbers: Any,
    **_: Any,
) -> Entries:
    numbers = dimension_numbers
    avals, entries = (operand, indices, updates), list(entries_of(operand))
    index_entries, update_entries = entries_of(indices), entries_of(updates)
    shared = numbers.scatter_indices_batching_dims
    for i, at in zip(shared, numbers.operand_batching_dims, strict=True):
        entries[at] = join("scatter", avals, (entries[at], index_entries[i]))
    sizes = window_sizes(operand, updates, numbers)
    unclear = any(entry for i, entry in enumerate(index_entries) if i not in shared)
    for i, at in zip(window_axes(operand, numbers), numbers.update_window_dims, strict=True):
        unclear |= bool(entries[i]) and sizes[i] != operand.shape[i]
        entries[i] = join("scatter", avals, (entries[i], update_entries[at]))
    unclear |= any(entries[i] for i in numbers.inserted_window_dims)
    if unclear:
        refuse(
            "scatter", "it is not clear how the result is split", avals, "x.at[...].set(y, out_sharding=phlox.P(...))"
        )
    return tuple(entries)


#: the computation of each scatter: how an element of the operand and one of the updates are combined
_COMBINE: dict[str, Any] = {
    "scatter-apply": lambda g, old, new, func: lower_computation(g, func.jaxpr, [old])[0],
    "scatter": lambda g, old, new: new,
    "scatter-add": lambda g, old, new: g.same(
        "stablehlo.or" if new.aval.dtype == dtypes.bool_ else "stablehlo.add", old, new
    ),
    "scatter-mul": lambda g, old, new: g.same(
        "stablehlo.and" if new.aval.dtype == dtypes.bool_ else "stablehlo.multiply", old, new
    ),
    "scatter-min": lambda g, old, new: g.same("stablehlo.minimum", old, new),
    "scatter-max": lambda g, old, new: g.same("stablehlo.maximum", old, new),
}


def _scatter_lower(name: str) -> Any:
    combine = _COMBINE[name]

    def lower(
        f: Function,
        operand: Value,
        indices: Value,
        updates: Value,
        *,
        dimension_numbers: Any,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
        **own: Any,
    ) -> Value:
        numbers = dimension_numbers
        out = f.out
        # StableHLO's scatter drops updates whose windows are out of bounds, its gather clamps.
        if mode is GatherScatterMode.CLIP:
            indices = clamp_indices(f, operand.aval, indices, updates.aval, numbers)
        text = (
            f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {ints(numbers.update_window_dims)}, "
            f"inserted_window_dims = {ints(numbers.inserted_window_dims)}, "
            f"input_batching_dims = {ints(numbers.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {ints(numbers.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {ints(numbers.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {indices.aval.ndim - 1}>, "
            f"indices_are_sorted = {flag(indices_are_sorted)}, unique_indices = {flag(unique_indices)}"
        )
        scalar = shaped((), out.dtype)
        body = f.region([scalar, scalar], lambda g, old, new: [combine(g, old, new, **own)])
        return f.op("stablehlo.scatter", [operand, indices, updates], out, text, [body])

    return lower


def _limits(operand: ShapedArray, updates: ShapedArray, numbers: ScatterDimensionNumbers) -> list[int]:
    """The largest valid value of each element of an index vector."""
    sizes = window_sizes(operand, updates, numbers)
    return [operand.shape[d] - sizes[d] for d in numbers.scatter_dims_to_operand_dims]


def clamp_indices(f: Function, operand: ShapedArray, indices: Value, updates: ShapedArray, numbers: Any) -> Value:
    """Moves each index to the nearest one whose window is within the operand."""
    limits = _limits(operand, updates, numbers)
    if not limits:
        return indices
    aval = indices.aval
    return f.op("stablehlo.clamp", [f.constant(0, aval), indices, index_limits(f, indices, limits)], aval)


def _scatter_batch(get_primitive: Callable[[], Primitive]) -> Any:
    def batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Dim]:
        operand, indices, updates = (x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True))
        # Each example writes to an array of its own.
        if dims[0] is None:
            operand = insert_axis(operand, axis.size, 0)
        if dims[2] is None:
            updates = insert_axis(updates, axis.size, 0)
        numbers = batched_numbers(params["dimension_numbers"], operand=True, indices=dims[1] is not None)
        return get_primitive().bind(operand, indices, updates, **{**params, "dimension_numbers": numbers}), 0

    return batch


def _scatter_extend(
    params: Any, trailing: Ints, operand: ShapedArray, indices: ShapedArray, updates: ShapedArray
) -> Any:
    numbers = params["dimension_numbers"]
    more = tuple(range(updates.ndim, updates.ndim + len(trailing)))
    return {**params, "dimension_numbers": numbers._replace(update_window_dims=(*numbers.update_window_dims, *more))}


def _scatter_checked(checks: Any, operand: Any, indices: Any, updates: Any, **params: Any) -> None:
    numbers, aval = params["dimension_numbers"], typeof(operand)
    axes = numbers.scatter_dims_to_operand_dims
    checks.inside(aval.shape, lambda: (indices, axes, _limits(aval, typeof(updates), numbers)))


def read_back(x: Any, indices: Any, operand: ShapedArray, updates: ShapedArray, params: dict[str, Any]) -> Any:
    """Gathers from `x` (of the operand's shape) the elements that a scatter writes, in the shape of the updates."""
    if not operand.size or not updates.size:  # a window of one element does not fit into an empty axis
        return zeros(updates.update(dtype=typeof(x).dtype))
    numbers = params["dimension_numbers"]
    return gather(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers(*numbers),
        slice_sizes=window_sizes(operand, updates, numbers),
        unique_indices=params["unique_indices"],
        indices_are_sorted=params["indices_are_sorted"],
        mode=params["mode"],
        # An update that was dropped has no part in the result.
        fill_value=0,
    )


def _scatter(
    name: str,
    *,
    kind: type[Primitive] = Primitive,
    types: Callable[..., ShapedArray] = _combination_types,
    neutral: Callable[[Any], Any] | None = None,
    **rules: Any,
) -> Primitive:
    """A scatter. `neutral` returns the number of a dtype with which updates change nothing; None if there is none."""
    prim = kind(
        name,
        types=types,
        sharding=_scatter_sharding,
        memory_in_types=True,
        lower=_scatter_lower(name),
        batch=_scatter_batch(lambda: prim),
        pad=scatter_pad(name, neutral),
        checked=_scatter_checked,
        nan_checked=True,
        **rules,
    )
    return prim


def _linear_transpose(ct: Any, operand: Any, indices: Any, updates: Any, keep_operand: bool, params: Any) -> list[Any]:
    operand_aval, updates_aval = (x.aval if is_linear(x) else typeof(x) for x in (operand, updates))
    ct_operand = ct_updates = None
    if is_linear(operand):
        # Elements that were overwritten have no part in the result.
        ct_operand = ct if keep_operand else scatter(ct, indices, zeros(updates_aval.cotangent()), **params)
    if is_linear(updates):
        ct_updates = read_back(ct, indices, operand_aval, updates_aval, params)
    return [ct_operand, None, ct_updates]


scatter_add = _scatter(
    "scatter-add",
    remembers=True,
    jvp=linear_jvp(lambda: scatter_add, slice(None, None, 2)),
    transpose=lambda ct, operand, indices, updates, **params: _linear_transpose(
        ct, operand, indices, updates, True, params
    ),
    neutral=lambda dtype: 0,
    series="linear",
)


def _set_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    operand, indices, updates = primals
    t_operand, _, t_updates = tangents
    out = scatter(operand, indices, updates, **params)
    t_operand, t_updates = instantiate(t_operand), instantiate(t_updates)
    # Each element is written once at most, so tangents are written as values are.
    if params["unique_indices"]:
        return out, scatter(t_operand, indices, t_updates, **params)
    # Several updates may write one element, in an order that XLA chooses. Scatter the numbers of the updates as well:
    # they show which update was written, and only its tangent passes.
    numbers_aval = shaped(typeof(updates).shape, dtypes.int32)
    flat = iota(dtype=dtypes.int32, shape=(max(numbers_aval.size, 1),), dimension=0)
    # Updates are numbered from 1 on: 0 marks the elements that none of them writes.
    if numbers_aval.size:
        numbers = reshape(add(flat, np.int32(1)), new_sizes=numbers_aval.shape, dimensions=None)
    else:
        numbers = zeros(numbers_aval)
    winners = scatter(zeros(shaped(typeof(operand).shape, dtypes.int32)), indices, numbers, **params)
    won = eq(read_back(winners, indices, typeof(operand), typeof(updates), params), numbers)
    t_unwritten = select(eq(winners, literal(winners, 0)), t_operand, zeros(typeof(t_operand)))
    t_winners = select(won, t_updates, zeros(typeof(t_updates)))
    return out, scatter_add(t_unwritten, indices, t_winners, **params)


scatter = _scatter(
    "scatter",
    types=_scatter_types,
    jvp=_set_jvp,
    transpose=lambda ct, operand, indices, updates, **params: _linear_transpose(
        ct, operand, indices, updates, False, params
    ),
    extend=_scatter_extend,
    keys=lambda eqn, uses_of: KeyUses(((2, True),), passed=((0, 0),)),
    series="linear",
)


def _derivatives_of_products(
    operand: ShapedArray, indices: Any, updates: Any, tangents: Any, params: dict[str, Any]
) -> Any:
    """The derivatives of the products of all updates of one element, each at the place of one of these updates.

    They are sums of products of all factors but one. A quotient by that factor would be nan where it is zero. So the
    updates are sorted by the element that they change, and pairs (product, derivative) of neighbours are combined over
    distances 1, 2, 4, ..., a running product in each group.
    """
    aval = typeof(updates)
    if not aval.size:
        return tangents
    # The number of the element that each update changes; 0 where it is out of bounds and dropped.
    numbers = add(iota(dtype=dtypes.int32, shape=(max(operand.size, 1),), dimension=0), np.int32(1))
    numbers = reshape(numbers, new_sizes=operand.shape, dimensions=None)
    groups, products, parts = (
        reshape(x, new_sizes=(aval.size,), dimensions=None)
        for x in (read_back(numbers, indices, operand, aval, {**params, "unique_indices": False}), updates, tangents)
    )
    positions = iota(dtype=dtypes.int32, shape=(aval.size,), dimension=0)
    groups, order = sort(groups, positions, dimension=0, is_stable=True, num_keys=1)
    products, parts = take_along(products, order, 0), take_along(parts, order, 0)
    # Further steps change nothing, so a length that varies takes those of the longest.
    distance, most = 1, bounds(aval.size)[1]
    while distance < (most if math.isfinite(most) else aval.size):
        joined = eq(groups, _moved(groups, distance))  # groups are numbered from 0, and what is moved in is -1
        before = select(joined, _moved(products, distance), literal(products, 1))
        added = select(joined, _moved(parts, distance), literal(parts, 0))
        parts = add(mul(before, parts), mul(added, products))
        products = mul(before, products)
        distance *= 2
    parts = select(eq(groups, _moved(groups, -1)), literal(parts, 0), parts)  # the last of each group has all factors
    _, inverse = sort(order, positions, dimension=0, is_stable=True, num_keys=1)
    return reshape(take_along(parts, inverse, 0), new_sizes=aval.shape, dimensions=None)


def _moved(x: Any, distance: int) -> Any:
    """A vector moved to higher positions, or to lower ones; -1 is moved in."""
    return pad(x, literal(x, -1), padding_config=((distance, -distance, 0),))


def _mul_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    operand, indices, updates = primals
    t_operand, _, t_updates = tangents
    out = scatter_mul(operand, indices, updates, **params)
    total: Any = Zero(typeof(out).tangent())
    if type(t_operand) is not Zero:
        total = scatter_mul(t_operand, indices, updates, **params)
    if type(t_updates) is not Zero:
        parts = t_updates
        if not params["unique_indices"]:
            parts = _derivatives_of_products(typeof(operand), indices, updates, t_updates, params)
        spread = scatter_add(zeros(typeof(t_updates).update(shape=typeof(operand).shape)), indices, parts, **params)
        moved = mul(operand, spread)
        total = moved if type(total) is Zero else add(total, moved)
    return out, total


scatter_mul = _scatter(
    "scatter-mul",
    jvp=_mul_jvp,
    transpose=in_auto(lambda ct, operand, *others, **params: [scatter_mul(ct, *others, **params), None, None]),
    neutral=lambda dtype: 1,
)


def _extremum_jvp(get_primitive: Callable[[], Primitive]) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        operand, indices, updates = primals
        t_operand, _, t_updates = tangents
        out = get_primitive().bind(operand, indices, updates, **params)
        # Where several candidates equal the result, each gets an equal part of the derivative.
        t_operand, t_updates = instantiate(t_operand), instantiate(t_updates)
        one, none = literal(out, 1), literal(out, 0)
        stayed = select(eq(operand, out), one, none)
        result = read_back(out, indices, typeof(operand), typeof(updates), params)
        hit = select(eq(updates, result), one, none)
        shares = scatter_add(stayed, indices, hit, **params)
        through = scatter_add(mul(stayed, t_operand), indices, mul(hit, t_updates), **params)
        return out, div(through, select(eq(shares, none), one, shares))

    return jvp


scatter_min = _scatter(
    "scatter-min",
    jvp=_extremum_jvp(lambda: scatter_min),
    neutral=highest,
)
scatter_max = _scatter(
    "scatter-max",
    jvp=_extremum_jvp(lambda: scatter_max),
    neutral=lowest,
)

#: applies `func`, the jaxpr of a function of one element, to elements of the operand; only the updates' shape matters
scatter_apply = _scatter(
    "scatter-apply",
    kind=ProgramPrimitive,
    multiple_results=False,
    types=_scatter_types,
    vma=None,
)
