"""`pad`: extends each axis at both ends by constants, by elements of the array, or by statistics of them."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, InconclusiveDimensionOperation, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.dimensions import is_symbolic, max_dim
from ..._operands.checks import check_one, integer, type_of
from ..._operands.indices import positions
from ..._operands.promotion import to_dtype
from ..._ops.structure import shape as ops
from ..._ops.structure.slicing import along
from ..._transform.sharding_types import with_reductions
from ...typing import Array, ArrayLike
from .._creation.fill import linspace
from .._elementwise.choose import round
from .._elementwise.unary import is_kind
from .._indexing.reading import take
from .._statistics.moments import mean
from .._statistics.quantile import median
from .._statistics.reductions import max, min
from .broadcasting import broadcast_to
from .joining import concatenate
from .shapes import flip

Widths = tuple[tuple[int, int], ...]
#: The keyword arguments of each mode.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}
_STATISTICS: dict[str, Callable[..., Any]] = {"maximum": max, "minimum": min, "mean": mean, "median": median}


def _pairs(option: str, widths: Any, rank: int) -> list[tuple[Any, Any]]:
    """A pair for each axis, from one value, one pair, or a pair for each axis."""
    if hasattr(widths, "shape") and widths.shape:
        widths = list(widths)
    if not isinstance(widths, tuple | list):
        return [(widths, widths)] * rank
    rows = [list(g) if isinstance(g, tuple | list) or np.ndim(g) else g for g in widths]
    nested = [isinstance(g, list) for g in rows]
    if len(rows) in (1, 2) and not any(nested):
        return [(rows[0], rows[-1])] * rank
    if rows and all(nested) and len(rows) in (1, rank) and all(len(g) in (1, 2) for g in rows):
        pairs = [(g[0], g[-1]) for g in rows]
        return pairs * rank if len(pairs) == 1 else pairs
    raise ShapeError(f"pad: {option}={widths!r} for an array with {rank} axes", instead="(before, after) for each axis")


def pad(
    array: ArrayLike,
    pad_width: int | np.ndarray | Sequence[int | Sequence[int]],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """`array` with elements added at both ends of each axis (as ``numpy.pad``).

    Args:
      array: array of any dtype and shape.
      pad_width: number of elements to add at the ends of the axes: an integer, a pair (before, after), or such a pair
        for each axis.
      mode: how the added elements are chosen. "constant": `constant_values`; "edge": the element at the end of the
        axis; "wrap": elements from the opposite end; "reflect" and "symmetric": a mirror image without and with the
        element at the end, subtracted from twice that element if ``reflect_type="odd"``; "linear_ramp": a linear ramp
        from the element at the end to `end_values`; "maximum", "minimum", "mean", "median": this statistic of the whole
        axis, or of the `stat_length` elements next to the end; "empty": unspecified values. A function ``f(vector,
        (before, after), axis, kwargs)`` receives each vector padded with zeros, and returns it with the padding filled
        in.
      **kwargs: options of `mode`: `constant_values` and `end_values` (0 by default) and `stat_length` (by default all
        elements), each a number, a pair or a pair for each axis; `reflect_type`, "even" (default) or "odd".

    Returns:
      An array of the dtype of `array`, longer along each axis by the two widths.

    Raises:
      ArgumentError: `pad_width` is a dict or not of integers, or a width is negative; `stat_length` is less than 1.
      ShapeError: `pad_width` or a value does not fit the number of axes; an axis of length 0 has no elements to take.
      UnsupportedError: `mode` is not one of the listed names.
      OptionError: a keyword is not an option of the mode, or `reflect_type` is not one of the listed names.

    >>> jnp.pad(jnp.array([1, 2, 3]), 1, "reflect")
    Array([2, 1, 2, 3, 2], dtype=int32)
    """
    array = check_one("pad", array)
    rank = type_of(array).ndim
    if isinstance(pad_width, dict):
        raise ArgumentError("pad: a dict of widths is not supported", instead="(before, after) for each axis")
    widths = tuple(
        (integer("pad", "pad_width", lo), integer("pad", "pad_width", hi))
        for lo, hi in _pairs("pad_width", pad_width, rank)
    )
    if any(n < 0 for pair in widths for n in pair):
        raise ArgumentError(f"pad: negative width in {pad_width}", instead="a slice, to make an array shorter")
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise UnsupportedError(
            f"Unimplemented padding mode '{mode}' for np.pad.", instead=f"one of {', '.join(_OPTIONS)}"
        )
    unknown = sorted(set(kwargs) - set(_OPTIONS[mode]))
    if unknown:
        raise OptionError(f"pad: unsupported keyword arguments for mode {mode!r}: {', '.join(unknown)}")
    for n, pair in zip(type_of(array).shape, widths, strict=True):
        if n == 0 and (pair != (0, 0) or mode == "median") and mode not in ("constant", "empty", "mean"):
            raise ShapeError(f"pad: an axis of length 0 has no elements for mode={mode!r}", instead="mode='constant'")
    if mode in ("constant", "linear_ramp", "empty"):
        option = "end_values" if mode == "linear_ramp" else "constant_values"
        value = kwargs.get(option, 0)
        # Along an axis that is split over explicit mesh axes nothing can be concatenated.
        if mode != "linear_ramp" and type_of(array).spec is not None and np.ndim(value) == 0:
            return _with_one_value(array, value, widths)
        ends = _pairs(option, value, rank)
        return _to_values(array, ends, widths=widths, ramp=mode == "linear_ramp")
    if mode in _STATISTICS:
        lengths = kwargs.get("stat_length")
        spans = None if lengths is None else tuple(_pairs("stat_length", lengths, rank))
        if spans is not None and any(n < 1 for pair in spans for n in pair):
            raise ArgumentError(f"pad: stat_length={lengths}", instead="at least one element")
        return _by_statistic(array, widths=widths, name=mode, spans=spans)
    turned = kwargs.get("reflect_type", "even")
    if turned not in ("even", "odd"):
        raise OptionError(f"pad: reflect_type={turned!r}", instead="'even' or 'odd'")
    return _from_itself(array, widths=widths, mode=mode, odd=turned == "odd")


@functools.partial(jit, inline=True, static_argnames=("widths", "ramp"))
def _to_values(array: Any, ends: Any, widths: Widths, ramp: bool) -> Any:
    """Pads each axis with end values, or with linear ramps to them."""
    dtype = type_of(array).dtype
    weak = type_of(array).weak_type
    for axis, ((lo, hi), pair) in enumerate(zip(widths, ends, strict=True)):
        n = type_of(array).shape[axis]
        before, after = (
            with_reductions(_stretch(to_dtype(v, dtype), array, axis, w), type_of(array))
            for v, w in zip(pair, (lo, hi), strict=True)
        )
        if ramp and n:
            first, last = along(array, axis, 0, 1), along(array, axis, n - 1, n)
            before = _ramp(pair[0], first, lo, axis)
            after = flip(_ramp(pair[1], last, hi, axis), axis)
        array = concatenate([before, array, after], axis)
    return to_dtype(array, dtype, weak)


@functools.partial(jit, inline=True, static_argnames="widths")
def _with_one_value(array: Any, value: Any, widths: Widths) -> Any:
    """Pads all axes with one number."""
    aval = type_of(array)
    value = with_reductions(to_dtype(check_one("pad", value), aval.dtype), aval)
    return to_dtype(
        ops.pad(array, value, padding_config=tuple((lo, hi, 0) for lo, hi in widths)), aval.dtype, aval.weak_type
    )


def _stretch(x: Any, array: Any, axis: int, n: int) -> Any:
    """`x` broadcast to the shape of `array`, but with length `n` along `axis`."""
    shape = type_of(array).shape
    return broadcast_to(x, (*shape[:axis], n, *shape[axis + 1 :]))


def _ramp(start: Any, edge: Any, n: int, axis: int) -> Any:
    start = to_dtype(start, type_of(edge).dtype)
    stop = edge.squeeze(axis)
    # The edge is an element of the array already.
    return linspace(start, stop, n, endpoint=False, dtype=type_of(edge).dtype, axis=axis)


@functools.partial(jit, inline=True, static_argnames=("widths", "name", "spans"))
def _by_statistic(array: Any, widths: Widths, name: str, spans: Sequence[tuple[int, int]] | None) -> Any:
    dtype, weak = type_of(array).dtype, type_of(array).weak_type
    for axis, (lo, hi) in enumerate(widths):
        n = type_of(array).shape[axis]
        first, last = (n, n) if spans is None else (builtins.min(s, n) for s in spans[axis])
        values = []
        for part, width in ((along(array, axis, 0, first), lo), (along(array, axis, n - last, n), hi)):
            value = _STATISTICS[name](part, axis, keepdims=True)
            # Means of integers are rounded, as in NumPy.
            value = round(value) if dtypes.kind(dtype) in "iu" and is_kind(value, "f") else value
            values.append(_stretch(to_dtype(value, dtype), array, axis, width))
        array = concatenate([values[0], array, values[1]], axis)
    return to_dtype(array, dtype, weak)


@functools.partial(jit, inline=True, static_argnames=("widths", "mode", "odd"))
def _from_itself(array: Any, widths: Widths, mode: str, odd: bool) -> Any:
    """Pads each axis with elements of the array, at positions that are computed when tracing."""
    dtype, weak = type_of(array).dtype, type_of(array).weak_type
    for axis, (lo, hi) in enumerate(widths):
        if (lo, hi) == (0, 0):
            continue
        n = type_of(array).shape[axis]
        if is_symbolic(n):
            if odd:
                raise InconclusiveDimensionOperation("pad: reflect_type='odd' along an axis of symbolic length")
            array = take(array, _source(positions(lo + n + hi) - lo, n, mode), axis)
            continue
        # Positions are computed on the host, where runs of them can be seen.
        padded = np.arange(-lo, n + hi)
        if odd:
            # "reflect" does not repeat the edge, so its period is one less.
            array = _reflected(array, axis, padded, n - 1 if mode == "reflect" and n > 1 else n)
        else:
            array = _at_places(array, _source(padded, n, mode), axis)
    return to_dtype(array, dtype, weak)


def _source(positions: Any, n: Any, mode: str) -> Any:
    """The positions in an axis of length `n` of the elements at these positions of the padded axis."""
    if mode == "edge":
        return positions.clip(0, n - 1)
    if mode == "wrap":
        return positions % n
    last = n - 1 if mode == "reflect" else n
    # For one element the period of "reflect" is 0, the remainder by which is not defined.
    turn = positions % max_dim(2 * last, 1)
    # The minimum of `turn` and its mirror image, by operators that NumPy and traced programs have.
    return last - abs(turn - last) if mode == "reflect" else (2 * last - 1 - abs(2 * turn + 1 - 2 * last)) // 2


#: the maximum number of slices to concatenate; for more pieces the elements are gathered
_PIECES = 8


def _at_places(array: Any, positions: np.ndarray, axis: int) -> Any:
    """The elements at these positions along `axis`; runs of consecutive positions, up or down, are sliced."""
    runs = _runs(positions)
    if len(runs) > _PIECES:
        return take(array, positions, axis)
    return concatenate([_run(array, int(positions[a]), int(positions[b]), b - a + 1, axis) for a, b in runs], axis)


def _runs(positions: np.ndarray) -> list[tuple[int, int]]:
    """Start and end of each run; only the first runs if there are too many. An element that could belong to two runs
    belongs to the longer one, so that the array is usually copied as a whole.
    """
    steps, last = np.diff(positions), len(positions) - 1
    turns = np.flatnonzero(np.diff(steps)) + 1

    def end(a: int) -> int:
        """The end of the run that begins at `a`."""
        if a == last or abs(steps[a]) > 1:
            return a
        at = int(np.searchsorted(turns, a, side="right"))
        return int(turns[at]) if at < len(turns) else last

    runs: list[tuple[int, int]] = []
    a = 0
    while a <= last and len(runs) <= _PIECES:
        b = end(a)
        if b > a and end(b) - b > b - a:
            b -= 1
        runs.append((a, b))
        a = b + 1
    return runs


def _run(array: Any, first: int, last: int, count: int, axis: int) -> Any:
    if first > last:
        return flip(along(array, axis, last, first + 1), axis)
    piece = along(array, axis, first, last + 1)
    return piece if first < last else _stretch(piece, array, axis, count)


def _reflected(array: Any, axis: int, positions: np.ndarray, period: int) -> Any:
    """`array` continued by mirror images, one every `period` positions.

    An image is also reflected in value about the element at its edge: an element that was greater by d becomes less by
    d. Every second image is therefore shifted by twice the difference of the ends.
    """
    n = type_of(array).shape[axis]
    image, rest = np.divmod(positions, period)
    mirrored = image % 2 == 1
    sources = np.minimum(np.where(mirrored, n - 1 - rest, rest), n - 1)
    elements = _at_places(array, sources, axis)
    dtype = type_of(array).dtype
    shape = tuple(len(positions) if i == axis else 1 for i in range(type_of(array).ndim))
    first, last = along(array, axis, 0, 1), along(array, axis, n - 1, n)
    climb = to_dtype(np.where(mirrored, image - 1, image).reshape(shape), dtype)
    sign = to_dtype(np.where(mirrored, -1, 1).reshape(shape), dtype)
    twice = to_dtype(np.where(mirrored, 2, 0).reshape(shape), dtype)
    return sign * elements + twice * last + climb * (last - first)


def _by_function(array: Any, widths: Widths, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    from .._functions.apply import apply_along_axis

    padded = _to_values(array, [(0, 0)] * len(widths), widths=widths, ramp=False)
    for axis, pair in enumerate(widths):
        padded = apply_along_axis(function, axis, padded, pair, axis, kwargs)
    return padded
