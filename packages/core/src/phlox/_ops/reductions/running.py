"""Cumulative reductions along an axis (cumsum and others), and the associative scan that computes their derivatives.

They are lowered to windows that reach back to the first element: XLA rewrites these as a tree, and compiles that faster
than the many slices of an associative scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._base.errors import ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray
from ..._ir.bounds import bounds
from ..._ir.dimensions import is_symbolic
from ..._ir.dtypes import highest, lowest
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import Entries, check_whole, entries_of
from ..._trace.trace import typeof
from ..._transform.batch import Dim, batch_of_one
from ..._transform.jvp import jvp
from ..._transform.padding import Padding, pad_elementwise
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add, div, max_, min_, mul, rem
from ..elementwise.families import INEXACT, NUMBER, check_kind, literal, lowered_as
from ..elementwise.logic import eq, or_, select_n
from ..elementwise.logs import logaddexp
from ..structure.dimension_numbers import GatherScatterMode
from ..structure.gather import take_along_axis
from ..structure.iota import iota
from ..structure.shape import broadcast_in_dim, concatenate, pad, rev
from ..structure.slicing import along
from .reduce import Combine, larger, smaller


def associative_scan(combine: Callable[..., Any], xs: list[Any], axis: int) -> list[Any]:
    """All prefixes of `xs` under an associative `combine` of two lists of arrays, in a logarithmic number of steps.

    Combines neighbours, scans the resulting half as many elements, and computes the elements between (Blelloch, 1990).
    """
    n = typeof(xs[0]).shape[axis]
    if is_symbolic(n) and bounds(n)[0] >= 1 and bounds(n)[1] < np.inf:
        return _symbolic_scan(combine, xs, axis, n)
    if n < 2:
        return xs
    pairs = combine([along(x, axis, 0, n - 1, 2) for x in xs], [along(x, axis, 1, n, 2) for x in xs])
    odd = associative_scan(combine, pairs, axis)
    before = odd if n % 2 else [along(x, axis, 0, n // 2 - 1) for x in odd]
    if n > 2:
        filled = combine(before, [along(x, axis, 2, n, 2) for x in xs])
        even = [concatenate(along(x, axis, 0, 1), y, dimension=axis) for x, y in zip(xs, filled, strict=True)]
    else:
        even = [along(x, axis, 0, 1) for x in xs]
    return [_interleave(e, o, axis) for e, o in zip(even, odd, strict=True)]


def _symbolic_scan(combine: Callable[..., Any], xs: list[Any], axis: int, n: Any) -> list[Any]:
    """`associative_scan` along an axis of at least one element, whose length is symbolic.

    The steps are those of the largest length. An odd length has one pair more, of the last element and itself, so that
    no length of a step is zero."""
    most = bounds(n)[1]
    if most < 2:
        return xs
    pairs = (n + 1) // 2

    def every(x: Any, start: int, count: Any) -> Any:
        """`count` elements, two apart."""
        return _elements(x, axis, add(mul(_numbers(count), np.int32(2)), np.int32(start)))

    odd = combine([every(x, 0, pairs) for x in xs], [every(x, 1, pairs) for x in xs])
    odd = _symbolic_scan(combine, odd, axis, pairs)
    even = [along(x, axis, 0, 1) for x in xs]
    if most > 2:
        rest = (n - 1) // 2
        filled = combine([_elements(x, axis, _numbers(rest)) for x in odd], [every(x, 2, rest) for x in xs])
        even = [concatenate(e, y, dimension=axis) for e, y in zip(even, filled, strict=True)]
    half, is_odd = div(_numbers(n), np.int32(2)), eq(rem(_numbers(n), np.int32(2)), np.int32(1))
    outs = []
    for e, o, x in zip(even, odd, xs, strict=True):
        mask = broadcast_in_dim(is_odd, shape=typeof(x).shape, broadcast_dimensions=(axis,))
        outs.append(select_n(mask, _elements(e, axis, half), _elements(o, axis, half)))
    return outs


def _numbers(count: Any) -> Any:
    return iota(dtype=dtypes.int32, shape=(count,), dimension=0)


def _elements(x: Any, axis: int, positions: Any) -> Any:
    """The elements of `x` at these positions along `axis`; positions behind the end stand for the last one."""
    return take_along_axis(x, positions, axis, GatherScatterMode.CLIP, is_sorted=True)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """even[0], odd[0], even[1], …; `even` is as long as `odd`, or longer by one."""
    shape, longer = typeof(even).shape, typeof(even).shape[axis] - typeof(odd).shape[axis]
    config_even, config_odd = [(0, 0, 0)] * len(shape), [(0, 0, 0)] * len(shape)
    config_even[axis] = (0, 1 - longer, 1)
    config_odd[axis] = (1, longer, 1)
    # Two pads and a sum, which XLA fuses; it has no operation that interleaves.
    zero = literal(even, 0)
    join = or_ if typeof(even).dtype == bool else add
    return join(pad(even, zero, padding_config=tuple(config_even)), pad(odd, zero, padding_config=tuple(config_odd)))


def cumulative(
    name: str,
    operation: Primitive,
    op: Combine,
    start: Callable[[Any], Any],
    *,
    accepts: str,
    transpose: Callable[..., Any] | None = None,
) -> Primitive:
    """A cumulative reduction along `axis`: element i covers elements 0 … i, or with `reverse` those from i to the end.

    `op` writes `operation`, and ``start(dtype)`` is its neutral element. A reduction with a `transpose` is linear.
    Others are differentiated as an associative scan of `operation`, so that its jvp rule decides about zeros and ties.
    """

    def types(x: ShapedArray, axis: int, reverse: bool) -> ShapedArray:
        check_kind(name, x, accepts)
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{name}: {x.short} has no axis {axis}", axis=axis)
        return x

    def differentiate(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        if transpose is not None:
            return primitive.bind(*primals, **params), primitive.bind(*tangents, **params)
        # The windows have no derivative of their own, so the result comes from the scan as well.
        (out,), (t,) = jvp(lambda x: [_scanned(operation, x, **params)], primals, tangents)
        return out, t

    def batch(x: Any, dim: int, axis: int, reverse: bool) -> tuple[Any, Dim]:
        return primitive.bind(x, axis=axis if axis < dim else axis + 1, reverse=reverse), dim

    def sharding(out: ShapedArray, x: ShapedArray, axis: int, reverse: bool) -> Entries:
        check_whole(name, x, [axis])
        return entries_of(x)

    def pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
        aval, axis = eqn.invars[0].aval, eqn.params["axis"]
        if eqn.params["reverse"]:  # the padding comes first
            x = padding.filled(x, aval, start(aval.dtype), (axis,))
        return pad_elementwise(padding, eqn, x)

    primitive = Primitive(
        name,
        types=types,
        sharding=sharding,
        lower=_cumulative_lower(op, start),
        jvp=differentiate,
        transpose=transpose,
        batch=batch_of_one(batch),
        pad=pad,
        nan_checked=True,
        series=None if transpose is None else "linear",
    )
    CUMULATIVE.append((primitive, op, start))
    return primitive


def _cumulative_lower(op: Combine, start: Callable[[Any], Any]) -> Callable[..., Value]:
    """The lowering rule of a cumulative reduction: windows that reach back to the first element."""

    def lower(f: Function, x: Value, axis: int, reverse: bool) -> Value:
        from ..windows.pooling import reduced  # imported late: few programs need it

        n, rank = x.aval.shape[axis], x.aval.ndim
        if n == 0:
            return x
        # The first result takes 0.25 to 0.45 s, as in jax. An associative scan took 0.9 to 1.9 s.
        reach = (0, n - 1) if reverse else (n - 1, 0)
        window = {
            "window_dimensions": tuple(n if i == axis else 1 for i in range(rank)),
            "window_strides": (1,) * rank,
            "padding": tuple(reach if i == axis else (0, 0) for i in range(rank)),
        }
        return reduced(f, x, op, start(x.aval.dtype), window, x.aval)

    return lower


def _scanned(operation: Primitive, x: Any, axis: int, reverse: bool) -> Any:
    """The cumulative `operation` as an associative scan."""
    x = rev(x, dimensions=(axis,)) if reverse else x
    (out,) = associative_scan(lambda a, b: [operation(a[0], b[0])], [x], axis)
    return rev(out, dimensions=(axis,)) if reverse else out


def _cumsum_transpose(ct: Any, x: Any, axis: int, reverse: bool) -> list[Any]:
    # An element is in all sums from its own on, so its cotangent is a sum from the other end.
    return [cumsum(ct, axis=axis, reverse=not reverse)]


def _no_sum(dtype: Any) -> Any:
    """The neutral element of a sum, which keeps the sign of -0.0."""
    return -0.0 if dtypes.kind(dtype) == "f" else 0


#: (primitive, operation, neutral element), for its forms
CUMULATIVE: list[tuple[Primitive, Combine, Callable[[Any], Any]]] = []

cumsum = cumulative("cumsum", add, "stablehlo.add", _no_sum, accepts=NUMBER, transpose=_cumsum_transpose)
cumprod = cumulative("cumprod", mul, "stablehlo.multiply", lambda dtype: 1, accepts=NUMBER)
cummax = cumulative("cummax", max_, larger, lowest, accepts=NUMBER)
cummin = cumulative("cummin", min_, smaller, highest, accepts=NUMBER)
cumlogsumexp = cumulative("cumlogsumexp", logaddexp, lowered_as(logaddexp), lowest, accepts=INEXACT)
