"""Reductions by a user's function: `reduce` over axes, `reduce_window`, and `select_and_scatter`.

The jaxpr of the function takes two elements (or two lists of them, if several arrays are reduced together) and returns
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import AxisError, DtypeError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import ClosedJaxpr, JaxprEqn
from ..._ir.sharding_types import Entries, elementwise, entries_of, resized
from ..._trace.interpret import eval_jaxpr
from ..._trace.program_primitive import ProgramPrimitive
from ..._trace.staging import stage
from ..._trace.trace import Tracer, typeof
from ..._transform.array_operations import Zero, broadcast_to, present_arrays
from ..._transform.batch import BatchAxis, Dim, place_axis, run_batched
from ..._transform.jaxprs import jvp_jaxpr
from ..._transform.jvp import jvp
from ..._transform.padding import Padding, pad_elementwise
from ..._xla.lower import lower_computation
from ..._xla.text import Function, Value, i64_array
from ..elementwise.logic import and_, or_, select_n
from ..structure.shape import pad, reshape, squeeze, transpose
from ..structure.slicing import along
from ..windows.padding import unwindowed_pad
from ..windows.pooling import check_scattered, window_attributes, window_shape, with_axis

Ints = tuple[int, ...]


def _region(f: Function, jaxpr: ClosedJaxpr, scalars: Sequence[ShapedArray]) -> str:
    """The jaxpr as MLIR text of a region; its constants are written into it."""

    def body(g: Function, *args: Value) -> list[Value]:
        # XLA's computations of reductions take the elements and nothing else.
        constants = [g.constant(np.asarray(c), typeof(c)) for c in jaxpr.consts]
        return lower_computation(g, jaxpr.jaxpr, [*constants, *args])

    return f.region([*scalars, *scalars], body)


def _halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    return values[: len(values) // 2], values[len(values) // 2 :]


def _check(name: str, operands: Sequence[ShapedArray], starts: Sequence[ShapedArray], jaxpr: ClosedJaxpr) -> None:
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise UnsupportedError(
            f"{name}: the computation closes over a traced value", instead="scan or fori_loop, which may do so"
        )
    for x, start in zip(operands, starts, strict=True):
        if start.shape:
            raise ShapeError(
                f"{name} found non-scalar initial value: {name} expected init_values to be scalars but init_values "
                f"have shapes {[s.shape for s in starts]}.",
                shapes=[s.shape for s in starts],
            )
        if x.shape != operands[0].shape:
            raise ShapeError(
                f"{name}: operands need one shape, got {', '.join(a.short for a in operands)}",
                shapes=[a.shape for a in operands],
            )
        if x.dtype != start.dtype:
            raise DtypeError(f"{name}: {x.short} and its initial value {start.short} differ in dtype")
    result_types = [(a.shape, a.dtype) for a in jaxpr.out_avals]
    start_types = [(a.shape, a.dtype) for a in starts]
    if result_types != start_types:
        raise DtypeError(
            f"{name}: the computation returns {', '.join(a.short for a in jaxpr.out_avals)}, the initial values are "
            + ", ".join(a.short for a in starts)
        )


def _moves(tangents: Sequence[Any], name: str) -> bool:
    """Whether any operand has a tangent. Raises if an initial value has one."""
    operand_tangents, of_starts = _halves(tangents)
    if any(type(t) is not Zero for t in of_starts):
        raise UnsupportedError(f"the derivative of {name} with respect to initial values")
    return any(type(t) is not Zero for t in operand_tangents)


# --- over axes ------------------------------------------------------------------------------------------


def _reduce_types(*avals: ShapedArray, jaxpr: ClosedJaxpr, dimensions: Ints) -> list[ShapedArray]:
    operands, starts = _halves(avals)
    _check("reduce", operands, starts, jaxpr)
    rank = operands[0].ndim
    if len(set(dimensions)) != len(dimensions):
        raise AxisError(f"reduce of {operands[0].short}: duplicate value in 'axes' {dimensions}", axes=dimensions)
    if any(not 0 <= d < rank for d in dimensions):
        raise AxisError(f"reduce: axes {dimensions} do not fit {operands[0].short}", axes=dimensions)
    shape = tuple(n for i, n in enumerate(operands[0].shape) if i not in dimensions)
    return [shaped(shape, x.dtype, x.weak_type) for x in operands]


def _reduce_lower(f: Function, *values: Value, jaxpr: ClosedJaxpr, dimensions: Ints) -> list[Value]:
    region = _region(f, jaxpr, [x.aval for x in _halves(values)[1]])
    return f.op("stablehlo.reduce", values, list(f.outs), f"dimensions = {i64_array(dimensions)}", [region])


def _reduce_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, dimensions: Ints
) -> tuple[list[Any], list[Any]]:
    if not _moves(tangents, "reduce"):
        outs = reduce(*primals, jaxpr=jaxpr, dimensions=dimensions)
        return outs, [Zero(typeof(x).tangent()) for x in outs]
    xs, starts = _halves(primals)
    return jvp(lambda *ys: _by_halving(jaxpr, ys, starts, dimensions), xs, _halves(tangents)[0])


def _by_halving(jaxpr: ClosedJaxpr, xs: Sequence[Any], starts: Sequence[Any], axes: Ints) -> list[Any]:
    """The reduction in differentiable primitives: combines halves until one element is left."""
    shape = typeof(xs[0]).shape
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    flat = (math.prod(shape[i] for i in axes), *(shape[i] for i in rest))
    order = (*axes, *rest)
    if order != tuple(range(len(shape))):
        xs = [transpose(x, permutation=order) for x in xs]
    xs = [reshape(x, new_sizes=flat, dimensions=None) for x in xs]
    if flat[0] == 0:
        return [broadcast_to(start, flat[1:]) for start in starts]
    while (length := typeof(xs[0]).shape[0]) > 1:
        half = (length + 1) // 2
        ends = [along(x, 0, half, length) for x in xs]
        if length % 2:
            edge = ((0, 1, 0), *((0, 0, 0),) * len(rest))
            # The initial value is neutral, so that it may take part any number of times, as XLA demands.
            ends = [pad(x, start, padding_config=edge) for x, start in zip(ends, starts, strict=True)]
        xs = _elementwise(jaxpr, [along(x, 0, 0, half) for x in xs], ends)
    return [squeeze(x, dimensions=(0,)) for x in xs]


def _elementwise(jaxpr: ClosedJaxpr, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """Applies the jaxpr of scalars to arrays elementwise."""
    values = [*xs, *ys]
    shape = typeof(values[0]).shape
    if not math.prod(shape):
        return list(xs)

    def run(*args: Any) -> list[Any]:
        return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)

    axis = BatchAxis(math.prod(shape))
    flat = [reshape(x, new_sizes=(axis.size,), dimensions=None) for x in values]
    outs, dims = run_batched(run, axis, flat, [0] * len(flat))
    placed = [place_axis(x, d, 0, axis.size) for x, d in zip(outs, dims, strict=True)]
    return [reshape(x, new_sizes=shape, dimensions=None) for x in placed]


def _reduce_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any
) -> tuple[list[Any], list[Dim]]:
    starts, start_dims = _halves(args)[1], _halves(dims)[1]
    operands = [place_axis(x, d, 0, axis.size) for x, d in zip(_halves(args)[0], _halves(dims)[0], strict=True)]
    if any(d is not None for d in start_dims):
        raise UnsupportedError("vmap of reduce over initial values", instead="one initial value for all examples")
    moved = {**params, "dimensions": tuple(d + 1 for d in params["dimensions"])}
    return reduce(*operands, *starts, **moved), [0] * len(operands)


def _reduce_sharding(outs: Sequence[ShapedArray], *avals: ShapedArray, dimensions: Ints, **_: Any) -> list[Entries]:
    operands = _halves(avals)[0]
    joined = elementwise("reduce", operands[0], operands)
    return [tuple(e for i, e in enumerate(joined) if i not in dimensions)] * len(outs)


def _reduce_pad(padding: Padding, eqn: JaxprEqn, *args: Any) -> list[Any]:
    """Reduces with a flag beside the elements: whether they, or all that they combine, are padding."""
    avals, axes = [v.aval for v in eqn.invars], eqn.params["dimensions"]
    varying = [axis for axis in axes if is_symbolic(avals[0].shape[axis])]
    if not varying:
        return pad_elementwise(padding, eqn, *args)
    (xs, starts), jaxpr, count = _halves(args), eqn.params["jaxpr"], len(args) // 2

    def combine(*values: Any) -> list[Any]:
        (*a, a_is_real), (*b, b_is_real) = _halves(values)
        both = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *a, *b)
        either = [select_n(b_is_real, x, y) for x, y in zip(a, b, strict=True)]
        # Two elements are combined. Of an element and padding the element stays, and of two paddings padding.
        real = and_(a_is_real, b_is_real)
        return [*[select_n(real, x, y) for x, y in zip(either, both, strict=True)], or_(a_is_real, b_is_real)]

    scalars = [*[typeof(start) for start in starts], shaped((), dtypes.bool_)]
    program = ClosedJaxpr(*stage(combine, [*scalars, *scalars]))
    is_real = padding.inside(avals[0], varying)
    # The initial values are no padding: they take part, and make the result of an axis without elements.
    outs = eqn.primitive.bind(*xs, is_real, *starts, np.True_, jaxpr=program, dimensions=axes)
    return list(outs[:count])


reduce = ProgramPrimitive(
    "reduce",
    types=_reduce_types,
    sharding=_reduce_sharding,
    vma=None,
    lower=_reduce_lower,
    jvp=_reduce_jvp,
    batch=_reduce_batch,
    pad=_reduce_pad,
    nan_checked=True,
)

# --- over windows ---------------------------------------------------------------------------------------


def _window_types(*avals: ShapedArray, jaxpr: ClosedJaxpr, **window: Any) -> list[ShapedArray]:
    operands, starts = _halves(avals)
    _check("reduce_window", operands, starts, jaxpr)
    shape = window_shape("reduce_window", operands[0], window)
    return [shaped(shape, x.dtype) for x in operands]


def _window_lower(f: Function, *values: Value, jaxpr: ClosedJaxpr, **window: Any) -> list[Value]:
    region = _region(f, jaxpr, [x.aval for x in _halves(values)[1]])
    return f.op("stablehlo.reduce_window", values, list(f.outs), window_attributes(window), [region])


def _window_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr, **window: Any
) -> tuple[list[Any], list[Any]]:
    """Reduces elements and their tangents together, by the jvp of the jaxpr."""
    # Apart from the tangents, so that the result is known where tangents are not, as in reverse mode.
    results = reduce_window(*primals, jaxpr=jaxpr, **window)
    if not _moves(tangents, "reduce_window"):
        return results, [Zero(typeof(x).tangent()) for x in results]
    (xs, starts), (moves, still) = _halves(primals), _halves(tangents)
    n = len(xs)
    has = tuple(dtypes.is_inexact(typeof(x).dtype) for x in xs)
    both, _ = jvp_jaxpr(jaxpr, (*has, *has), has)
    # The jvp takes the primals of both elements, then their tangents. A reduction takes primals and tangents of the
    # first element, then those of the second.
    v, count = both.jaxpr.invars, sum(has)
    invars = [*v[:n], *v[2 * n : 2 * n + count], *v[n : 2 * n], *v[2 * n + count :]]
    both = ClosedJaxpr(both.jaxpr.replace(invars=invars), both.consts)
    operand_tangents, start_tangents = (present_arrays(ts, has) for ts in (moves, still))
    outs = reduce_window(*xs, *operand_tangents, *starts, *start_tangents, jaxpr=both, **window)
    out_tangents = iter(outs[n:])
    moved = [next(out_tangents) if there else Zero(typeof(x).tangent()) for x, there in zip(results, has, strict=True)]
    return results, moved


def _window_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], jaxpr: ClosedJaxpr, **window: Any
) -> tuple[list[Any], list[Dim]]:
    if any(d is not None for d in _halves(dims)[1]):
        raise UnsupportedError("vmap of reduce_window over initial values", instead="one value for all examples")
    operands = [place_axis(x, d, 0, axis.size) for x, d in zip(_halves(args)[0], _halves(dims)[0], strict=True)]
    outs = reduce_window(*operands, *_halves(args)[1], jaxpr=jaxpr, **with_axis(window, 0))
    return outs, [0] * len(outs)


reduce_window = ProgramPrimitive(
    "reduce_window",
    types=_window_types,
    sharding=lambda outs, *avals, **_: [
        resized("reduce_window", x, out) for x, out in zip(_halves(avals)[0], outs, strict=True)
    ],
    vma=None,
    lower=_window_lower,
    jvp=_window_jvp,
    batch=_window_batch,
    pad=unwindowed_pad,
    nan_checked=True,
)


# --- scattering to the selected element of each window --------------------------------------------------


def _select_types(
    operand: ShapedArray,
    source: ShapedArray,
    start: ShapedArray,
    select_jaxpr: ClosedJaxpr,
    scatter_jaxpr: ClosedJaxpr,
    **window: Any,
) -> ShapedArray:
    check_scattered("select_and_scatter", source, operand, window)
    if start.shape or start.dtype != operand.dtype:
        raise ShapeError(
            f"select_and_scatter: the initial value must be a scalar of {operand.dtype}, got {start.short}"
        )
    return shaped(operand.shape, operand.dtype)


def _select_lower(
    f: Function,
    operand: Value,
    source: Value,
    start: Value,
    select_jaxpr: ClosedJaxpr,
    scatter_jaxpr: ClosedJaxpr,
    **window: Any,
) -> Value:
    regions = [_region(f, jaxpr, [start.aval]) for jaxpr in (select_jaxpr, scatter_jaxpr)]
    attributes = window_attributes(window)
    return f.op("stablehlo.select_and_scatter", [operand, source, start], f.out, attributes, regions)


select_and_scatter = ProgramPrimitive(
    "select_and_scatter",
    multiple_results=False,
    types=_select_types,
    sharding=lambda out, operand, *_, **__: entries_of(operand),
    vma=None,
    lower=_select_lower,
    nan_checked=True,
)
